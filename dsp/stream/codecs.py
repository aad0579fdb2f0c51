"""How the values of a batch become bytes on an edge, and back.

A codec works on whole batches: one call for a few hundred records, not one for each. Which codec an
edge has follows from the graph, so nothing about it is on the wire.
"""

from array import array
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from dsp.errors import CodecError, ConfigError, MissingExtraError
from dsp.stream.plain_json import dump_json

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = [
    "Payload",
    "Codec",
    "JsonCodec",
    "BytesCodec",
    "ProtobufCodec",
    "ArrowCodec",
    "make_codec",
    "decode",
    "encode",
    "to_columns",
    "to_rows",
]


Payload = bytes | memoryview


class Codec(Protocol):
    """Maps the values of a batch to bytes and back.

    Attributes:
        columnar: whether values are columns (``pyarrow.RecordBatch``), not a list.
    """

    name: str
    columnar: bool

    def encode(self, values: Any) -> bytes:  # noqa: ANN401 - each codec knows its own values
        """Give the bytes of the values.

        Raises:
            CodecError: a value that this codec has no form for; names the codec and the value.
        """
        ...

    def decode(self, data: bytes) -> Any:  # noqa: ANN401
        """Read values.

        Raises:
            CodecError: garbage.
        """
        ...


class JsonCodec:
    """What JSON knows: text, numbers, booleans, None, lists and dictionaries of them.

    It has no NaN and no infinity: a record with one is a dead letter.
    """

    name = "json"
    columnar = False

    def encode(self, values: list[Any]) -> bytes:
        try:
            return dump_json(values)
        except TypeError as error:
            culprit = next((value for value in values if not _is_json(value)), None)
            raise CodecError(
                f"json cannot hold {culprit!r:.200}: {error}; give the operator another codec"
            ) from error

    def decode(self, data: bytes | memoryview) -> list[Any]:
        try:
            values = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise CodecError(f"{len(data)} bytes that are not JSON: {error}") from error
        if not isinstance(values, list):
            raise CodecError("JSON that is not a list of records")
        return values


def _is_json(value: object) -> bool:
    try:
        dump_json(value)
    except TypeError:
        return False
    return True


class BytesCodec:
    """Values that are bytes already."""

    name = "bytes"
    columnar = False

    def encode(self, values: list[bytes]) -> bytes:
        try:
            sizes = array("I", map(len, values))
            return b"".join([len(values).to_bytes(4, "little"), sizes.tobytes(), *values])
        except TypeError as error:
            culprit = next((v for v in values if not isinstance(v, bytes | bytearray)), None)
            raise CodecError(f"the codec bytes takes bytes, not {culprit!r:.200}") from error

    def decode(self, data: bytes) -> list[bytes]:
        count = int.from_bytes(data[:4], "little")
        head = 4 + 4 * count
        if len(data) < head:
            raise CodecError(f"{len(data)} bytes are too few for {count} records")
        sizes = array("I", data[4:head])
        ends = list(accumulate(sizes, initial=head))
        if ends[-1] != len(data):
            raise CodecError(f"{len(data)} bytes where the sizes of records say {ends[-1]}")
        return [data[start:end] for start, end in pairwise(ends)]


class ProtobufCodec:
    """Messages of one class."""

    columnar = False

    def __init__(self, message: "type[Message]") -> None:
        self.name = f"protobuf:{message.DESCRIPTOR.full_name}"
        self._message = message
        self._bytes = BytesCodec()

    def encode(self, values: list[Any]) -> bytes:
        try:
            return self._bytes.encode([value.SerializeToString() for value in values])
        except AttributeError as error:
            raise CodecError(f"{self.name} takes messages of that class: {error}") from error

    def decode(self, data: bytes) -> list[Any]:
        from google.protobuf.message import DecodeError

        try:
            return [self._message.FromString(each) for each in self._bytes.decode(data)]
        except DecodeError as error:
            raise CodecError(f"bytes that are not {self.name}: {error}") from error


