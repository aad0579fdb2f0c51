"""Try every interleaving of a set of machines.

A ``Model`` says which machines there are, what happens to them and what must hold. ``explore``
tries every order in which frames can arrive, time-outs fire and scripts proceed, and returns a
shortest trace to a fault; ``find_starvation`` looks for fair runs in which somebody waits for ever;
``random_walks`` goes where exhaustion cannot.
"""

from dsp.testing.explorer.actions import Action, ActionKind, Reaction, Step
from dsp.testing.explorer.clocks import rebase_floats
from dsp.testing.explorer.exploration import explore
from dsp.testing.explorer.many import explore_many, explore_orders
from dsp.testing.explorer.model import Model
from dsp.testing.explorer.parallel import WorkerError
from dsp.testing.explorer.replay import replay
from dsp.testing.explorer.result import Kind, Progress, Result, Violation
from dsp.testing.explorer.run import Run
from dsp.testing.explorer.script import (
    Absent,
    LaneRules,
    Notice,
    Script,
    Snapshot,
    Stimulus,
    call,
    crash,
    join,
    leave,
    tell,
)
from dsp.testing.explorer.starvation import find_starvation
from dsp.testing.explorer.view import View
from dsp.testing.explorer.walks import random_walks

__all__ = [
    "Model",
    "View",
    "Run",
    "Script",
    "Stimulus",
    "tell",
    "crash",
    "leave",
    "join",
    "call",
    "LaneRules",
    "Absent",
    "Notice",
    "Snapshot",
    "rebase_floats",
    "explore",
    "explore_many",
    "explore_orders",
    "find_starvation",
    "random_walks",
    "replay",
    "Result",
    "Progress",
    "Violation",
    "WorkerError",
    "Kind",
    "Step",
    "Reaction",
    "Action",
    "ActionKind",
]
