"""Messages of the scale protocol as bytes, and back.

Machines know instances by name; on the wire every name comes with the address of the process that
the instance runs in, so that whoever learns of an instance can reach it. The codec takes addresses
from a book and writes those it reads into it.
"""

from collections.abc import Hashable, Iterable, MutableMapping

from dsp._pb.scaling_pb2 import (
    ScaleDeletion,
    ScaleDeletionAck,
    ScaleDuplication,
    ScaleDuplicationAck,
    ScaleEvict,
    ScaleKeep,
    ScaleMember,
    ScaleStart,
)
from dsp.core.envelope import Envelope, decode_envelope, encode_envelope
from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.scaling.events import (
    Deletion,
    DeletionAck,
    Duplication,
    DuplicationAck,
    Evict,
    Keep,
    Member,
    ScaleMessage,
    Start,
)

__all__ = ["ScaleCodec", "to_envelope", "from_envelope"]

AddressBook = MutableMapping[NodeId, str]

MAX_NAME = 1024


class ScaleCodec:
    """Maps messages of the scale protocol to bytes and back.

    Args:
        addresses: where instances are; read when encoding, extended when decoding.
        source: the instance that speaks, written into the envelope.
    """

    def __init__(self, addresses: AddressBook | None = None, source: str = "") -> None:
        self.addresses: AddressBook = {} if addresses is None else addresses
        self._source = source

    def encode(self, message: ScaleMessage) -> bytes:
        """Give the bytes of a message."""
        envelope = to_envelope(message, self.addresses)
        envelope.source = self._source
        return encode_envelope(envelope)

    def decode(self, data: bytes) -> Hashable:
        """Read a message.

        Raises:
            CodecError: garbage, or no message of the scale protocol.
        """
        return from_envelope(decode_envelope(data), self.addresses)


def to_envelope(message: ScaleMessage, addresses: AddressBook) -> Envelope:
    """Put a message into an envelope, with the addresses of the instances that it names."""
    match message:
        case Duplication(operator, generation, newcomers):
            members = [ScaleMember(id=n, address=addresses.get(n, "")) for n in newcomers]
            body = ScaleDuplication(operator=operator, generation=generation, newcomers=members)
            return Envelope(scale_duplication=body)
        case DuplicationAck(linked):
            return Envelope(scale_duplication_ack=ScaleDuplicationAck(linked=linked))
        case Deletion(operator):
            return Envelope(scale_deletion=ScaleDeletion(operator=operator))
        case DeletionAck():
            return Envelope(scale_deletion_ack=ScaleDeletionAck())
        case Start(neighbours, bereaved):
            members = [
                ScaleMember(
                    id=name,
                    address=addresses.get(name, ""),
                    operator=operator,
                    generation=generation,
                )
                for operator, generation, name in neighbours
            ]
            return Envelope(scale_start=ScaleStart(neighbours=members, bereaved=bereaved))
        case Keep(you):
            return Envelope(scale_keep=ScaleKeep(you=you))
        case Evict():
            return Envelope(scale_evict=ScaleEvict())


def from_envelope(envelope: Envelope, addresses: AddressBook) -> ScaleMessage:
    """Take a message out of an envelope, and note the addresses that it brings.

    Raises:
        CodecError: the envelope has another body, or one that no correct peer makes.
    """
    match envelope.WhichOneof("body"):
        case "scale_duplication":
            body = envelope.scale_duplication
            newcomers = _names(body.newcomers, addresses)
            if not newcomers or len({*newcomers}) != len(newcomers):
                raise CodecError("duplication without newcomers, or with one of them twice")
            return Duplication(_name(body.operator), body.generation, newcomers)
        case "scale_duplication_ack":
            return DuplicationAck(envelope.scale_duplication_ack.linked)
        case "scale_deletion":
            return Deletion(_name(envelope.scale_deletion.operator))
        case "scale_deletion_ack":
            return DeletionAck()
        case "scale_start":
            wire = envelope.scale_start
            names = _names(wire.neighbours, addresses)
            neighbours = tuple(
                Member(_name(member.operator), member.generation, name)
                for member, name in zip(wire.neighbours, names, strict=True)
            )
            return Start(neighbours, tuple(_name(operator) for operator in wire.bereaved))
        case "scale_keep":
            return Keep(envelope.scale_keep.you)
        case "scale_evict":
            return Evict()
        case other:
            raise CodecError(f"no message of the scale protocol: {other}")


def _names(members: Iterable[ScaleMember], addresses: AddressBook) -> tuple[NodeId, ...]:
    names = []
    for member in members:
        name = NodeId(_name(member.id))
        if member.address:
            addresses[name] = _name(member.address)
        names.append(name)
    return tuple(names)


def _name(text: str) -> str:
    if not 0 < len(text) <= MAX_NAME:
        raise CodecError(f"a name of {len(text)} characters: 1 to {MAX_NAME} are allowed")
    return text
