"""Verdicts on the scale protocol: every interleaving of small pipelines, with their records.

In every state: keepers work, nothing is sent to an instance that does not exist. In every quiet
state: each operation has ended, everybody knows exactly who is there, each record is out.
"""

from collections.abc import Callable, Sequence

import pytest

from dsp.core.types import NodeId
from dsp.scaling.events import Deletion, DuplicationAck, Member
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.place import Place
from dsp.scaling.status import Status
from dsp.testing.explorer import explore, random_walks
from tests.scaling.graphs import DIAMOND, LINE, SKIP, line
from tests.scaling.instances import Instance
from tests.scaling.models import CrashingPipeline, Pipeline

SMALL = [
    Pipeline(1, 1, 1, operations=3),
    Pipeline(1, 1, 1, 1, operations=2, graph=DIAMOND, copies=True),
    Pipeline(1, 1, 1, 1, operations=2, graph=DIAMOND),
    Pipeline(1, 2, 1, operations=2),
    Pipeline(2, 2, 2, operations=1),
    Pipeline(1, 1, 1, operations=2, graph=SKIP),
    Pipeline(1, 1, operations=2, graph=line(2)),
    Pipeline(1, operations=2, graph=line(1)),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("model", SMALL, ids=repr)
def test_every_interleaving_of_small_pipelines(model: Pipeline) -> None:
    explore(model, workers=1).assert_holds()


@pytest.mark.verify
@pytest.mark.parametrize(
    "model",
    [
        Pipeline(1, 1, 1, operations=4),
        Pipeline(1, 2, 1, operations=3),
        Pipeline(2, 2, 2, operations=2),
        Pipeline(1, 1, 1, operations=2, records=2),
        CrashingPipeline(1, 2, 1, operations=2, records=0),
        CrashingPipeline(1, 2, 1, operations=2),
        CrashingPipeline(1, 2, 1, operations=2, records=0, everywhere=True),
    ],
    ids=repr,
)
def test_every_interleaving_of_larger_pipelines(model: Pipeline) -> None:
    explore(model, workers=2, max_states=200_000_000, keep_traces=False).assert_holds()


CRASHING = [
    CrashingPipeline(1, 2, 1, operations=1, everywhere=True),
    CrashingPipeline(1, 1, 1, operations=1, everywhere=True),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("model", CRASHING, ids=repr)
def test_every_interleaving_with_a_crash(model: Pipeline) -> None:
    explore(model, workers=1).assert_holds()


LONG = [
    Pipeline(2, 3, 2, operations=8, records=3),
    Pipeline(1, 2, 2, 1, operations=8, records=3, graph=DIAMOND),
    Pipeline(2, 2, 2, operations=8, records=3, graph=SKIP),
    CrashingPipeline(1, 3, 1, operations=3, crashes=1),
    CrashingPipeline(2, 3, 2, operations=4, crashes=2, records=2),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("model", LONG, ids=repr)
def test_long_walks(model: Pipeline) -> None:
    result = random_walks(model, seed=1, walks=25, steps=600)
    result.assert_holds(complete=False)
    assert result.quiet == 25


@pytest.mark.verify
@pytest.mark.parametrize("model", LONG, ids=repr)
def test_many_long_walks(model: Pipeline) -> None:
    result = random_walks(model, seed=2, walks=5000, steps=1000, workers=2)
    result.assert_holds(complete=False)
    assert result.quiet == 5000


# -- what each correction is for --------------------------------------------------------------


class NoFlush(ScaleMachine):
    """Acknowledges a deletion while records are on their way to the leaver (without D7)."""

    def _on_deletion(self, sender: NodeId) -> list[object]:  # type: ignore[override]
        self._flush.forget(sender)
        return [*super()._on_deletion(sender)]


class AlwaysLinked(ScaleMachine):
    """Says that it knows newcomers although it leaves (without D4)."""

    def _on_duplication_ack(  # type: ignore[override]
        self, sender: NodeId, message: DuplicationAck
    ) -> list[object]:
        return [*super()._on_duplication_ack(sender, DuplicationAck(True))]


class PresentOnly(ScaleMachine):
    """Waits for confirmations of the successors it still knows, not of departed ones (D7)."""

    def _try_farewell(self) -> list[object]:  # type: ignore[override]
        for peer in dict(self._flush.state()[0]):
            if peer not in self.neighbours.members:
                self._flush.forget(peer)
        return [*super()._try_farewell()]


class OnePhase(ScaleMachine):
    """Tells both sides of its leaving at once, and drains at the end (without D3)."""

    def _on_leave(self, token: object) -> list[object]:  # type: ignore[override]
        super()._on_leave(token)
        message = Deletion(self.place.member.operator)
        return [*self._progress.tell(self.neighbours.members.values(), message)]

    def _try_farewell(self) -> list[object]:  # type: ignore[override]
        ready = self.status.name == "DRAINING" and self._progress.emptied and self._flush.clear
        return [*self._end_at_once()] if ready else []

    def _end_at_once(self) -> Sequence[object]:
        self._move(Status.FAREWELL)
        return self._gone()


def mutant(cls: type[ScaleMachine], *sizes: int, operations: int, records: int = 1) -> Pipeline:
    class Mutated(Pipeline):
        def make(self, place: Place, neighbours: Sequence[Member] | None) -> Instance:
            return Instance(cls(place, neighbours))

    return Mutated(*sizes, operations=operations, records=records, graph=LINE)


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda: mutant(NoFlush, 1, 2, 1, operations=1), 6),
        (lambda: mutant(AlwaysLinked, 1, 2, 1, operations=2, records=0), None),
        (lambda: mutant(PresentOnly, 2, 2, 1, operations=2), None),
        (lambda: mutant(OnePhase, 1, 2, 2, operations=2), None),
    ],
    ids=["no flush", "always linked", "present only", "one phase"],
)
def test_without_a_correction_it_fails(make: Callable[[], Pipeline], steps: int | None) -> None:
    result = explore(make())
    assert result.violation is not None, str(result)
    assert steps is None or len(result.violation.trace) <= steps + 1, str(result)


def test_two_workers_understand_messages_to_the_dead() -> None:
    # Such a message gets a number in one process and never waits in a channel.
    found = explore(CrashingPipeline(1, 1, 1, operations=2), workers=2, max_states=20_000)
    assert found.states >= 20_000
