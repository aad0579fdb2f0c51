"""OSG in every order of events: no epoch hangs, and after one every estimate is right."""

from collections.abc import Sequence

import pytest

from dsp.balance.events import SchedulerEffect
from dsp.balance.machine_osg import OsgScheduler, SchedulerState
from dsp.core.machine import PeerAppeared, PeerLost
from dsp.core.types import NodeId
from dsp.testing.explorer import View, explore, tell
from tests.balance.models import OSG, A, B, C, Choosing, Doing, S, T

CASES = {
    "one scheduler": OSG(8),
    "two schedulers": OSG(4, schedulers=(S, T)),
    "one comes": OSG(7, comings=[tell(S, PeerAppeared(C))], equal=True),
    "one goes": OSG(8, comings=[tell(S, PeerLost(A))]),
    "one comes, one goes": OSG(
        6, comings=[tell(S, PeerAppeared(C)), tell(S, PeerLost(A))], equal=True
    ),
    "all go, one after the other": OSG(6, comings=[tell(S, PeerLost(A)), tell(S, PeerLost(B))]),
}


@pytest.mark.parametrize("case", CASES)
def test_no_epoch_hangs_and_estimates_are_right(case: str) -> None:
    result = explore(CASES[case], max_states=200_000)
    result.assert_holds()


def test_every_state_of_the_paper_is_reached() -> None:
    seen: set[SchedulerState] = set()

    class Watched(OSG):
        def invariant(self, view: View[Choosing | Doing]) -> None:
            machine = view.machine(S)
            assert isinstance(machine, Choosing)
            seen.add(machine.scheduler.status)

    explore(Watched(8)).assert_holds()
    assert seen == {*SchedulerState}


class WaitsForTheDead(OsgScheduler):
    """One that is lost is still waited for."""

    def _lose(self, peer: NodeId) -> None:
        status, awaited = self.status, [way for way in self._ways.values() if way.awaited]
        super()._lose(peer)
        if status is SchedulerState.WAIT_ALL and awaited:
            self.status = status
            next(iter(self._ways.values())).awaited = True


class ForgetsTheBase(OsgScheduler):
    """A newcomer's first load counts as work that it was given."""

    def _appear(self, peer: NodeId) -> None:
        super()._appear(peer)
        self._ways[peer].base = 0.0


class AsksTooSoon(OsgScheduler):
    """A request has the estimate before the records that it comes with."""

    def _depart(self, to: NodeId, behind: float) -> list[SchedulerEffect]:
        return super()._depart(to, behind + 1.0)


@pytest.mark.parametrize(
    ("make", "comings"),
    [
        (WaitsForTheDead, [tell(S, PeerLost(A))]),
        (ForgetsTheBase, [tell(S, PeerAppeared(C))]),
        (AsksTooSoon, []),
    ],
)
def test_without_a_rule_it_fails(make: type[OsgScheduler], comings: Sequence[object]) -> None:
    result = explore(OSG(8, comings=comings, make=make, equal=True))  # type: ignore[arg-type]
    assert result.violation is not None, str(result)


@pytest.mark.verify
@pytest.mark.parametrize(
    "model",
    [
        OSG(14),
        OSG(7, schedulers=(S, T)),
        OSG(10, comings=[tell(S, PeerAppeared(C)), tell(S, PeerLost(A))], equal=True),
        OSG(
            5,
            schedulers=(S, T),
            comings=[tell(S, PeerAppeared(C)), tell(T, PeerLost(A))],
            equal=True,
        ),
    ],
)
def test_larger_sizes(model: OSG) -> None:
    explore(model, workers=2).assert_holds()
