"""What an exploration found."""

from dataclasses import dataclass
from enum import Enum

from dsp.errors import InvariantError
from dsp.testing.explorer.actions import Step

__all__ = ["complaint", "Kind", "Violation", "Result", "Progress"]


class Kind(Enum):
    """What went wrong."""

    INVARIANT = "invariant broken"
    EXCEPTION = "a machine raised"
    ABSENT = "frame to a node that does not exist"
    DEADLOCK = "deadlock"
    QUIET = "wrong at the end"
    STARVATION = "starvation"


@dataclass(frozen=True, slots=True)
class Violation:
    """A fault, and the way to it.

    Attributes:
        kind: what sort of fault.
        message: what exactly.
        trace: the steps from the start, the last one included that breaks the rule.
        cycle: for starvation, the steps that can then be repeated for ever. Empty if the party
            starves because nothing has to happen any more.
    """

    kind: Kind
    message: str
    trace: tuple[Step, ...]
    cycle: tuple[Step, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.kind.value}: {self.message}", f"after {len(self.trace)} steps:"]
        steps = list(enumerate(self.trace, 1))
        lines += [f"{number:4}. " + str(step).replace("\n", "\n      ") for number, step in steps]
        if self.kind is Kind.STARVATION:
            lines.append("and then for ever:" if self.cycle else "and then nothing has to happen.")
            again = enumerate(self.cycle, len(steps) + 1)
            lines += [
                f"{number:4}. " + str(step).replace("\n", "\n      ") for number, step in again
            ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an exploration is, as handed to its ``progress`` callback.

    Attributes:
        depth: levels expanded.
        states: different states found.
        transitions: steps taken.
        frontier: states of the next level.
        seconds: time since the start.
    """

    depth: int
    states: int
    transitions: int
    frontier: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of an exploration.

    Attributes:
        states: different states found.
        transitions: steps taken between them.
        depth: steps from the start to the farthest state; for walks, the longest walk.
        quiet: states in which nothing more can happen.
        cut: states in which only a time-out beyond ``Model.max_ticks`` could still happen; they
            are neither quiet nor explored further.
        seconds: wall time.
        complete: every reachable state was explored; false if a bound or a violation stopped it.
        violation: the first fault on a shortest way, or None.
        name: the model's name.
        seed: for a random walk that failed, what ``random_walks`` needs to repeat it.
    """

    states: int
    transitions: int
    depth: int
    quiet: int
    cut: int
    seconds: float
    complete: bool
    violation: Violation | None = None
    name: str = ""
    seed: str | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing wrong was found (as far as it was explored)."""
        return self.violation is None

    def assert_holds(self, *, complete: bool = True) -> None:
        """Raise if something wrong was found.

        Args:
            complete: also raise if a bound stopped the exploration.

        Raises:
            InvariantError: with the whole trace as its text.
        """
        if self.violation is not None or (complete and not self.complete):
            raise InvariantError(str(self))

    def __str__(self) -> str:
        rate = self.transitions / self.seconds if self.seconds > 0 else 0.0
        verdict = "broken" if self.violation else "holds" if self.complete else "not completed"
        head = (
            f"{self.name or 'model'}: {verdict}; {self.states:,} states, "
            f"{self.transitions:,} transitions, depth {self.depth}, {self.quiet:,} quiet, "
            f"{self.cut:,} cut, {self.seconds:.1f} s ({rate:,.0f}/s)"
        )
        if self.seed is not None:
            head += f", seed {self.seed!r}"
        return head if self.violation is None else f"{head}\n{self.violation}"


def complaint(exc: Exception) -> str:
    """The first line of what a check raised.

    A failing ``assert`` under pytest goes on with details that hold addresses of objects, and so
    differ from run to run.
    """
    return (str(exc) or type(exc).__name__).splitlines()[0]
