"""The envelope around every message between two processes, and its check on arrival.

Machines speak dataclasses; a protocol's ``wire`` module maps them to the bodies of this envelope.
"""

from google.protobuf.message import DecodeError

from dsp._pb.envelope_pb2 import Custom, Envelope
from dsp.errors import CodecError

__all__ = ["WIRE_VERSION", "Envelope", "Custom", "encode_envelope", "decode_envelope"]

WIRE_VERSION = 1
"""Version of the wire format that this release speaks."""


def encode_envelope(envelope: Envelope) -> bytes:
    """Give the bytes of an envelope, stamped with the version that this release speaks."""
    envelope.version = WIRE_VERSION
    return envelope.SerializeToString(deterministic=True)


def decode_envelope(data: bytes) -> Envelope:
    """Read an envelope.

    Raises:
        CodecError: garbage, another version, or no body that this release knows.
    """
    try:
        envelope = Envelope.FromString(data)
    except DecodeError as error:
        raise CodecError(f"{len(data)} bytes that are not an envelope: {error}") from error
    if envelope.version != WIRE_VERSION:
        raise CodecError(
            f"envelope of wire version {envelope.version}, this process speaks {WIRE_VERSION}: "
            f"run the same release of dsp on both ends"
        )
    if envelope.WhichOneof("body") is None:
        raise CodecError("envelope without a body that this release knows")
    return envelope
