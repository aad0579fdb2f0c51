"""A sender and a receiver over a bad link, right and wrong, for the explorer to judge."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from dsp.core.machine import Received, Send, Tick
from dsp.core.types import Lane, NodeId
from dsp.errors import InvariantError
from dsp.testing.explorer import (
    LaneRules,
    Model,
    Run,
    Script,
    View,
    rebase_floats,
    tell,
)

__all__ = ["Got", "LinkModel", "Put", "RESEND"]

RESEND = 5.0
SOURCE, SINK = NodeId("source"), NodeId("sink")


@dataclass(frozen=True, slots=True)
class Put:
    item: int


@dataclass(frozen=True, slots=True)
class Data:
    bit: int
    item: int


@dataclass(frozen=True, slots=True)
class Ack:
    bit: int


@dataclass(frozen=True, slots=True)
class Got:
    item: int


class Source:
    """Sends one item after the other; sends again what is not acknowledged in time."""

    def __init__(self) -> None:
        self.bit = 0
        self.queue: tuple[int, ...] = ()
        self.deadline: float | None = None

    def _transmit(self, now: float) -> list[Send]:
        if not self.queue:
            self.deadline = None
            return []
        self.deadline = now + RESEND
        return [Send(SINK, Data(self.bit, self.queue[0]), Lane.DATA)]

    def handle(self, event: Put | Tick | Received, now: float) -> Sequence[Send]:
        match event:
            case Put(item):
                self.queue += (item,)
                return self._transmit(now) if len(self.queue) == 1 else []
            case Tick():
                assert self.deadline is not None
                assert now >= self.deadline, "the time-out fires too early"
                return self._transmit(now)
            case Received(_, Ack(bit)):
                if bit != self.bit or not self.queue:
                    return []
                self.bit ^= 1
                self.queue = self.queue[1:]
                return self._transmit(now)
            case _:
                raise AssertionError(event)

    def next_deadline(self) -> float | None:
        return self.deadline

    def check_invariants(self) -> None:
        if (self.deadline is None) != (not self.queue):
            raise InvariantError("a time-out without reason, or none with reason")

    def state(self) -> Hashable:
        return (self.bit, self.queue, self.deadline)

    def restore(self, state: Hashable) -> None:
        self.bit, self.queue, self.deadline = state  # type: ignore[misc]

    def describe(self) -> Mapping[str, object]:
        return {"queue": self.queue}


class Sink:
    """Hands up what is new. A naive sink believes that everything is."""

    def __init__(self, *, naive: bool) -> None:
        self.naive = naive
        self.bit = 0

    def handle(self, event: Received, now: float) -> Sequence[Send | Got]:
        match event.message:
            case Data(bit, item):
                answer = Send(SOURCE, Ack(bit), Lane.DATA)
                if bit != self.bit and not self.naive:
                    return [answer]
                self.bit ^= 1
                return [Got(item), answer]
            case _:
                raise AssertionError(event)

    def next_deadline(self) -> float | None:
        return None

    def check_invariants(self) -> None:
        pass

    def state(self) -> Hashable:
        return self.bit

    def restore(self, state: Hashable) -> None:
        assert isinstance(state, int)
        self.bit = state

    def describe(self) -> Mapping[str, object]:
        return {"bit": self.bit}


class LinkModel(Model[Source | Sink]):
    """Items go from a source to a sink; the ghost is what the sink handed up."""

    def __init__(
        self,
        rules: LaneRules,
        *,
        items: int = 2,
        naive: bool = False,
        ticks: int | None = None,
        rebased: bool = False,
    ) -> None:
        self.lanes = {Lane.DATA: rules}
        self.items = items
        self.naive = naive
        self.max_ticks = ticks
        self.rebased = rebased

    def machines(self) -> Mapping[NodeId, Source | Sink]:
        return {SOURCE: Source(), SINK: Sink(naive=self.naive)}

    def scripts(self) -> Sequence[Script]:
        return [Script("user", tuple(tell(SOURCE, Put(item)) for item in range(self.items)))]

    def ghost(self) -> Hashable:
        return ()

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        assert isinstance(run.ghost, tuple)
        assert isinstance(effect, Got)
        run.ghost = (*run.ghost, effect.item)

    def invariant(self, view: View[Source | Sink]) -> None:
        got = view.ghost
        assert isinstance(got, tuple)
        assert got == tuple(range(len(got))), f"handed up {got}"

    def quiet(self, view: View[Source | Sink]) -> None:
        assert view.ghost == tuple(range(self.items)), f"in the end there is only {view.ghost}"

    def rebase(self, node: NodeId, state: Hashable, by: float) -> Hashable:
        return rebase_floats(state, by) if self.rebased else None
