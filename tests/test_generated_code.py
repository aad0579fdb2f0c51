"""Generated code is what the .proto files say, and the wire stays readable."""

import shutil
from pathlib import Path

import pytest

from dsp._pb import envelope_pb2, mutex_pb2, scaling_pb2, session_pb2
from dsp.core.envelope import WIRE_VERSION, Custom, Envelope, decode_envelope, encode_envelope
from dsp.core.session.segments import Segment, SegmentKind, Window
from dsp.core.session.wire import SegmentCodec
from tools.generated_code import GENERATED, PROTO, compile_proto, faults, message_fields

ENVELOPE = Path("dsp/v1/envelope.proto")


def test_generated_code_is_fresh() -> None:
    assert faults() == [], "run `make proto` and commit the result"


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROTO, tmp_path / "proto"))


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ("string source = 2;", "string source = 9;", ["envelope_pb2.py"]),
        ("string source = 2;", "bytes source = 2;", ["envelope_pb2.py"]),
        ("string source = 2;", "string origin = 2;", ["envelope_pb2.py", "envelope_pb2.pyi"]),
        ("Custom custom = 100;", "Custom custom = 100;\n    Custom more = 101;",
         ["envelope_pb2.py", "envelope_pb2.pyi"]),
    ],
)  # fmt: skip
def test_a_changed_file_is_noticed(proto: Path, old: str, new: str, stale: list[str]) -> None:
    text = (proto / ENVELOPE).read_text()
    assert old in text
    (proto / ENVELOPE).write_text(text.replace(old, new))
    assert faults(proto) == [f"{name} is not what envelope.proto says" for name in stale]


def test_a_comment_changes_nothing(proto: Path) -> None:
    (proto / ENVELOPE).write_text("// a comment\n" + (proto / ENVELOPE).read_text())
    assert faults(proto) == []


def test_a_file_without_code_and_code_without_a_file_are_noticed(
    proto: Path, tmp_path: Path
) -> None:
    (proto / "dsp/v1/extra.proto").write_text('syntax = "proto3";\npackage dsp.v1;\n')
    assert faults(proto) == ["extra_pb2.py is missing", "extra_pb2.pyi is missing"]
    (proto / "dsp/v1/extra.proto").unlink()
    generated = Path(shutil.copytree(GENERATED, tmp_path / "generated"))
    (generated / "old_pb2.py").touch()
    assert faults(proto, generated) == ["old_pb2.py has no .proto file"]


def test_a_stub_that_lacks_a_field_is_noticed(proto: Path, tmp_path: Path) -> None:
    generated = Path(shutil.copytree(GENERATED, tmp_path / "generated"))
    stub = generated / "envelope_pb2.pyi"
    stub.write_text(stub.read_text().replace('"destination", ', ""))
    assert faults(proto, generated) == ["envelope_pb2.pyi is not what envelope.proto says"]


def test_a_file_that_does_not_compile_is_an_error(proto: Path) -> None:
    (proto / ENVELOPE).write_text("message")
    with pytest.raises(ValueError, match="protoc refuses"):
        compile_proto(proto)


def test_inner_messages_are_compared_too(proto: Path) -> None:
    (proto / ENVELOPE).write_text(
        'syntax = "proto3";\nmessage A { message B { int32 c = 1; } map<string, B> d = 1; }\n'
    )
    messages = compile_proto(proto)["envelope"].message_type
    assert dict(message_fields(messages)) == {"A": ["d"], "A.B": ["c"]}


def test_generated_code_asks_for_no_newer_runtime() -> None:
    # Newer compilers write a check of the runtime's version into the code; see docs/adr/0001.
    for path in GENERATED.glob("*_pb2.py"):
        assert "runtime_version" not in path.read_text(), path.name


# -- the wire ---------------------------------------------------------------------------------

GOLDEN = bytes.fromhex("0801120161 1a0162a206090a0168120470696e67".replace(" ", ""))


def test_bytes_of_the_first_release_still_decode() -> None:
    envelope = decode_envelope(GOLDEN)
    assert (envelope.source, envelope.destination) == ("a", "b")
    assert (envelope.custom.type, envelope.custom.payload) == ("h", b"ping")


def test_the_same_message_still_gives_the_same_bytes() -> None:
    custom = Custom(type="h", payload=b"ping")
    assert encode_envelope(Envelope(source="a", destination="b", custom=custom)) == GOLDEN


@pytest.mark.parametrize(
    ("segment", "golden"),
    [
        (Segment(SegmentKind.HELLO, 5, 0), "0801 1001 190500000000000000"),
        (
            Segment(SegmentKind.DATA, 5, 6, 7, (b"one", b"")),
            "0801 1002 190500000000000000 210600000000000000 2807 32036f6e65 3200",
        ),
        (
            Segment(SegmentKind.STATUS, 5, 6, windows=(Window(1, 2, 300), Window(0, 4, 5))),
            "0801 1003 190500000000000000 210600000000000000 3a07 0801 1002 18ac02 3a04 1004 1805",
        ),
        (
            Segment(SegmentKind.BYE, 5, 6, windows=(Window(0, 0, 0), Window(0, 0, 0))),
            "0801 1004 190500000000000000 210600000000000000 3a00 3a00",
        ),
    ],
)
def test_segments_of_the_first_release_are_the_same(segment: Segment, golden: str) -> None:
    data = bytes.fromhex(golden)
    assert SegmentCodec().encode(segment) == data
    assert SegmentCodec().decode(data) == segment