class ArrowCodec:
    """Columns, as Arrow's stream format."""

    name = "arrow"
    columnar = True

    def encode(self, values: Any) -> bytes:  # noqa: ANN401 - pyarrow comes with an extra
        return self.encode_once(values).tobytes()

    def encode_once(self, values: Any) -> memoryview:  # noqa: ANN401
        """Give what ``encode`` gives, copied into memory of its size and not again."""
        pa = _pyarrow()
        if not isinstance(values, pa.RecordBatch):
            raise CodecError(f"the codec arrow takes a pyarrow.RecordBatch, not {type(values)}")
        size = pa.MockOutputStream()
        _write_columns(size, values)
        memory = pa.allocate_buffer(size.size())
        _write_columns(pa.FixedSizeBufferWriter(memory), values)
        return memoryview(memory)

    def decode(self, data: bytes | memoryview) -> Any:  # noqa: ANN401
        pa = _pyarrow()
        try:
            with pa.ipc.open_stream(data) as reader:
                return reader.read_next_batch()
        except (pa.ArrowInvalid, StopIteration, OSError) as error:
            raise CodecError(f"{len(data)} bytes that are not an Arrow batch: {error}") from error


def _write_columns(sink: Any, values: Any) -> None:  # noqa: ANN401
    with _pyarrow().ipc.new_stream(sink, values.schema) as writer:
        writer.write_batch(values)


def to_columns(values: list[Any]) -> Any:  # noqa: ANN401
    """Turn rows (dictionaries) into columns.

    Raises:
        CodecError: rows that are not dictionaries, or columns of mixed types.
    """
    pa = _pyarrow()
    try:
        # pyarrow would take the columns of the first row, and leave out what others have besides.
        names = values[0].keys() if values else ()
        if other := next((row for row in values if row.keys() != names), None):
            raise CodecError(
                f"rows that do not become columns: one has {', '.join(map(str, names))}, another "
                f"{', '.join(map(str, other))}"
            )
        return pa.RecordBatch.from_pylist(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError, TypeError) as error:
        raise CodecError(f"rows that do not become columns: {error}") from error


def encode(codec: Codec, values: Any) -> Payload:  # noqa: ANN401
    """Give the bytes of values, rows turned into columns where the edge has columns."""
    if codec.columnar and isinstance(values, list):
        values = to_columns(values)
    return codec.encode_once(values) if isinstance(codec, ArrowCodec) else codec.encode(values)


def decode(codec: Codec, data: Payload) -> Any:  # noqa: ANN401
    """Read values: from a view, which spares a copy, where the codec knows how to."""
    if isinstance(data, memoryview) and not isinstance(codec, JsonCodec | ArrowCodec):
        data = bytes(data)
    return codec.decode(data)  # type: ignore[arg-type]


def to_rows(values: Any) -> list[Any]:  # noqa: ANN401
    """Turn columns into rows, a dictionary each."""
    return values.to_pylist()  # type: ignore[no-any-return]


def _pyarrow() -> Any:  # noqa: ANN401
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ImportError as error:
        raise MissingExtraError("arrow", "a columnar body") from error
    return pa


_NAMED: dict[str, Callable[[], Codec]] = {
    "json": JsonCodec,
    "bytes": BytesCodec,
    "arrow": ArrowCodec,
}


def make_codec(choice: "str | type[Message] | Codec") -> Codec:
    """Give the codec that a user asks for: by name, by a protobuf class, or one of their own.

    Raises:
        ConfigError: there is no such codec.
    """
    if isinstance(choice, str):
        make = _NAMED.get(choice)
        if make is None:
            raise ConfigError(
                f"no codec {choice!r}: there are {', '.join(_NAMED)}, or a protobuf message class"
            )
        return make()
    if isinstance(choice, type):
        if not hasattr(choice, "DESCRIPTOR"):
            raise ConfigError(f"{choice.__name__} is no protobuf message class")
        return ProtobufCodec(choice)
    return choice
