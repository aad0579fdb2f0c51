"""Session segments as bytes: what goes in comes out, and nothing else comes in."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsp._pb.session_pb2 import SessionSegment, SessionWindow
from dsp.core.session.segments import Segment, SegmentKind, Window
from dsp.core.session.wire import PAYLOAD_OVERHEAD, SEGMENT_OVERHEAD, SegmentCodec, split
from dsp.errors import CodecError

CODEC = SegmentCodec()
LARGEST = 2**64 - 1

numbers = st.integers(0, LARGEST)
epochs = st.integers(1, LARGEST)
window = st.builds(Window, numbers, numbers, numbers)
hellos = st.tuples(epochs, numbers).map(lambda fields: Segment(SegmentKind.HELLO, *fields))
payload_lists = st.lists(st.binary(), min_size=1).map(tuple)
datas = st.tuples(epochs, numbers, epochs, payload_lists).map(
    lambda fields: Segment(SegmentKind.DATA, *fields)
)
statuses = st.tuples(
    st.sampled_from([SegmentKind.STATUS, SegmentKind.BYE]), epochs, numbers, window, window
).map(lambda fields: Segment(*fields[:3], windows=fields[3:]))
segments = hellos | datas | statuses


@given(segments)
def test_round_trip(segment: Segment) -> None:
    data = CODEC.encode(segment)
    assert CODEC.decode(data) == segment
    assert CODEC.encode(CODEC.decode(data)) == data


@given(epochs, epochs, epochs, st.binary(max_size=300))
def test_a_split_segment_is_the_same_bytes(
    epoch: int, peer_epoch: int, number: int, payload: bytes
) -> None:
    segment = Segment(SegmentKind.DATA, epoch, peer_epoch, number, (payload,))
    halves = split(segment, 0)
    assert halves is not None
    assert halves[1] is payload
    assert b"".join(halves) == CODEC.encode(segment)
    assert CODEC.decode_split(*halves) == segment


@given(segments, st.integers(0, 40))
def test_a_segment_is_read_wherever_it_is_split(segment: Segment, at: int) -> None:
    data = CODEC.encode(segment)
    assert CODEC.decode_split(data[:at], data[at:]) == segment


def test_only_large_payloads_are_split_off() -> None:
    whole = Segment(SegmentKind.DATA, 1, 2, 3, (bytes(10),))
    assert split(whole, 10) is not None
    assert split(whole, 11) is None
    assert split(whole._replace(payloads=(bytes(10), bytes(10))), 10) is None
    assert split(Segment(SegmentKind.HELLO, 1, 2), 0) is None


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_two_parts_decode_or_are_refused(start: bytes, payload: bytes) -> None:
    with suppress(CodecError):
        assert CODEC.decode_split(start, payload) == CODEC.decode(start + payload)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    with suppress(CodecError):
        segment = CODEC.decode(data)
        assert CODEC.decode(CODEC.encode(segment)).epoch == segment.epoch


@given(segments, st.data())
def test_truncated_and_flipped_bytes_decode_or_are_refused(
    segment: Segment, data: st.DataObject
) -> None:
    wire = bytearray(CODEC.encode(segment))
    at = data.draw(st.integers(0, len(wire) - 1))
    if data.draw(st.booleans()):
        del wire[at:]
    else:
        wire[at] ^= 1 << data.draw(st.integers(0, 7))
    with suppress(CodecError):
        CODEC.decode(bytes(wire))


@given(st.lists(st.binary(max_size=300), min_size=1))
def test_a_segment_is_not_larger_than_is_reckoned(payloads: list[bytes]) -> None:
    segment = Segment(SegmentKind.DATA, LARGEST, LARGEST, LARGEST, tuple(payloads))
    most = SEGMENT_OVERHEAD + PAYLOAD_OVERHEAD * (len(payloads) - 1) + sum(map(len, payloads))
    assert len(CODEC.encode(segment)) <= most


def wire(**fields: object) -> bytes:
    return SessionSegment(**{"version": 1, "epoch": 1, **fields}).SerializeToString()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "wire version 0, this process speaks 1: run the same release"),
        (wire(version=2), "wire version 2"),
        (wire(), "unknown kind 0"),
        (wire(kind=9), "unknown kind 9"),
        (wire(kind=1, epoch=0), "without an epoch"),
        (wire(kind=2, payloads=[b"x"]), "without number or payload"),
        (wire(kind=2, sequence=1), "without number or payload"),
        (wire(kind=3), "STATUS segment with 0 windows instead of 2"),
        (wire(kind=4, windows=[SessionWindow()]), "BYE segment with 1 windows instead of 2"),
        (b"\xff", "1 bytes that are not a session segment"),
    ],
)
def test_what_no_correct_peer_sends_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        CODEC.decode(data)
