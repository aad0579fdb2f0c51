"""Addresses of the mesh: those that cannot be, those that are taken, and those that need a look."""

import asyncio
import os
import re
import socket
from contextlib import aclosing
from pathlib import Path

import pytest

from dsp.config import TransportConfig, ZmqConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ConfigError, ConnectError, PeerUnreachable
from dsp.testing.contract.harness import check
from dsp.transport.base import Undelivered
from dsp.transport.zmq.address import MAX_IPC_PATH, Address
from tests.contract.ports import free_port
from tests.contract.zmq_contract import ZmqIpcHarness
from tests.contract.zmq_trouble import LOCAL, MeshHarness, MeshSessions, mesh

# What no URL of any transport may be is tried in tests/config.
NOWHERE = "a..b"  # no name server is asked for it
KEY = "0" * 64


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("zmq+tcp://127.0.0.1", "has no port; write zmq"),
        ("zmq+tcp://127.0.0.1:65535", r"name one, as in \?data="),
        ("zmq+tcp://127.0.0.1:5555?data=5555", "need a port each"),
        ("zmq+tcp://127.0.0.1:5555?lane=1", "unknown parameter 'lane'; write"),
        ("zmq+tcp://127.0.0.1:5555/path", "has a path; write"),
        (f"zmq+tcp://127.0.0.1:5555?curve={KEY}", "curve_secret_key_file"),
        ("zmq+tcp://127.0.0.1:5555?curve=12", "64 hexadecimal digits"),
        ("zmq+ipc://relative/path", "malformed; write zmq"),
        ("zmq+ipc:///tmp/", "names a directory; write zmq"),
        (f"zmq+ipc:///{'x' * MAX_IPC_PATH}", "use a shorter directory"),
    ],
)
def test_urls_that_cannot_be_an_endpoint(url: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy) as refusal:
        mesh(TransportConfig(url=url))
    assert "transport.url" in str(refusal.value)


@pytest.mark.parametrize("node", ["", "x" * 256, "é" * 128])
def test_names_that_do_not_fit_into_a_hello(node: str) -> None:
    with pytest.raises(ConfigError, match=r"node\.id: .*1 to 255 bytes"):
        mesh(TransportConfig(url=LOCAL), node)


@pytest.mark.parametrize(
    ("url", "host", "remedy"),
    [
        (LOCAL, "gateway:5555", "without a port"),
        (LOCAL, "0.0.0.0", "is a wildcard"),
        (LOCAL, "::", "is a wildcard"),
        ("zmq+ipc:///tmp/endpoint", "gateway", "has no host"),
    ],
)
def test_hosts_that_nobody_could_dial(url: str, host: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=f"advertise: .*{remedy}"):
        mesh(TransportConfig(url=url, zmq=ZmqConfig(advertise=host)))


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        (f"zmq+tcp://{NOWHERE}:0", "cannot look up a..b"),
        ("zmq+tcp://192.0.2.1:0?data=0", "0.0.0.0 stands for all"),  # no machine has it
        ("zmq+ipc:///no/such/directory/endpoint", "make it first"),
        ("zmq+ipc:///etc/passwd/endpoint", "make it first"),
    ],
)
def test_addresses_that_cannot_be_opened(url: str, cause: str) -> None:
    with pytest.raises(ConnectError, match=cause):
        asyncio.run(mesh(TransportConfig(url=url)).start())


