"""Sources from outside: TCP lines, and journals around what cannot be replayed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import dsp
from dsp.errors import ConfigError, ConnectError
from dsp.stream.sources import (
    Journaled,
    JsonLinesSource,
    QueueSource,
    SourceContext,
    TcpLinesSource,
)
from tests.stream.runs import copied

pytestmark = pytest.mark.asyncio


async def here(function: Any, *arguments: Any) -> Any:  # noqa: ANN401
    return function(*arguments)


CONTEXT = SourceContext(here, "source")


async def test_lines_of_many_clients() -> None:
    source, out, letters = (
        TcpLinesSource(longest=100, most_waiting=50),
        dsp.Collector(),
        dsp.Collector(),
    )
    pipeline = dsp.Pipeline("lines")
    pipeline.source(source).sink(out)
    pipeline.dead_letters(letters)

    async def client(number: int) -> None:
        _, writer = await asyncio.open_connection(*source.address)
        for line in range(200):
            writer.write(b"%d %d\r\n" % (number, line))
            await writer.drain()
        if number == 0:
            writer.write(b"\xff\n" + b"x" * 300_000 + b"\nhalf")
        writer.close()
        await writer.wait_closed()

    async with dsp.run(pipeline) as app, asyncio.timeout(50):
        while not source.listening:
            await asyncio.sleep(0.01)
        await asyncio.gather(*map(client, range(5)))
        while len(out.values) < 1000 or len(letters.values) < 3:
            await asyncio.sleep(0.01)
        await app.stop()
    for number in range(5):
        mine = [line for line in out.values if line.startswith(f"{number} ")]
        assert mine == [f"{number} {line}" for line in range(200)]
    errors = " ".join(letter["error"] for letter in letters.values)
    assert len(letters.values) == 3
    for words in ("decode", "more than 100 bytes", "ended inside a line"):
        assert words in errors


async def test_a_client_waits_while_nobody_reads() -> None:
    source = TcpLinesSource(most_waiting=10)
    await source.open(CONTEXT, None, 0)
    _, writer = await asyncio.open_connection(*source.address)
    writer.write(b"a line\n" * 2_000_000)
    for _ in range(100):
        await asyncio.sleep(0.001)
    # One read of 64 KiB may come on top of what may wait.
    assert source.waiting < 10 + 65536 // 7 + 2
    writer.transport.abort()
    await source.close()


async def test_an_address_that_is_taken() -> None:
    source = TcpLinesSource()
    await source.open(CONTEXT, None, 0)
    with pytest.raises(ConnectError, match="who else listens there"):
        await copied(TcpLinesSource(port=source.address[1]), dsp.Collector())
    await source.close()


async def test_a_queue_is_drained_when_the_application_stops() -> None:
    source, out = QueueSource(), dsp.Collector()
    pipeline = dsp.Pipeline("queue")
    pipeline.source(source).sink(out)
    async with dsp.run(pipeline):
        for value in range(5000):
            source.put_nowait(value)
    assert out.values == list(range(5000))


async def test_a_journal_gives_again_what_is_not_dealt_with(tmp_path: Path) -> None:
    def journaled() -> tuple[QueueSource, Journaled]:
        queue = QueueSource()
        return queue, Journaled(queue, tmp_path / "journal")

    queue, source = journaled()
    await source.open(CONTEXT, None, 0)
    for value in range(10):
        queue.put_nowait({"n": value} if value != 3 else {1, 2})
    first, second = await source.read(4), await source.read(6)
    assert first is not None
    assert second is not None
    # A set has no place in JSON: a dead letter, with a number of its own behind the others.
    assert [each.offset for each in first.failures] == [3]
    assert list(first.offsets or ()) == [0, 1, 2]
    source.dealt_with(first.position)
    await source.close()

    queue, source = journaled()  # nothing of the second chunk was dealt with
    await source.open(CONTEXT, first.position, 4)
    queue.put_nowait({"n": 10})
    again, new = await source.read(100), await source.read(100)
    assert again is not None
    assert new is not None
    assert (again.values, list(again.offsets or ())) == (second.values, [4, 5, 6, 7, 8, 9])
    assert (new.values, list(new.offsets or ())) == ([{"n": 10}], [10])
    source.dealt_with(new.position)
    await source.close()

    queue, source = journaled()
    await source.open(CONTEXT, None, 0)
    queue.put_nowait({"n": 11})
    last = await source.read(100)
    assert last is not None
    assert list(last.offsets or ()) == [11]
    await source.close()


async def test_a_journal_of_what_needs_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs no journal"):
        Journaled(JsonLinesSource(tmp_path / "x"), tmp_path / "journal")
