"""The messages of a gRPC stream, and how a link counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsp._pb import grpc_stream_pb2
from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import CodecError
from dsp.transport.grpc.link import GrpcLink
from dsp.transport.grpc.wire import (
    MAX_NAME_BYTES,
    PACK_BYTES,
    Answer,
    FrameReader,
    Hello,
    Progress,
    Refusal,
    Welcome,
    decode_answer,
    decode_hello,
    messages_of,
)

NUMBERS = st.integers(0, 2**64 - 1)
NAMES = st.text(min_size=1, max_size=50).filter(lambda name: name.isprintable())
PEERS = st.builds(Peer, NAMES.map(NodeId), NAMES)
HELLOS = st.builds(Hello, PEERS, st.sampled_from(Lane), NUMBERS, NUMBERS, NUMBERS, NUMBERS)
ANSWERS = st.one_of(
    st.builds(Welcome, PEERS, NUMBERS, st.booleans(), NUMBERS),
    st.builds(Refusal, NAMES),
    st.builds(Progress, NUMBERS),
)
HELLO = bytes.fromhex("08011201611a0a677270633a2f2f683a31200228802031010000000000000038084010")
MOST = 1024 * 1024


# -- messages ---------------------------------------------------------------------------------


@given(HELLOS)
def test_hellos_survive(hello: Hello) -> None:
    assert decode_hello(hello.encode()) == hello


@given(ANSWERS)
def test_answers_survive(answer: Answer) -> None:
    assert decode_answer(answer.encode()) == answer


@given(st.binary(max_size=200))
def test_garbage_is_told(data: bytes) -> None:
    for decode in (decode_hello, decode_answer):
        try:
            decode(data)
        except CodecError:
            continue


@pytest.mark.parametrize("size", [0, MAX_NAME_BYTES + 1])
def test_names_have_a_bound(size: int) -> None:
    peer = Peer(NodeId("x" * size), "grpc://h:1")
    with pytest.raises(CodecError, match=f"name of {size} bytes"):
        decode_hello(Hello(peer, Lane.DATA, 1, 2, 3, 4).encode())
    with pytest.raises(CodecError, match=f"name of {size} bytes"):
        decode_answer(Welcome(Peer(NodeId("b"), "x" * size), 1, False, 0).encode())


def test_field_numbers_are_kept_for_ever() -> None:
    numbers = {
        f"{message.name}.{field.name}": field.number
        for message in grpc_stream_pb2.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
    }
    pinned = {
        "StreamHello.version": 1,
        "StreamHello.node": 2,
        "StreamHello.address": 3,
        "StreamHello.lane": 4,
        "StreamHello.max_frame_bytes": 5,
        "StreamHello.sequence_id": 6,
        "StreamHello.window_frames": 7,
        "StreamHello.window_bytes": 8,
        "StreamAnswer.welcome": 1,
        "StreamAnswer.refusal": 2,
        "StreamAnswer.progress": 3,
        "StreamWelcome.version": 1,
        "StreamWelcome.node": 2,
        "StreamWelcome.address": 3,
        "StreamWelcome.max_frame_bytes": 4,
        "StreamWelcome.resumed": 5,
        "StreamWelcome.received": 6,
        "StreamRefusal.reason": 1,
        "StreamProgress.received": 1,
        "HealthQuestion.service": 1,
        "HealthReply.status": 1,
    }
    assert numbers | pinned == numbers


def test_bytes_of_the_first_release_still_decode() -> None:
    expected = Hello(Peer(NodeId("a"), "grpc://h:1"), Lane.DATA, 4096, 1, 8, 16)
    assert decode_hello(HELLO) == expected
    assert expected.encode() == HELLO


# -- packs ------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=50))
def test_packs_survive(payloads: list[bytes]) -> None:
    (message,) = messages_of(payloads)
    assert list(FrameReader(MOST).frames(message)) == payloads


@pytest.mark.parametrize("size", [*range(PACK_BYTES - 6, PACK_BYTES + 6), 3 * PACK_BYTES])
def test_large_frames_survive(size: int) -> None:
    frame = bytes(size)
    reader = FrameReader(MOST)
    messages = messages_of([frame])
    assert [found for message in messages for found in reader.frames(message)] == [frame]
    (after,) = messages_of([b"next"])
    assert list(reader.frames(after)) == [b"next"]


@pytest.mark.parametrize(
    "message",
    [b"\0\0", b"\0\0\0", b"\0\0\0\x05abcd", b"\0\0\0\x01a\0", b"\0\x10\0\x01", bytes(MOST + 1)],
)
def test_bad_packs_are_told(message: bytes) -> None:
    with pytest.raises(CodecError):
        list(FrameReader(MOST).frames(message))


# -- counting ---------------------------------------------------------------------------------


@pytest.fixture
def link() -> GrpcLink:
    link = GrpcLink(Peer(NodeId("b"), "grpc://h:1"), Lane.DATA, TransportConfig())
    for number in range(10):
        link.queue.put_nowait(b"%d" % number, 1)
    return link


def test_frames_are_kept_until_they_are_confirmed(link: GrpcLink) -> None:
    assert link.resume(resumed=False, received=0) == []
    assert link.take_pack(MOST) == [b"%d" % number for number in range(10)]
    assert (len(link.queue), link.unacknowledged(), link.waiting()) == (0, 10, True)
    before = link.moved()
    link.progress(4)
    assert (link.unacknowledged(), link.moved()) == (6, before + 4)
    link.progress(10)
    assert not link.waiting()


def test_a_cut_link_goes_on_with_what_the_peer_lacks(link: GrpcLink) -> None:
    link.resume(resumed=False, received=0)
    link.take_pack(MOST)
    link.queue.put_nowait(b"new", 3)
    assert link.resume(resumed=True, received=7) == []
    assert link.take_pack(MOST) == [b"7", b"8", b"9"]
    assert link.take_pack(MOST) == [b"new"]
    link.progress(11)
    assert not link.waiting()


def test_another_process_gets_what_waits_and_the_rest_is_given_back(link: GrpcLink) -> None:
    link.resume(resumed=False, received=0)
    link.take_pack(MOST)
    link.progress(2)
    link.queue.put_nowait(b"new", 3)
    assert link.resume(resumed=False, received=0) == [b"%d" % number for number in range(2, 10)]
    assert link.take_pack(MOST) == [b"new"]
    link.progress(1)
    assert not link.waiting()


def test_a_move_has_a_number_of_its_own(link: GrpcLink) -> None:
    before = link.sequence_id
    link.take_pack(MOST)
    assert len(link.move(Peer(NodeId("b"), "grpc://h:2"))) == 10
    assert link.sequence_id != before


def test_the_end_gives_back_everything_in_order(link: GrpcLink) -> None:
    link.take_pack(MOST)
    link.queue.put_nowait(b"new", 3)
    link.progress(9)
    assert link.pending() == [b"9", b"new"]


def test_a_peer_that_counts_wrong_is_told(link: GrpcLink) -> None:
    link.take_pack(MOST)
    link.progress(5)
    for received in (4, 11):
        with pytest.raises(CodecError, match=f"claims {received} frames"):
            link.progress(received)
        with pytest.raises(CodecError, match=f"claims {received} frames"):
            link.resume(resumed=True, received=received)


def test_what_is_not_confirmed_is_bounded() -> None:
    config = TransportConfig(send_queue_frames=4, send_queue_bytes=4096, max_frame_bytes=2048)
    link = GrpcLink(Peer(NodeId("b"), "grpc://h:1"), Lane.DATA, config)
    taken = 0
    for _ in range(10_000):
        link.queue.put_nowait(bytes(2048), 2048)
        if not link.take_pack(MOST):
            break
        taken += 1
    assert taken * 2048 == link.window_bytes
    link.progress(1)
    assert len(link.take_pack(MOST)) == 1


def test_a_frame_that_the_peer_does_not_take_is_set_aside(link: GrpcLink) -> None:
    link.queue.put_nowait(b"too large", 9)
    link.queue.put_nowait(b"x", 1)
    assert len(link.take_pack(5)) == 10
    assert link.take_pack(5) == []
    assert link.take_too_large(5) == b"too large"
    assert link.take_too_large(5) is None
    assert link.take_pack(5) == [b"x"]
