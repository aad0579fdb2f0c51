"""Rules by which instances decide to duplicate or to leave.

All have one interface: an ``Observation`` in, a ``Decision`` out. ``make_decider`` makes one by its
name, ``configured_decider`` one with its bounds as ``[scaling]`` wants it.
"""

from dsp.scaling.deciders.autoscale import AutoscalePlus, Proactive
from dsp.scaling.deciders.base import (
    STAY,
    Decider,
    Decision,
    Duplicate,
    Leave,
    Observation,
    Report,
    Retire,
    Stay,
    Watcher,
)
from dsp.scaling.deciders.bounded import Bounded, Bounds
from dsp.scaling.deciders.configured import configured_decider, proactive_settings
from dsp.scaling.deciders.leading import Centralised, Threshold
from dsp.scaling.deciders.named import DECIDERS, make_decider
from dsp.scaling.deciders.probabilistic import Probabilistic, Thresholds
from dsp.scaling.deciders.ranked import Ranked

__all__ = [
    "Observation",
    "Report",
    "Decision",
    "Stay",
    "STAY",
    "Duplicate",
    "Leave",
    "Retire",
    "Decider",
    "Watcher",
    "Thresholds",
    "Probabilistic",
    "Ranked",
    "Proactive",
    "AutoscalePlus",
    "Centralised",
    "Threshold",
    "Bounds",
    "Bounded",
    "DECIDERS",
    "make_decider",
    "configured_decider",
    "proactive_settings",
]
