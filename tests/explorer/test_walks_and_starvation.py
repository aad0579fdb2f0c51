"""Random walks, and fair runs in which somebody starves."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import pytest

from dsp.core.machine import Received, Send
from dsp.core.types import NodeId
from dsp.testing.explorer import (
    Kind,
    Model,
    Script,
    Snapshot,
    View,
    find_starvation,
    random_walks,
    replay,
    tell,
)
from dsp.testing.explorer.engine import Engine
from tests.explorer.locks import Ask, Enter, Exit, Lock, LockModel, names

CLERK = NodeId("clerk")


def test_walks_find_the_broken_lock_and_repeat_it_from_the_seed() -> None:
    model = LockModel(names(4), entries=3, tie_break=False)
    result = random_walks(model, seed=7, walks=500, steps=500)
    assert result.violation is not None
    assert result.seed is not None
    again = random_walks(model, seed=result.seed, steps=500)
    assert again.violation == result.violation
    assert len(replay(model, result.violation.trace)) == len(result.violation.trace) + 1
    whole = random_walks(model, seed=result.seed, steps=500, shortest=False)
    assert whole.violation is not None
    assert len(result.violation.trace) <= len(whole.violation.trace)
    assert f"seed {result.seed!r}" in str(result)


def test_walks_give_the_same_for_any_number_of_workers() -> None:
    for tie_break in (True, False):
        model = LockModel(names(3), entries=2, tie_break=tie_break)
        alone = random_walks(model, seed=3, walks=20)
        together = random_walks(model, seed=3, walks=20, workers=2)
        assert replace(alone, seconds=0.0) == replace(together, seconds=0.0)
        assert alone.holds is tie_break


def test_walks_through_a_large_lock_find_nothing() -> None:
    result = random_walks(LockModel(names(6), entries=2), seed=1, walks=10, steps=1000)
    assert result.holds
    assert result.quiet == 10
    assert not result.complete


def test_every_walk_begins_at_the_start() -> None:
    engine = Engine(LockModel(names(3), entries=1))
    first = engine.initial()
    state, fingerprint = first
    for _ in range(5):
        _, state, fingerprint = engine.successors(state, fingerprint)[-1]
    assert engine.initial()[1] == first[1]


class Clerk:
    """Lets in one at a time: who waits longest, or, unfairly, who has the first name."""

    def __init__(self, *, fair: bool) -> None:
        self.fair = fair
        self.inside: NodeId | None = None
        self.queue: tuple[NodeId, ...] = ()

    def handle(self, event: Received, now: float) -> Sequence[Send]:
        if event.message == "ask":
            self.queue += (event.sender,)
        else:
            self.inside = None
        if self.inside is not None or not self.queue:
            return []
        queue = self.queue if self.fair else tuple(sorted(self.queue))
        self.inside, self.queue = queue[0], queue[1:]
        return [Send(self.inside, "grant")]

    def next_deadline(self) -> float | None:
        return None

    def check_invariants(self) -> None:
        pass

    def state(self) -> Hashable:
        return (self.inside, self.queue)

    def restore(self, state: Hashable) -> None:
        self.inside, self.queue = state  # type: ignore[misc]

    def describe(self) -> Mapping[str, object]:
        return {}


class Customer:
    def __init__(self) -> None:
        self.status = "idle"

    def handle(self, event: Enter | Exit | Received, now: float) -> Sequence[Send]:
        match event:
            case Enter():
                self.status = "waiting"
                return [Send(CLERK, "ask")]
            case Exit():
                self.status = "idle"
                return [Send(CLERK, "free")]
            case Received():
                self.status = "inside"
                return []

    def next_deadline(self) -> float | None:
        return None

    def check_invariants(self) -> None:
        pass

    def state(self) -> Hashable:
        return self.status

    def restore(self, state: Hashable) -> None:
        self.status = str(state)

    def describe(self) -> Mapping[str, object]:
        return {}


def in_status(name: NodeId, status: str) -> Callable[[View[Clerk | Customer]], bool]:
    return lambda view: view.state(name) == status


class Shop(Model[Clerk | Customer]):
    """Customers come again and again; they may stay away, but who is inside goes in the end."""

    def __init__(self, *, fair: bool, leaves: bool = True, count: int = 2) -> None:
        self.fair = fair
        self.leaves = leaves
        self.customers = names(count)

    def machines(self) -> Mapping[NodeId, Clerk | Customer]:
        customers = {name: Customer() for name in self.customers}
        return {CLERK: Clerk(fair=self.fair), **customers}

    def scripts(self) -> Sequence[Script]:
        return [
            Script(
                name,
                (
                    tell(name, Enter(), fair=False),
                    tell(
                        name,
                        Exit(),
                        when=in_status(name, "inside"),
                        fair=self.leaves,
                    ),
                ),
                endless=True,
            )
            for name in self.customers
        ]


def waiting(name: NodeId) -> Callable[[View[Clerk | Customer]], bool]:
    return in_status(name, "waiting")


@pytest.mark.parametrize("count", [2, 3])
def test_fair_lock_starves_nobody(count: int) -> None:
    shop = Shop(fair=True, count=count)
    result = find_starvation(shop, {name: waiting(name) for name in shop.customers})
    result.assert_holds()
    assert result.quiet == 0


def test_unfair_lock_starves_the_last_name() -> None:
    shop = Shop(fair=False, count=3)
    result = find_starvation(shop, {name: waiting(name) for name in shop.customers})
    assert result.violation is not None
    assert result.violation.kind is Kind.STARVATION
    starved = NodeId(result.violation.message.removesuffix(" can wait for ever"))
    states = replay(shop, [*result.violation.trace, *result.violation.cycle])
    start = len(result.violation.trace)
    assert states[start] == states[-1], "the cycle is closed"
    assert all(state.states[starved] == "waiting" for state in states[start:])
    others = [step.what for step in result.violation.cycle if "receives 'grant'" in step.what]
    assert others, "somebody else gets in all the time"
    assert "and then for ever:" in str(result)


def test_two_with_an_unfair_clerk_are_served() -> None:
    # With two, the one inside cannot be in the queue before the other one is let in.
    shop = Shop(fair=False, count=2)
    find_starvation(shop, {name: waiting(name) for name in shop.customers}).assert_holds()


def test_who_never_leaves_starves_the_others() -> None:
    shop = Shop(fair=True, leaves=False)
    result = find_starvation(shop, {name: waiting(name) for name in shop.customers})
    assert result.violation is not None
    assert result.violation.cycle == ()
    assert "and then nothing has to happen." in str(result)


class Relative(LockModel):
    """The lock with endless entries: clocks are counted from the least one, or they never end."""

    def scripts(self) -> Sequence[Script]:
        return [
            Script(node, (tell(node, Enter(), fair=False), self.exit(node)), endless=True)
            for node in self.nodes
        ]

    def canonical(self, snapshot: Snapshot) -> Snapshot:
        rows = {node: list(state) for node, state in snapshot.states.items()}  # type: ignore[call-overload]
        for row in rows.values():
            if row[2] == "idle":
                row[1] = row[0]
        asks = [m.ts for frames in snapshot.channels.values() for m in frames if isinstance(m, Ask)]
        least = min([*asks, *(min(row[0], row[1]) for row in rows.values())])
        for row in rows.values():
            row[0] -= least
            row[1] -= least
        channels = {
            key: tuple(Ask(m.ts - least) if isinstance(m, Ask) else m for m in frames)
            for key, frames in snapshot.channels.items()
        }
        states = {node: tuple(row) for node, row in rows.items()}
        return replace(snapshot, states=states, channels=channels)


def asking(name: NodeId) -> Callable[[View[Lock]], bool]:
    return lambda view: view.machine(name).status == "asking"


def test_canonical_states_make_endless_entries_finite() -> None:
    model = Relative(names(2))
    result = find_starvation(model, {n: asking(n) for n in model.nodes}, max_states=20_000)
    result.assert_holds()
