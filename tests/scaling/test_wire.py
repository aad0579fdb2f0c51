"""Messages of the scale protocol on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsp._pb import scaling_pb2
from dsp._pb.envelope_pb2 import Custom
from dsp.core.envelope import Envelope, encode_envelope
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
from dsp.scaling.wire import ScaleCodec

names = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable())
ids = names.map(NodeId)
generations = st.integers(0, 2**32 - 1)
members = st.builds(Member, names, generations, ids)
messages: st.SearchStrategy[ScaleMessage] = st.one_of(
    st.builds(Duplication, names, generations, st.lists(ids, min_size=1, unique=True).map(tuple)),
    st.builds(DuplicationAck, st.booleans()),
    st.builds(Deletion, names),
    st.just(DeletionAck()),
    st.builds(Start, st.lists(members).map(tuple), st.lists(names).map(tuple)),
    st.builds(Keep, st.booleans()),
    st.just(Evict()),
)


@given(messages)
def test_round_trip(message: ScaleMessage) -> None:
    assert ScaleCodec().decode(ScaleCodec().encode(message)) == message


@given(st.binary(max_size=60))
def test_garbage_is_a_codec_error(data: bytes) -> None:
    try:
        ScaleCodec().decode(data)
    except CodecError:
        return
    # Bytes that happen to be a message: they must at least survive another round.
    message = ScaleCodec().decode(data)
    assert ScaleCodec().decode(ScaleCodec().encode(message)) == message  # type: ignore[arg-type]


def test_addresses_travel_with_the_names() -> None:
    here = {NodeId("b1"): "sim://w/b1", NodeId("c0"): "sim://w/c0"}
    there: dict[NodeId, str] = {}
    sender, receiver = ScaleCodec(here), ScaleCodec(there)
    receiver.decode(sender.encode(Duplication("b", 1, (NodeId("b1"), NodeId("b2")))))
    assert there == {NodeId("b1"): "sim://w/b1"}
    receiver.decode(sender.encode(Start((Member("c", 0, NodeId("c0")),))))
    assert there == here


@pytest.mark.parametrize(
    "body",
    [
        Envelope(custom=Custom(type="x")),
        Envelope(scale_duplication=scaling_pb2.ScaleDuplication(operator="b")),
        Envelope(
            scale_duplication=scaling_pb2.ScaleDuplication(
                operator="b", newcomers=[scaling_pb2.ScaleMember(id="b1")] * 2
            )
        ),
        Envelope(
            scale_duplication=scaling_pb2.ScaleDuplication(
                operator="b", newcomers=[scaling_pb2.ScaleMember()]
            )
        ),
        Envelope(scale_deletion=scaling_pb2.ScaleDeletion()),
        Envelope(scale_deletion=scaling_pb2.ScaleDeletion(operator="x" * 2000)),
    ],
)
def test_what_no_correct_peer_sends_is_refused(body: Envelope) -> None:
    with pytest.raises(CodecError):
        ScaleCodec().decode(encode_envelope(body))