class TestAddresses(MeshHarness):
    @check
    async def test_port_in_use(self) -> None:
        for lane in range(2):
            async with self.serving() as tried:
                taken = Address.parse(tried.contact.address).ports[lane]
                ports = (taken, 0) if lane == 0 else (0, taken)
                second = self.make("second", url="zmq+tcp://127.0.0.1:{}?data={}".format(*ports))
                error = await self.refused(ConnectError, second.start(), "a port that is taken")
                assert f"127.0.0.1:{taken}: it is in use: end the other" in str(error)

    @check
    async def test_a_failed_start_lets_go_of_the_first_port(self) -> None:
        async with self.serving() as tried:
            taken, free = Address.parse(tried.contact.address).ports[0], free_port()
            url = f"zmq+tcp://127.0.0.1:{free}?data={taken}"
            await self.refused(ConnectError, self.make("a", url=url).start(), "a taken port")
            async with self.make("a", url=f"zmq+tcp://127.0.0.1:{free}?data=0"):
                pass

    @check
    async def test_any_free_port(self) -> None:
        async with self.endpoints("a") as (a,):
            address = Address.parse(a.contact.address)
            address.check_reachable()
            assert address.ports[0] != address.ports[1]

    @check
    async def test_the_short_form_uses_the_next_port_for_data(self) -> None:
        port = next(port for port in iter(free_port, 0) if port % 2 == 0)
        async with self.make("a", url=f"zmq://127.0.0.1:{port}") as a:
            assert a.contact.address == f"zmq+tcp://127.0.0.1:{port}?data={port + 1}"

    @check
    async def test_a_host_name_that_resolves(self) -> None:
        async with self.make("a", url="zmq+tcp://localhost:0") as a, self.make("b") as b:
            assert a.contact.address.startswith("zmq+tcp://localhost:")
            await self.echo(a, b)

    @check
    async def test_a_wildcard_tells_a_host_that_can_be_dialled(self) -> None:
        for host in ("0.0.0.0", "*"):
            a = self.make("a", url=f"zmq+tcp://{host}:0")
            if not has_a_route():
                error = await self.refused(ConnectError, a.start(), "a host without a network")
                assert "transport.zmq.advertise" in str(error)
                continue
            async with a, self.make("b") as b:
                assert not Address.parse(a.contact.address).is_wildcard
                await self.echo(b, a)

    @check
    async def test_a_wildcard_with_the_host_to_tell(self) -> None:
        told = ZmqConfig(advertise="127.0.0.1")
        async with (
            self.make("a", url="zmq+tcp://0.0.0.0:0", zmq=told) as a,
            self.make("b") as b,
        ):
            assert a.contact.address.startswith("zmq+tcp://127.0.0.1:")
            await self.echo(b, a)

    @pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
    @check
    async def test_ipv6(self) -> None:
        a = self.make("a", url="zmq+tcp://[::1]:0")
        try:
            await a.start()
        except ConnectError as error:
            pytest.skip(f"no IPv6: {error}")
        async with aclosing(a), self.make("b", url="zmq+tcp://[::1]:0") as b:
            assert a.contact.address.startswith("zmq+tcp://[::1]:")
            await self.echo(a, b)

    @check
    async def test_addresses_of_no_peer(self) -> None:
        async with self.serving() as tried:
            for address in (
                "",
                "nowhere",
                "tcp://127.0.0.1:1",
                "zmq+tcp://127.0.0.1",
                "zmq+tcp://127.0.0.1:0",
                "zmq+tcp://0.0.0.0:1",
                "zmq+tcp://*:1",
                "zmq+tcp://[::1:1",
                "zmq+ipc://relative",
            ):
                sending = tried.send(Peer(NodeId("b"), address), b"", lane=Lane.DATA)
                error = await self.refused(PeerUnreachable, sending, f"the address {address!r}")
                assert re.search(r"^b: ", str(error))

    @check
    async def test_a_peer_whose_name_does_not_resolve_is_tried_until_the_end(self) -> None:
        async with self.serving(drain_timeout=0.1) as tried:
            peer = Peer(NodeId("b"), f"zmq+tcp://{NOWHERE}:1")
            await tried.send(peer, b"x", lane=Lane.DATA)
            await self.fault(tried, "unresolvable host", 2)
        assert Undelivered(peer, Lane.DATA, (b"x",)) in await self.remaining(tried, Lane.CONTROL)

    @check
    async def test_a_peer_where_nobody_listens_is_tried_until_it_does(self) -> None:
        address = f"zmq+tcp://127.0.0.1:{free_port()}?data={free_port()}"
        async with self.serving() as tried:
            await tried.send(Peer(NodeId("late"), address), b"x", lane=Lane.DATA)
            await self.fault(tried, "failed dial", 2)
            async with self.make("late", url=address) as late:
                assert (await self.next_frame(late, Lane.DATA)).payload == b"x"


class TestAddressesThroughSessions(MeshSessions):
    @check
    async def test_addresses_of_no_peer(self) -> None:
        """What an adapter refuses in ``send`` comes back through a session, at once."""
        async with self.serving() as tried:
            for address in ("nowhere", "zmq+tcp://127.0.0.1:0", "zmq+tcp://0.0.0.0:1"):
                peer = Peer(NodeId("b"), address)
                await self.is_refused(tried, peer, "is not an address|port 0|wildcard")
                await self.is_refused(tried, peer, "is not an address|port 0|wildcard")


class TestPaths(ZmqIpcHarness):
    @check
    async def test_path_in_use(self) -> None:
        async with self.endpoints("a", "b") as (a, b):
            second = self.make("a")
            error = await self.refused(ConnectError, second.start(), "a path that is in use")
            assert "it is in use: end the other process" in str(error)
            await b.send(a.contact, b"still there", lane=Lane.DATA)
            assert (await self.next_frame(a, Lane.DATA)).payload == b"still there"

    @check
    async def test_a_file_that_is_no_socket_is_left_alone(self) -> None:
        address = Address.parse(self.config("a").url)
        (precious := Path(address.path(Lane.DATA))).touch()
        error = await self.refused(ConnectError, self.make("a").start(), "the path of a file")
        assert "no socket: remove it" in str(error)
        assert files_of(address) == [str(precious)]

    @check
    async def test_a_socket_that_a_killed_process_left(self) -> None:
        address = Address.parse(self.config("a").url)
        for lane in Lane:
            # Bound and closed as a kill would: the file stays, nobody listens.
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(address.path(lane))
        async with self.endpoints("a", "b") as (a, b):
            await b.send(a.contact, b"anew", lane=Lane.DATA)
            assert (await self.next_frame(a, Lane.DATA)).payload == b"anew"

    @check
    async def test_a_closed_endpoint_leaves_no_files(self) -> None:
        address = Address.parse(self.config("a").url)
        async with self.endpoints("a"):
            assert len(files_of(address)) == len(Lane)
        assert files_of(address) == []


def files_of(address: Address) -> list[str]:
    """Give the paths of an endpoint at which there is something."""
    return [address.path(lane) for lane in Lane if os.path.exists(address.path(lane))]


def has_a_route() -> bool:
    """Tell whether this machine has a network but itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return False
    return True
