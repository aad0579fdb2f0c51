"""Messages of mutual exclusion on the wire."""

from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsp._pb.envelope_pb2 import Custom
from dsp._pb.mutex_pb2 import MutexFrame, MutexHello, MutexMember
from dsp.core.envelope import Envelope, decode_envelope, encode_envelope
from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.mutex.arbiter_token import Done, Grant, Token, TokenWanted, Want
from dsp.mutex.events import Ack, Bye, Carried, Expelled, Hello, Req, Welcome
from dsp.mutex.published import PublishedAck, PublishedEnd, PublishedReq
from dsp.mutex.ra1 import RaReply, RaRequest
from dsp.mutex.ra2 import RaStart, VectorReply, VectorRequest
from dsp.mutex.wire import MutexCodec, from_envelope, to_envelope
from dsp.mutex.wire_quick import decode_quickly, encode_quickly

numbers = st.integers(0, 2**64 - 1)
ids = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()).map(NodeId)
views = st.lists(ids, unique=True).flatmap(
    lambda names: st.integers(0, len(names)).map(
        lambda first: (tuple(names[:first]), tuple(names[first:]))
    )
)
bodies = st.one_of(
    st.builds(Req, numbers),
    st.builds(Ack, numbers, st.booleans()),
    st.builds(Hello, st.integers(1, 2**64 - 1), st.integers(0, 1), views),
    st.builds(Welcome, numbers, numbers, views),
    st.builds(Bye, views),
    st.builds(Expelled, numbers),
)
vectors = st.lists(numbers).map(tuple)
messages: st.SearchStrategy[Hashable] = st.one_of(
    st.builds(Carried, st.text(max_size=20).filter(str.isprintable), numbers, bodies),
    st.builds(RaRequest, numbers),
    st.builds(VectorRequest, vectors),
    st.builds(VectorReply, numbers, vectors),
    st.builds(RaStart, numbers, vectors),
    st.builds(Token, st.booleans()),
    st.builds(PublishedReq, numbers),
    st.builds(PublishedAck, st.booleans(), st.booleans()),
    st.builds(PublishedEnd, numbers),
    st.sampled_from([RaReply(), Want(), Grant(), Done(), TokenWanted()]),
)


@given(messages)
def test_round_trip(message: Hashable) -> None:
    assert MutexCodec().decode(MutexCodec().encode(message)) == message


@given(st.binary(max_size=60))
def test_garbage_is_a_codec_error(data: bytes) -> None:
    try:
        message = MutexCodec().decode(data)
    except CodecError:
        return
    # Bytes that happen to be a message: they must at least survive another round.
    assert MutexCodec().decode(MutexCodec().encode(message)) == message


def test_addresses_travel_with_the_names() -> None:
    here = {NodeId("a"): "sim://w/a", NodeId("b"): "sim://w/b"}
    there: dict[NodeId, str] = {}
    sender = MutexCodec(lambda name: here.get(name, ""))
    receiver = MutexCodec(learn=there.__setitem__)
    view = ((NodeId("a"), NodeId("c")), (NodeId("b"),))
    receiver.decode(sender.encode(Carried("", 1, Bye(view))))
    assert there == here


@pytest.mark.parametrize(
    "body",
    [
        Envelope(custom=Custom(type="x")),
        Envelope(mutex=MutexFrame(number=3)),
        Envelope(mutex=MutexFrame(hello=MutexHello(generation=1, group=2))),
        Envelope(mutex=MutexFrame(hello=MutexHello(group=1))),
        Envelope(mutex=MutexFrame(hello=MutexHello(generation=1, members=[MutexMember()]))),
        Envelope(
            mutex=MutexFrame(
                hello=MutexHello(generation=1, members=[MutexMember(id="a"), MutexMember(id="a")])
            )
        ),
        Envelope(mutex=MutexFrame(edge="x" * 2000, hello=MutexHello(generation=1))),
    ],
)
def test_what_no_correct_peer_sends_is_refused(body: Envelope) -> None:
    with pytest.raises(CodecError):
        MutexCodec().decode(encode_envelope(body))


def test_what_is_no_message_is_not_sent() -> None:
    with pytest.raises(CodecError):
        MutexCodec().encode("hello")


edges = st.text(max_size=150).filter(str.isprintable)


@given(st.builds(Carried, edges, numbers, st.one_of(bodies)))
def test_what_is_written_by_hand_is_what_protobuf_writes(message: Carried) -> None:
    data = encode_quickly(message)
    if data is None:
        assert not isinstance(message.body, Req | Ack) or len(message.edge.encode()) >= 128
        return
    assert data == encode_envelope(to_envelope(message))
    assert decode_quickly(data) == message


@given(st.binary(max_size=40), st.builds(Carried, edges, numbers, bodies), st.data())
def test_what_is_read_by_hand_is_what_protobuf_reads(
    noise: bytes, message: Carried, data: st.DataObject
) -> None:
    """Whole messages that were changed, cut or continued."""
    whole = MutexCodec().encode(message)
    at = data.draw(st.integers(0, len(whole)))
    for changed in (whole[:at] + noise, whole[:at] + noise + whole[at + len(noise) :], noise):
        found = decode_quickly(changed)
        if found is not None:
            assert found == from_envelope(decode_envelope(changed))
