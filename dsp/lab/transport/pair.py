"""Two processes that measure one load over one transport."""

import asyncio
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from dsp.errors import DspError
from dsp.lab.transport.load import Figures, Load, LoadKind

__all__ = ["Contender", "run_pair"]

PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that moves frames between two processes.

    Attributes:
        name: for tables.
        module: run with ``python -m``; talks to its parent as ``dsp.lab.transport.child`` does.
        sink: what the receiving end's order holds beside the load, such as its transport.
        source: the same for the sending end.
        kinds: the loads that it can carry.
    """

    name: str
    module: str = "dsp.lab.transport.child"
    sink: dict[str, Any] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    kinds: tuple[LoadKind, ...] = tuple(LoadKind)


class _Child:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.facts: dict[str, Any] = {}

    @classmethod
    async def start(cls, module: str, order: dict[str, Any]) -> "_Child":
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert process.stdin is not None
        process.stdin.write(orjson.dumps(order) + b"\n")
        return cls(process)

    async def until(self, fact: str) -> None:
        """Read what it reports until it has reported something."""
        assert self._process.stdout is not None
        while fact not in self.facts:
            line = await self._process.stdout.readline()
            if not line:
                assert self._process.stderr is not None
                errors = (await self._process.stderr.read()).decode(errors="replace")
                raise DspError(f"a measuring process ended without {fact!r}:\n{errors[-4000:]}")
            self.facts |= orjson.loads(line)

    async def finish(self) -> None:
        """Let it end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def finish_reporting(self, fact: str) -> None:
        """End its input, and read its last report."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self.until(fact)

    async def end(self) -> None:
        """Kill it if it still runs."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


async def run_pair(contender: Contender, load: Load) -> Figures:
    """Measure one load once.

    Raises:
        DspError: a process ended early; its errors are in the message.
        TimeoutError: it took a minute longer than the load.
    """
    shared = {
        "kind": load.kind.value,
        "batch": load.batch,
        "record_bytes": load.record_bytes,
        "seconds": load.seconds,
    }
    children: list[_Child] = []
    try:
        async with asyncio.timeout(PATIENCE + load.seconds):
            sink = await _Child.start(
                contender.module, {**contender.sink, **shared, "role": "sink", "node": "sink"}
            )
            children.append(sink)
            await sink.until("address")
            to = {"to": sink.facts.get("node", "sink"), "address": sink.facts["address"]}
            source = await _Child.start(
                contender.module,
                {**contender.source, **shared, **to, "role": "source", "node": "source"},
            )
            children.append(source)
            return await _figures(load.kind, sink, source)
    finally:
        for child in children:
            await child.end()


async def _figures(kind: LoadKind, sink: _Child, source: _Child) -> Figures:
    if kind is LoadKind.CLOG:
        await source.until("resident_mib")
        await sink.finish_reporting("resident_mib")
        return Figures(resident_mib=(source.facts["resident_mib"], sink.facts["resident_mib"]))
    if kind is LoadKind.FLOW:
        await source.until("sent")
        await sink.until("records")
        await source.finish()
        await sink.finish()
        if sink.facts["records"] != source.facts.get("sent", sink.facts["records"]):
            raise DspError(f"{source.facts['sent']} records went, {sink.facts['records']} came")
        return Figures(rate=sink.facts["records"] / sink.facts["seconds"])
    await source.until("p50")
    await source.finish()
    await sink.finish()
    return Figures(p50=source.facts["p50"], p99=source.facts["p99"])
