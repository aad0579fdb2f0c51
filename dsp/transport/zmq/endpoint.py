"""``zmq+tcp://HOST:PORT`` and ``zmq+ipc:///PATH``: an endpoint of the brokerless mesh."""

import asyncio
import logging
import os
import socket as sockets
import stat
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Self

import zmq

from dsp.core.randomness import derive_random
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, ConfigError, ConnectError, PeerUnreachable
from dsp.transport.adapter import AdapterTransport
from dsp.transport.base import Guarantees
from dsp.transport.zmq.address import Address
from dsp.transport.zmq.curve import Security, load_security
from dsp.transport.zmq.door import Door
from dsp.transport.zmq.errors import map_errors
from dsp.transport.zmq.host import TURN_BYTES, Host
from dsp.transport.zmq.link import ZmqLink
from dsp.transport.zmq.wire import MAX_NAME_BYTES, Hello
from dsp.transport.zmq.zap import KeyCheck

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["ZmqTransport"]

# libzmq's own default of 1023 would be three hundred peers.
MAX_SOCKETS: Final = 32_768
# Documentation addresses (RFC 5737, 3849): nothing is sent, the system only chooses a route.
SOMEWHERE: Final = (
    (sockets.AF_INET, ("192.0.2.1", 9)),
    (sockets.AF_INET6, ("2001:db8::1", 9)),
)


