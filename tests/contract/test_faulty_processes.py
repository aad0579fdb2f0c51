"""The process checks find faults: each faulty transport here fails where it must."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dsp.core.types import Lane, NodeId, Peer
from dsp.testing.contract.processes import ProcessContract
from dsp.transport.base import Transport
from dsp.transport.registry import transport_class
from tests.contract.tcp_package import TcpHarness

pytestmark = pytest.mark.usefixtures("tcp")

Base = Any  # the class is known to the registry, not to this module


def never_waits(tcp: Base) -> type[Transport]:
    """Has queues without a bound."""

    class NeverWaits(tcp):  # type: ignore[misc]
        async def send(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
            link = self._link(to, payload, lane)
            link.queue.force(payload, len(payload))
            self._accepted(link, len(payload))

    return NeverWaits


def gives_up(tcp: Base) -> type[Transport]:
    """Dials once and never again."""

    class GivesUp(tcp):  # type: ignore[misc]
        async def _converse(self, link: Any) -> None:  # noqa: ANN401
            if link.written == 0:
                await super()._converse(link)

    return GivesUp


def forgets_on_the_way(tcp: Base) -> type[Transport]:
    """Takes every fiftieth frame and does not write it."""

    class ForgetsOnTheWay(tcp):  # type: ignore[misc]
        def _wake(self, link: Any) -> None:  # noqa: ANN401
            if self._counters[link.lane].accepted % 50 == 0:
                link.queue.get_nowait()
            super()._wake(link)

    return ForgetsOnTheWay


def repeats(tcp: Base) -> type[Transport]:
    """Hands out every fiftieth frame twice, and declares no duplicates."""

    class Repeats(tcp):  # type: ignore[misc]
        def _arrived(self, sender: Peer, lane: Lane, payload: bytes) -> None:
            super()._arrived(sender, lane, payload)
            if self._counters[lane].received % 50 == 0:
                super()._arrived(sender, lane, payload)

    return Repeats


@pytest.mark.parametrize(
    ("make_faulty", "must_fail", "because"),
    [
        (never_waits, "test_receiver_is_stopped_and_goes_on", "send never waits"),
        (gives_up, "test_receiver_is_killed_and_returns", "frames on data; received"),
        (forgets_on_the_way, "test_receiver_is_killed_and_returns", "the final frames"),
        (repeats, "test_sender_is_killed_and_returns", "came twice"),
    ],
)
def test_a_fault_is_found(
    make_faulty: Callable[[Base], type[Transport]], must_fail: str, because: str
) -> None:
    faulty = make_faulty(transport_class("tcp://127.0.0.1:0"))

    class Contract(TcpHarness, ProcessContract):
        """This process is the one at fault; its children are sound."""

        patience = 5.0
        kills = 1
        stops = 1

        def make(self, node: str, **settings: Any) -> Transport:  # noqa: ANN401
            return faulty.from_config(self.config(node, **settings), NodeId(node))

    with pytest.raises((AssertionError, ExceptionGroup)) as failure:
        getattr(Contract(), must_fail)()
    assert because in "\n".join(_messages(failure.value))


def _messages(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _messages(inner)
    else:
        yield str(error)
