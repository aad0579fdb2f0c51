"""``sim://NETWORK/NAME``: an endpoint of a simulated network, a transport like the others."""

import struct
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import urlsplit

from dsp.errors import ClosedError, CodecError, ConfigError, PeerUnreachable
from dsp.transport.adapter import AdapterTransport, Link
from dsp.transport.base import Guarantees, Lane, NodeId, Peer
from dsp.transport.sim.network import SimNetwork

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["SimTransport"]

# On the wire: magic, lane, length of the sender's name, the name, the payload. A real header, so
# that garbage can be told from frames as on a real network.
_HEADER = struct.Struct("!2sBH")
_MAGIC = b"ds"
_LANES = tuple(Lane)


class SimTransport(AdapterTransport[Link]):
    """A process's endpoint in a simulated network.

    The URL names the network and the endpoint: ``sim://world/gateway-1``. ``sim://world`` alone
    takes the node's id as the name. Inside a ``dsp.testing.World`` the network ``world`` is that
    world's; elsewhere a network is made on first use and runs in the loop's own time.
    """

    scheme: ClassVar[str] = "sim"

    def __init__(self, config: "TransportConfig", node: NodeId, network: str) -> None:
        super().__init__(config, node)
        self._network_name = network
        self._network: SimNetwork | None = None
        self._promised = {lane: [0, 0] for lane in Lane}
        self.guarantees = _guarantees(config.max_frame_bytes, None)

    @classmethod
    def from_config(cls, config: "TransportConfig", node: NodeId) -> Self:
        network, name = parse_sim_url(config.url)
        return cls(config, NodeId(name) if name else node, network)

    @property
    def contact(self) -> Peer:
        if self._network is None:
            raise ClosedError(f"{self._name} is not started")
        return self._peer(self._node)

    # -- what the shared half asks for ----------------------------------------------------

    async def _open(self) -> None:
        network = SimNetwork.of_running_loop(self._network_name)
        # Far apart, so that a session's epochs, which count up from it, stay below the next one.
        self._epoch = network.attach(self._node, self) << 32
        self._network = network
        self.guarantees = _guarantees(self._config.max_frame_bytes, network)

    def _connect(self, to: Peer, lane: Lane) -> Link:
        self._check_address(to)
        return Link(to, lane, self._config)

    def _readdress(self, link: Link, to: Peer) -> None:
        self._check_address(to)
        link.peer = to

    def _wake(self, link: Link) -> None:
        if len(link.queue) == 1:
            self._pump(link)

    def _pump(self, link: Link) -> None:
        assert self._network is not None
        while self._is_open and (payload := link.queue.peek()) is not None:
            name = self._node.encode()
            wire = _HEADER.pack(_MAGIC, _LANES.index(link.lane), len(name)) + name + payload
            sent = self._network.transmit(
                self._node, link.peer.id, link.lane, wire, payload, lambda: self._pump(link)
            )
            if not sent:
                return
            link.queue.get_nowait()
            self._handed_over()

    def _release(self) -> None:
        if self._network is not None:
            known = list(dict.fromkeys([*self._up, *(node for node, _ in self._links)]))
            self._network.detach(self._node, known, "closed")

    def _room(self, lane: Lane) -> None:
        if self._network is not None:
            self._network.kick(self._node, lane)

    # -- what the network asks for --------------------------------------------------------

    def reserve(self, lane: Lane, size: int) -> bool:
        frames, total = self._promised[lane]
        inbox = self._inboxes[lane]
        frames, total = frames + len(inbox), total + inbox.bytes
        if frames and (
            frames >= self._config.receive_queue_frames
            or total + size > self._config.receive_queue_bytes
        ):
            inbox.notify()
            return False
        self._promise(lane, 1, size)
        return True

    def release(self, lane: Lane, size: int) -> None:
        self._promise(lane, -1, -size)
        # A frame that was lost on the way leaves room that nobody else will tell of.
        self._room(lane)

    def _promise(self, lane: Lane, frames: int, size: int) -> None:
        self._promised[lane][0] += frames
        self._promised[lane][1] += size

    def deliver(self, wire: bytes) -> None:
        try:
            lane, name, payload = _decode(wire)
        except CodecError:
            self._rejected(Lane.DATA)
            return
        self._arrived(self._peer(name), lane, payload)

    def peer_gone(self, node: NodeId, reason: str) -> None:
        self._peer_down(self._peer(node), reason)

    def peer_came(self, node: NodeId) -> None:
        self._peer_up(self._peer(node))

    # -- inside ---------------------------------------------------------------------------

    def _peer(self, node: NodeId) -> Peer:
        return Peer(node, f"sim://{self._network_name}/{node}")

    def _check_address(self, to: Peer) -> None:
        if to.address != self._peer(to.id).address:
            raise PeerUnreachable(
                f"{to}: {self._name} reaches sim://{self._network_name}/NAME, where NAME is the "
                f"peer's id"
            )


def parse_sim_url(url: str) -> tuple[str, str]:
    """Split ``sim://network/name`` into its two parts; the name may be empty.

    Raises:
        ConfigError: it is not such a URL.
    """
    parts = urlsplit(url)
    name = parts.path.removeprefix("/")
    if not parts.netloc or "/" in name or parts.query or parts.fragment:
        raise ConfigError(f"transport.url: {url!r} is not sim://NETWORK or sim://NETWORK/NAME")
    return parts.netloc, name


def _guarantees(max_frame_bytes: int, network: SimNetwork | None) -> Guarantees:
    # What the network's general conditions allow. Faults that a test injects later are faults.
    conditions = network.conditions if network is not None else None
    return Guarantees(
        ordered=conditions is None or conditions.reorder == 0,
        reliable=conditions is None or conditions.loss == 0,
        durable=False,
        duplicates=conditions is not None and conditions.duplicate > 0,
        max_frame_bytes=max_frame_bytes,
    )


def _decode(wire: bytes) -> tuple[Lane, NodeId, bytes]:
    if len(wire) < _HEADER.size:
        raise CodecError(f"sim frame of {len(wire)} bytes is shorter than its header")
    magic, lane, length = _HEADER.unpack_from(wire)
    end = _HEADER.size + length
    if magic != _MAGIC or lane >= len(_LANES) or end > len(wire):
        raise CodecError("not a sim frame")
    try:
        name = wire[_HEADER.size : end].decode()
    except UnicodeDecodeError as error:
        raise CodecError("sim frame whose sender is not UTF-8") from error
    return _LANES[lane], NodeId(name), wire[end:]