class ZmqTransport(AdapterTransport[ZmqLink]):
    """A process's endpoint in a mesh of ZeroMQ sockets, without a broker.

    Each lane has a listening socket of its own, and each lane to each peer a dialling one, so the
    lanes share nothing but the process. Frames that libzmq holds when a connection breaks are
    lost: a ``Session`` over this sends them again.
    """

    scheme: ClassVar[str] = "zmq"

    def __init__(
        self, config: "TransportConfig", node: NodeId, address: Address, security: Security | None
    ) -> None:
        super().__init__(config, node)
        self.guarantees = Guarantees(
            ordered=True,
            reliable=True,
            durable=False,
            duplicates=False,
            max_frame_bytes=config.max_frame_bytes,
        )
        self._address = address
        self._security = security
        self._contact: Peer | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._host: Host | None = None
        self._doors: dict[Lane, Door] = {}
        self._key_check: KeyCheck | None = None
        self._connections: Counter[NodeId] = Counter()

    @classmethod
    def from_config(cls, config: "TransportConfig", node: NodeId) -> Self:
        try:
            address = Address.parse(config.url)
        except ValueError as error:
            raise ConfigError(f"transport.url: {error}") from error
        if address.key is not None:
            raise ConfigError(
                "transport.url: 'curve' is for the addresses of peers; our own key is named by "
                "transport.zmq.curve_secret_key_file"
            )
        if not 0 < len(node.encode()) <= MAX_NAME_BYTES:
            raise ConfigError(f"node.id: zmq:// takes 1 to {MAX_NAME_BYTES} bytes of UTF-8")
        if config.zmq.advertise is not None:
            _check_advertised(address, config.zmq.advertise)
        return cls(config, node, address, load_security(config.zmq))

    @property
    def contact(self) -> Peer:
        if self._contact is None:
            raise ClosedError(f"{self._name} is not started")
        return self._contact

    # -- what the shared half asks for ----------------------------------------------------

    async def _open(self) -> None:
        address = await self._numeric()
        context = self._context = zmq.Context(io_threads=len(Lane))
        context.set(zmq.MAX_SOCKETS, MAX_SOCKETS)
        host = self._host = self._make_host(context)
        if self._security is not None:
            self._key_check = KeyCheck(host)
        if address.kind == "ipc":
            await self._check_paths(address)
        for lane in Lane:
            self._doors[lane] = Door(host, lane, address)
        if address.kind == "tcp":
            ports = [int(self._doors[lane].bound.rpartition(":")[2]) for lane in Lane]
            address = replace(address, host=self._reached_at(), ports=(ports[0], ports[1]))
        key = self._security.public if self._security is not None else None
        self._contact = Peer(self._node, str(replace(address, key=key)))

    def _connect(self, to: Peer, lane: Lane) -> ZmqLink:
        assert self._host is not None
        random = derive_random(self._epoch, "pause", to.id, lane.value)
        return ZmqLink(self._host, to, lane, random)

    def _readdress(self, link: ZmqLink, to: Peer) -> None:
        link.readdress(to)

    def _link(self, to: Peer, payload: bytes, lane: Lane) -> ZmqLink:
        link = super()._link(to, payload, lane)
        if link.refusal is not None:
            raise PeerUnreachable(f"{to}: {link.refusal}")
        return link

    def _hand_over(self, link: ZmqLink, payload: bytes) -> bool:
        return link.send_now(payload)

    def send_halves_nowait(self, to: Peer, start: bytes, rest: bytes, *, lane: Lane) -> None:
        link = self._link(to, rest, lane)
        if not link.queue and link.send_halves_now(start, rest):
            self._handed_over_at_once(lane, len(start) + len(rest))
        else:
            super().send_halves_nowait(to, start, rest, lane=lane)

    def is_full(self, to: NodeId, lane: Lane) -> bool:
        link = self._links.get((to, lane))
        return link is not None and link.queue.bytes >= TURN_BYTES

    def _wake(self, link: ZmqLink) -> None:
        link.wake()

    def _room(self, lane: Lane) -> None:
        if lane in self._doors:
            self._doors[lane].room()

    async def _flush(self) -> None:
        await super()._flush()
        for link in self._links.values():
            link.say_bye()
        await super()._flush()

    def _release(self) -> None:
        for link in self._links.values():
            link.close()
        for door in self._doors.values():
            door.close()
        if self._key_check is not None:
            self._key_check.close()
        if self._context is not None:
            # Every socket is closed and lingers for nothing, so this waits for no peer.
            self._context.term()

    # -- what doors and links ask for -----------------------------------------------------

    def _make_host(self, context: "zmq.Context[zmq.Socket[bytes]]") -> Host:
        return Host(
            name=self._name,
            config=self._config,
            context=context,
            loop=self._loop,
            security=self._security,
            views={lane: inbox.takes_views for lane, inbox in self._inboxes.items()},
            hello=lambda: Hello(self.contact, self._config.max_frame_bytes),
            arrived=self._arrived,
            has_room=self._has_room,
            rejected=self._on_rejected,
            fault=self._fault,
            retried=partial(self._condition.fault, level=logging.INFO),
            undelivered=self._undelivered,
            unwanted=self._unwanted,
            handed_over=self._handed_over,
            joined=self._joined,
            left=self._left,
            reconnected=self._reconnected,
            refused=self._refused,
            failed=self._fail,
        )

    def _on_rejected(self, lane: Lane, cause: str, details: str) -> None:
        self._rejected(lane)
        self._fault(cause, details)

    def _unwanted(self, peer: Peer, lane: Lane, frame: bytes, reason: str) -> None:
        self._undelivered(peer, lane, [frame], reason)

    def _joined(self, peer: Peer) -> Peer:
        self._connections[peer.id] += 1
        self._peer_up(peer)
        for lane in Lane:
            if (link := self._links.get((peer.id, lane))) is not None:
                link.hurry()
        # Comparing two peers takes long, finding that they are the same object does not.
        known = self._up.get(peer.id)
        return known if known is not None and known == peer else peer

    def _left(self, peer: Peer, reason: str) -> None:
        self._connections[peer.id] -= 1
        if self._connections[peer.id] == 0:
            del self._connections[peer.id]
            self._peer_down(peer, reason)

    # -- addresses ------------------------------------------------------------------------

    async def _numeric(self) -> Address:
        """Give our address with a host that libzmq need not look up."""
        address = self._address
        if address.is_numeric or address.is_wildcard:
            return address
        with map_errors(f"{self._name} cannot look up {address.host}"):
            async with asyncio.timeout(self._config.connect_timeout):
                found = await self._loop.getaddrinfo(address.host, None, type=sockets.SOCK_STREAM)
        return address.with_host(str(found[0][4][0]))

    def _reached_at(self) -> str:
        """Give the host that peers are told to dial."""
        if self._config.zmq.advertise is not None:
            return self._config.zmq.advertise
        if not self._address.is_wildcard:
            return self._address.host
        for family, somewhere in SOMEWHERE:
            with sockets.socket(family, sockets.SOCK_DGRAM) as probe:
                try:
                    probe.connect(somewhere)
                except OSError:
                    continue
                return str(probe.getsockname()[0])
        raise ConnectError(
            f"{self._name} listens on all addresses and this machine has no route to anywhere: "
            f"name the host that peers shall dial in transport.zmq.advertise"
        )

    async def _check_paths(self, address: Address) -> None:
        """Check that nobody listens there: libzmq would take the path away from them."""
        for lane in Lane:
            path = address.path(lane)
            cannot = f"{self._name} cannot listen on {path}"
            with map_errors(cannot):
                try:
                    is_socket = stat.S_ISSOCK(os.lstat(path).st_mode)
                except FileNotFoundError:
                    continue
                if not is_socket:
                    raise ConnectError(
                        f"{cannot}: there is a file that is no socket: remove it, or choose "
                        f"another path"
                    )
                try:
                    async with asyncio.timeout(self._config.connect_timeout):
                        _, writer = await asyncio.open_unix_connection(path)
                except (ConnectionRefusedError, FileNotFoundError):
                    continue  # left behind by a process that died, or gone meanwhile
            writer.close()
            raise ConnectError(
                f"{cannot}: it is in use: end the other process, or choose another path"
            )


def _check_advertised(address: Address, host: str) -> None:
    """Check that peers can dial the host that they are told."""
    where = "transport.zmq.advertise"
    if address.kind == "ipc":
        raise ConfigError(f"{where}: zmq+ipc:// has no host; leave it out")
    told = address.with_host(host)
    try:
        Address.parse(str(told))
    except ValueError as error:
        raise ConfigError(
            f"{where}: {host!r} is not the name or number of a host; write it without a port"
        ) from error
    if told.is_wildcard:
        raise ConfigError(f"{where}: {host!r} is a wildcard; name the host that peers shall dial")
