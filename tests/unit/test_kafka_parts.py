"""The parts of the Kafka transport that need no broker: names, headers, offsets, links."""

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import CodecError
from dsp.transport.kafka.errors import connect_error, describe, is_poison
from dsp.transport.kafka.names import Address, group_of, parse_url, topic_of
from dsp.transport.kafka.offsets import Offsets
from dsp.transport.kafka.outlet import KafkaLink
from dsp.transport.kafka.wire import HEADER, Kind, Stamp, Stamps

aiokafka_errors = pytest.importorskip("aiokafka.errors")

LEGAL = {*string.ascii_letters, *string.digits, *"._-"}


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("kafka://h", Address(("h:9092",), "dsp")),
        ("kafka://h:1/p", Address(("h:1",), "p")),
        ("kafka://a:1,b,c:3/x.y-z_1/", Address(("a:1", "b:9092", "c:3"), "x.y-z_1")),
        ("kafka://[::1]:1,[::2]/p", Address(("[::1]:1", "[::2]:9092"), "p")),
        ("kafka://h:1/p?cluster=abc&max_frame_bytes=7", Address(("h:1",), "p", "abc", 7)),
    ],
)
def test_urls(url: str, address: Address) -> None:
    assert parse_url(url) == address
    assert parse_url(str(address)) == address


@pytest.mark.parametrize(
    "url",
    ["tcp://h:1", "kafka://", "kafka:///p", "kafka://h/p?x=1", "kafka://h/p/q", "kafka://h/é"],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"kafka://|prefix|nothing"):
        parse_url(url)


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_names_are_legal_and_do_not_meet(one: str, other: str) -> None:
    topics = [topic_of("p", NodeId(node), lane) for node in (one, other) for lane in Lane]
    assert {*"".join(topics)} <= LEGAL
    # Kafka takes the dot and the underscore for one, in names of metrics.
    distinct = {topic.replace(".", "_") for topic in topics}
    assert len(distinct) == (2 if one == other else 4)
    assert (group_of("p", NodeId(one)) == group_of("p", NodeId(other))) == (one == other)


def test_prefixes_do_not_meet() -> None:
    names = [("a", "b.c"), ("a.b", "c"), ("a", "b"), ("a.b.c", "d"), ("a", "b.control")]
    topics = {topic_of(prefix, NodeId(node), Lane.CONTROL) for prefix, node in names}
    assert len(topics) == len(names)


def test_names_that_are_too_long() -> None:
    assert len(topic_of("p", NodeId("x" * 239), Lane.CONTROL)) == 249
    with pytest.raises(ValueError, match=r"node\.id"):
        topic_of("p", NodeId("x" * 240), Lane.CONTROL)
    with pytest.raises(ValueError, match="without a name"):
        topic_of("p", NodeId(""), Lane.CONTROL)


def test_same_brokers() -> None:
    one = Address(("a:1", "b:1"), "p", "X")
    assert one.same_brokers(Address(("b:1",), "p"))
    assert one.same_brokers(Address(("c:1",), "p", "X"))
    assert not one.same_brokers(Address(("a:1",), "p", "Y"))
    assert not one.same_brokers(Address(("c:1",), "p"))


# -- headers ----------------------------------------------------------------------------------


@given(
    st.sampled_from(Kind),
    st.text(min_size=1, max_size=50),
    st.text(min_size=1, max_size=50),
    st.integers(0, 2**64 - 1),
)
def test_stamps_round_trip(kind: Kind, node: str, address: str, epoch: int) -> None:
    stamp = Stamp(kind, Peer(NodeId(node), address), epoch)
    stamps = Stamps()
    assert stamps.read([(HEADER, stamp.encode())]) == stamp
    assert stamps.read([(HEADER, stamp.encode())]) is stamps.read([(HEADER, stamp.encode())])


@given(st.binary(max_size=100))
def test_garbage_for_a_stamp(wire: bytes) -> None:
    try:
        stamp = Stamps().read([(HEADER, wire)])
    except CodecError:
        return
    assert stamp.encode() == wire


def test_records_without_a_stamp() -> None:
    stamp = Stamp(Kind.FRAME, Peer(NodeId("a"), "b"), 1).encode()
    for headers in ([], [("other", stamp)], [(HEADER, None)], [(HEADER, stamp), (HEADER, stamp)]):
        with pytest.raises(CodecError, match="not from dsp"):
            Stamps().read(headers)
    with pytest.raises(ValueError, match="2048"):
        Stamp(Kind.FRAME, Peer(NodeId("a"), "b" * 3000), 1).encode()


