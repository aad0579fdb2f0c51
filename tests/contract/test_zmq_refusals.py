"""Endpoints of the mesh that mean well and do not fit: both ends learn of it, and soon."""

import re

from dsp.core.types import Lane, NodeId, Peer
from dsp.testing.contract.harness import check
from dsp.transport.base import Undelivered
from dsp.transport.zmq.address import Address
from tests.contract.ports import free_port
from tests.contract.zmq_trouble import MeshHarness, MeshSessions

SMALL = 64 * 1024


def with_ports(peer: Peer, control: int, data: int) -> Peer:
    """Give the same peer at other ports."""
    return Peer(peer.id, f"zmq+tcp://127.0.0.1:{control}?data={data}")


class RefusalChecks(MeshHarness):
    @check
    async def test_another_peer_answers(self) -> None:
        """Frames go to the peer that they are for, or to nobody."""
        async with self.serving() as tried, self.make("b") as b:
            wrong = Peer(NodeId("c"), b.contact.address)
            for lane in Lane:
                await self.is_refused(tried, wrong, "b .* answers at the address of c$", lane)
            assert [await self.quiet(b, lane) for lane in Lane] == [[], []]

    @check
    async def test_ports_that_are_mixed_up(self) -> None:
        async with self.serving() as tried, self.make("b") as b:
            control, data = Address.parse(b.contact.address).ports
            wrong = with_ports(b.contact, data, control)
            await self.is_refused(tried, wrong, "b refuses us: .*the ports are mixed up")
            await self.fault(b, "bad hello")
            assert sum(lane.rejected_frames for lane in b.statistics().lanes.values()) == 1

    @check
    async def test_the_port_of_data_is_wrong(self) -> None:
        """CONTROL is right, so the two talk; DATA comes back all the same."""
        async with self.serving() as tried, self.make("b") as b, self.make("c") as c:
            wrong = with_ports(
                b.contact,
                Address.parse(b.contact.address).ports[0],
                Address.parse(c.contact.address).ports[1],
            )
            await tried.send(wrong, b"right", lane=Lane.CONTROL)
            assert (await self.next_frame(b, Lane.CONTROL)).payload == b"right"
            await self.is_refused(tried, wrong, "c .* answers at the address of b$")
            assert await self.quiet(c, Lane.DATA) == []

    @check
    async def test_a_refusal_is_no_verdict_for_ever(self) -> None:
        """The right address is tried at once, though the wrong one was refused just now."""
        async with self.serving() as tried, self.make("b") as b:
            control, data = Address.parse(b.contact.address).ports
            for _ in range(3):
                wrong = with_ports(b.contact, data, control)
                await self.is_refused(tried, wrong, "the ports are mixed up")
                await self.echo(tried, b)

    @check
    async def test_a_peer_is_replaced_by_another(self) -> None:
        """A link that worked is refused from one day on."""
        url = f"zmq+tcp://127.0.0.1:{free_port()}?data={free_port()}"
        async with self.serving() as tried:
            b = self.make("b", url=url)
            await b.start()
            peer = b.contact
            await self.echo(tried, b)
            b.abort()
            async with self.make("c", url=url):
                down = await self.refusal(tried)
                assert down.peer == peer
                assert re.search("c .* answers at the address of b$", down.reason)


class TestRefusals(RefusalChecks):
    @check
    async def test_a_frame_over_the_limit_of_the_peer(self) -> None:
        """It comes back with the reason; those around it arrive."""
        async with self.serving() as tried, self.make("b", max_frame_bytes=SMALL) as b:
            large = bytes(SMALL + 1)
            for payload in (b"one", large, b"two"):
                await tried.send(b.contact, payload, lane=Lane.DATA)
            assert await self.payloads(b, Lane.DATA, 2) == [b"one", b"two"]
            back: Undelivered = await self.next(tried, Undelivered)
            assert back.payloads == (large,)
            assert f"{SMALL} bytes at most, not of {SMALL + 1}: raise transp" in back.reason
            assert tried.statistics().faults == {"frame too large": 1}


class TestRefusalsThroughSessions(MeshSessions, RefusalChecks):
    @check
    async def test_a_frame_over_the_limit_of_the_peer(self) -> None:
        """What can never arrive ends the session, with what is behind it; the next one is sound."""
        async with self.serving() as tried, self.make("b", max_frame_bytes=SMALL) as b:
            await self.echo(tried, b)
            large = bytes(2 * SMALL)
            for payload in (b"one", large, b"two"):
                await tried.send(b.contact, payload, lane=Lane.DATA)
            down = await self.refusal(tried)
            assert "bytes at most, not of" in down.reason
            await self.gets_back(tried, b.contact.id, (large,))
            assert large not in await self.quiet(b, Lane.DATA)
            await self.echo(tried, b)
            assert tried.statistics().faults["frame too large"] >= 1
