"""Messages of mutual exclusion as bytes, and back.

Machines know members by name; on the wire the names in a view come with the address of their
process, so that whoever learns of a member can reach it. The codec asks for addresses, and tells
those it reads.
"""

from collections.abc import Callable, Hashable, Iterable

from dsp._pb.mutex_pb2 import (
    MutexAck,
    MutexBye,
    MutexExpelled,
    MutexFrame,
    MutexHello,
    MutexMember,
    MutexRequest,
    MutexWelcome,
)
from dsp.core.envelope import Envelope, decode_envelope, encode_envelope
from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.mutex.events import Ack, Bye, Carried, Expelled, Hello, Req, View, Welcome
from dsp.mutex.wire_fixed import FIXED_BODIES, decode_fixed, encode_fixed
from dsp.mutex.wire_quick import decode_quickly, encode_quickly

__all__ = ["MutexCodec", "to_envelope", "from_envelope"]

MAX_NAME = 1024


def _nowhere(name: NodeId) -> str:
    return ""


def _forget(name: NodeId, address: str) -> None:
    pass


class MutexCodec:
    """Maps messages of mutual exclusion to bytes and back.

    Args:
        address_of: gives the address of a member, or an empty text.
        learn: told of every name with an address that is read.
        source: the instance that speaks, written into the envelope.
    """

    def __init__(
        self,
        address_of: Callable[[NodeId], str] = _nowhere,
        learn: Callable[[NodeId, str], None] = _forget,
        source: str = "",
    ) -> None:
        self._address_of = address_of
        self._learn = learn
        self._source = source
        self._latest: tuple[Hashable, bytes] = (None, b"")

    def encode(self, message: Hashable) -> bytes:
        """Give the bytes of a message."""
        latest, data = self._latest
        if message is latest:  # one object that goes to many; it cannot have changed
            return data
        quick = None if self._source else encode_quickly(message)
        if quick is None:
            envelope = to_envelope(message, self._address_of)
            if self._source:
                envelope.source = self._source
            quick = encode_envelope(envelope)
        data = quick
        self._latest = (message, data)
        return data

    def decode(self, data: bytes) -> Hashable:
        """Read a message.

        Raises:
            CodecError: garbage, or no message of mutual exclusion.
        """
        quick = decode_quickly(data)
        return quick if quick is not None else from_envelope(decode_envelope(data), self._learn)


def to_envelope(message: Hashable, address_of: Callable[[NodeId], str] = _nowhere) -> Envelope:
    """Put a message into an envelope, with the addresses of the members that it names.

    Raises:
        CodecError: it is none of mutual exclusion.
    """
    if not isinstance(message, Carried):
        return Envelope(mutex=encode_fixed(message))
    edge, number = message.edge, message.number
    match message.body:
        case Req(ts):
            frame = MutexFrame(edge=edge, number=number, request=MutexRequest(time=ts))
        case Ack(renew, end):
            frame = MutexFrame(edge=edge, number=number, ack=MutexAck(renew=renew, end=end))
        case Hello(generation, group, view):
            members = _members(view, address_of)
            hello = MutexHello(generation=generation, group=group, members=members)
            frame = MutexFrame(edge=edge, number=number, hello=hello)
        case Welcome(generation, mine, view):
            members = _members(view, address_of)
            welcome = MutexWelcome(generation=generation, mine=mine, members=members)
            frame = MutexFrame(edge=edge, number=number, welcome=welcome)
        case Bye(view):
            bye = MutexBye(members=_members(view, address_of))
            frame = MutexFrame(edge=edge, number=number, bye=bye)
        case Expelled(generation):
            expelled = MutexExpelled(generation=generation)
            frame = MutexFrame(edge=edge, number=number, expelled=expelled)
    return Envelope(mutex=frame)


def from_envelope(envelope: Envelope, learn: Callable[[NodeId, str], None] = _forget) -> Hashable:
    """Take a message out of an envelope, and tell the addresses that it brings.

    Raises:
        CodecError: the envelope has another body, or one that no correct peer makes.
    """
    if envelope.WhichOneof("body") != "mutex":
        raise CodecError(f"no message of mutual exclusion: {envelope.WhichOneof('body')}")
    frame = envelope.mutex
    kind = frame.WhichOneof("body")
    if kind in FIXED_BODIES:
        return decode_fixed(frame)
    body: Req | Ack | Hello | Welcome | Bye | Expelled
    match kind:
        case "request":
            body = Req(frame.request.time)
        case "ack":
            body = Ack(frame.ack.renew, frame.ack.end)
        case "hello":
            group = frame.hello.group
            if group > 1 or not frame.hello.generation:
                raise CodecError(f"greeting of group {group}, generation {frame.hello.generation}")
            body = Hello(frame.hello.generation, group, _view(frame.hello.members, learn))
        case "welcome":
            view = _view(frame.welcome.members, learn)
            body = Welcome(frame.welcome.generation, frame.welcome.mine, view)
        case "bye":
            body = Bye(_view(frame.bye.members, learn))
        case "expelled":
            body = Expelled(frame.expelled.generation)
        case _:
            raise CodecError("a frame of mutual exclusion without a body that this release knows")
    if len(frame.edge) > MAX_NAME:
        raise CodecError(f"the name of an edge has {len(frame.edge)} characters")
    return Carried(frame.edge, frame.number, body)


def _members(view: View, address_of: Callable[[NodeId], str]) -> list[MutexMember]:
    return [
        MutexMember(id=name, address=address_of(name), group=group)
        for group, names in enumerate(view)
        for name in names
    ]


def _view(members: Iterable[MutexMember], learn: Callable[[NodeId, str], None]) -> View:
    groups: tuple[list[NodeId], list[NodeId]] = ([], [])
    for member in members:
        if not 0 < len(member.id) <= MAX_NAME or len(member.address) > MAX_NAME or member.group > 1:
            raise CodecError(f"no member: {member.id[:40]!r} of group {member.group}")
        name = NodeId(member.id)
        if name in groups[0] or name in groups[1]:
            raise CodecError(f"{name!r} is twice in one view")
        groups[member.group].append(name)
    for member in members:
        if member.address:
            learn(NodeId(member.id), member.address)
    return tuple(groups[0]), tuple(groups[1])