def test_stamps_forget_before_they_are_too_many() -> None:
    stamps = Stamps()
    for number in range(5000):
        stamps.read([(HEADER, Stamp(Kind.FRAME, Peer(NodeId("a"), "b"), number).encode())])
    assert len(stamps._known) < 5000


# -- offsets ----------------------------------------------------------------------------------


def test_only_the_finished_start_is_committed() -> None:
    offsets = Offsets(10)
    assert offsets.to_commit() is None
    for offset in (10, 11, 12, 15):  # a log has gaps
        offsets.took(offset)
    offsets.done(12)
    assert offsets.to_commit() is None
    offsets.done(10)
    assert offsets.to_commit() == 11
    offsets.committed(11)
    assert offsets.to_commit() is None
    offsets.done(11)
    assert offsets.to_commit() == 15
    offsets.done(15)
    offsets.done(15)
    offsets.done(3)
    assert offsets.to_commit() == 16
    offsets.took(16, done=True)
    assert offsets.to_commit() == 17
    assert len(offsets) == 0


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_nothing_is_committed_before_it_is_done(seed: int, count: int) -> None:
    """Against a naive version: everything below the committed position is done."""
    draw = random.Random(seed)
    offsets, taken, done = Offsets(0), [], set()
    step = 0
    for _ in range(4 * count):
        if draw.random() < 0.5:
            step += draw.choice([1, 1, 3])
            offsets.took(step)
            taken.append(step)
        elif taken:
            one = draw.choice(taken)
            offsets.done(one)
            done.add(one)
        position = offsets.to_commit()
        if position is not None:
            assert all(offset in done for offset in taken if offset < position)
            offsets.committed(position)
    for offset in taken:
        offsets.done(offset)
    assert len(offsets) == 0


# -- links ------------------------------------------------------------------------------------


def link_with(count: int, **kafka: int) -> KafkaLink:
    config = TransportConfig.model_validate({"send_queue_frames": 10, "kafka": kafka})
    link = KafkaLink(Peer(NodeId("b"), "kafka://h/p"), Lane.DATA, config, "p.b.data", 1000)
    for number in range(count):
        link.queue.put_nowait(bytes([number]) * 500, 500)
    return link


def test_a_frame_is_busy_until_it_is_acknowledged() -> None:
    link = link_with(2)
    assert link.next() == bytes(500)
    flight = link.handed(0)
    assert (len(link.queue), link.unacknowledged(), link.waiting()) == (1, 1, True)
    moved = link.moved()
    second = link.handed(0)
    assert link.moved() > moved
    assert link.next() is None
    assert link.flies(flight)
    assert not link.flies(second)
    link.landed(flight)
    link.landed(second)
    assert not link.waiting()


def test_what_is_in_flight_is_bounded_and_comes_back_first() -> None:
    link = link_with(5, in_flight_bytes=1024)
    while link.next() is not None:
        link.handed(0)
    assert link.unacknowledged() == 3, "1024 bytes are full with the third frame of 500"
    link.sent = 0  # the producer broke
    assert link.next() == bytes(500)
    link.handed(1)
    assert link.withdraw() == b"\x01" * 500
    assert [payload[0] for payload in link.pending()] == [0, 2, 3, 4]
    assert not link.waiting()


def test_frames_go_alone_while_the_large_one_is_sought() -> None:
    link = link_with(3)
    flights = [link.handed(0) for _ in range(2)]
    link.sent, link.alone = 0, 2
    assert link.next() is not None
    link.handed(1)
    assert link.next() is None
    link.landed(flights[0])
    link.handed(1)
    link.landed(flights[1])
    assert link.alone == 0
    assert link.next() == b"\x02" * 500


# -- errors -----------------------------------------------------------------------------------


def test_errors_are_described_with_their_causes() -> None:
    broken = aiokafka_errors.KafkaConnectionError("gone")
    broken.__cause__ = OSError("port closed")
    assert describe(broken).endswith("OSError: port closed")
    kafka = TransportConfig().kafka
    for error, words in (
        (aiokafka_errors.NotControllerError(), "KRaft"),
        (aiokafka_errors.UnsupportedVersionError(), "too old"),
        (NotImplementedError("v13"), "newer aiokafka"),
        (aiokafka_errors.IllegalSaslStateError(), "security_protocol"),
        (aiokafka_errors.KafkaConnectionError(), "security_protocol"),
    ):
        raised = connect_error("kafka://h/p", error, kafka)
        assert words in str(raised)
        assert raised.__cause__ is error
    assert is_poison(aiokafka_errors.MessageSizeTooLargeError())
    assert not is_poison(aiokafka_errors.NotLeaderForPartitionError())
