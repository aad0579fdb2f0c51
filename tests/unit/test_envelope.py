"""The envelope: what goes in comes out, and nothing else comes in."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsp.core.envelope import WIRE_VERSION, Custom, Envelope, decode_envelope, encode_envelope
from dsp.errors import CodecError

texts = st.text(st.characters(exclude_categories=["Cs"]))
envelopes = st.builds(
    Envelope,
    source=texts,
    destination=texts,
    custom=st.builds(Custom, type=texts, payload=st.binary()),
)


@given(envelopes)
def test_round_trip(envelope: Envelope) -> None:
    data = encode_envelope(envelope)
    assert decode_envelope(data) == envelope
    assert encode_envelope(decode_envelope(data)) == data


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    try:
        envelope = decode_envelope(data)
    except CodecError:
        return
    assert envelope.version == WIRE_VERSION
    assert envelope.WhichOneof("body") is not None


@given(envelopes, st.data())
def test_truncated_and_flipped_bytes_decode_or_are_refused(
    envelope: Envelope, data: st.DataObject
) -> None:
    wire = bytearray(encode_envelope(envelope))
    at = data.draw(st.integers(0, len(wire) - 1))
    if data.draw(st.booleans()):
        del wire[at:]
    else:
        wire[at] ^= 1 << data.draw(st.integers(0, 7))
    with suppress(CodecError):
        decode_envelope(bytes(wire))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "wire version 0, this process speaks 1"),
        (b"\x08\x02", "wire version 2, this process speaks 1"),
        (b"\x08\x01", "without a body that this release knows"),
        (b"\x08\x01\xaa\x06\x00", "without a body that this release knows"),
        (b"\xff", "1 bytes that are not an envelope"),
        (b"\x08\x01\x12\x01\xff", "not an envelope"),
    ],
)
def test_what_is_refused_and_why(data: bytes, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        decode_envelope(data)


def test_the_version_is_stamped_whatever_the_caller_set() -> None:
    data = encode_envelope(Envelope(version=77, custom=Custom(type="t")))
    assert decode_envelope(data).version == WIRE_VERSION