def test_field_numbers_are_kept_for_ever() -> None:
    numbers = {
        f"{message.name}.{field.name}": field.number
        for file in (envelope_pb2, session_pb2)
        for message in file.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
    }
    pinned = {
        "Envelope.version": 1,
        "Envelope.source": 2,
        "Envelope.destination": 3,
        "Envelope.scale_duplication": 20,
        "Envelope.scale_duplication_ack": 21,
        "Envelope.scale_deletion": 22,
        "Envelope.scale_deletion_ack": 23,
        "Envelope.scale_start": 24,
        "Envelope.scale_keep": 25,
        "Envelope.scale_evict": 26,
        "Envelope.mutex": 40,
        "Envelope.custom": 100,
        "Custom.type": 1,
        "Custom.payload": 2,
        "SessionSegment.version": 1,
        "SessionSegment.kind": 2,
        "SessionSegment.epoch": 3,
        "SessionSegment.peer_epoch": 4,
        "SessionSegment.sequence": 5,
        "SessionSegment.payloads": 6,
        "SessionSegment.windows": 7,
        "SessionWindow.received": 1,
        "SessionWindow.items": 2,
        "SessionWindow.size": 3,
    }
    assert numbers | pinned == numbers
    assert WIRE_VERSION == 1


def test_numbers_and_bytes_of_the_scale_protocol_are_kept_for_ever() -> None:
    numbers = {
        f"{message.name}.{field.name}": field.number
        for message in scaling_pb2.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
    }
    pinned = {
        "ScaleMember.id": 1,
        "ScaleMember.address": 2,
        "ScaleMember.operator": 3,
        "ScaleMember.generation": 4,
        "ScaleDuplication.operator": 1,
        "ScaleDuplication.generation": 2,
        "ScaleDuplication.newcomers": 3,
        "ScaleDuplicationAck.linked": 1,
        "ScaleDeletion.operator": 1,
        "ScaleStart.neighbours": 1,
        "ScaleStart.bereaved": 2,
        "ScaleKeep.you": 1,
    }
    assert numbers == pinned
    member = scaling_pb2.ScaleMember(id="b1", address="z")
    body = scaling_pb2.ScaleDuplication(operator="b", generation=1, newcomers=[member])
    golden = bytes.fromhex("0801a2010e0a016210011a070a02623112017a")
    assert encode_envelope(Envelope(scale_duplication=body)) == golden
    assert decode_envelope(golden).scale_duplication == body


def test_numbers_and_bytes_of_mutual_exclusion_are_kept_for_ever() -> None:
    numbers = {
        f"{message.name}.{field.name}": field.number
        for message in mutex_pb2.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
    }
    pinned = {
        "MutexFrame.edge": 1,
        "MutexFrame.number": 2,
        "MutexFrame.request": 10,
        "MutexFrame.ack": 11,
        "MutexFrame.hello": 12,
        "MutexFrame.welcome": 13,
        "MutexFrame.bye": 14,
        "MutexFrame.expelled": 15,
        "MutexFrame.ra_request": 20,
        "MutexFrame.ra_reply": 21,
        "MutexFrame.vector_request": 22,
        "MutexFrame.vector_reply": 23,
        "MutexFrame.ra_start": 24,
        "MutexFrame.want": 30,
        "MutexFrame.grant": 31,
        "MutexFrame.done": 32,
        "MutexFrame.token_wanted": 33,
        "MutexFrame.token": 34,
        "MutexFrame.published_request": 40,
        "MutexFrame.published_ack": 41,
        "MutexFrame.published_end": 42,
        "MutexRequest.time": 1,
        "MutexAck.renew": 1,
        "MutexAck.end": 2,
        "MutexMember.id": 1,
        "MutexMember.address": 2,
        "MutexMember.group": 3,
        "MutexHello.generation": 1,
        "MutexHello.group": 2,
        "MutexHello.members": 3,
        "MutexWelcome.generation": 1,
        "MutexWelcome.mine": 2,
        "MutexWelcome.members": 3,
        "MutexBye.members": 1,
        "MutexExpelled.generation": 1,
        "MutexVector.counts": 1,
        "MutexVector.request": 2,
        "MutexToken.wanted": 1,
        "MutexPublishedAck.renew": 1,
        "MutexPublishedAck.end": 2,
    }
    assert numbers == pinned
    ack = mutex_pb2.MutexAck(renew=3, end=True)
    frame = mutex_pb2.MutexFrame(edge="a>b", number=7, ack=ack)
    golden = encode_envelope(Envelope(mutex=frame))
    assert golden.hex() == "0801c2020d0a03613e6210075a0408031001"
    assert decode_envelope(golden).mutex == frame
