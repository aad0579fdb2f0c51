"""A process of its own for an endpoint, as the one who started it sees it."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import orjson

from dsp.core.types import Lane, NodeId, Peer
from dsp.testing.contract.streams import FRAME

__all__ = ["ChildProcess", "REPORT_BYTES"]

REPORT_BYTES = 1024 * 1024
ERROR_BYTES = 8 * 1024


class ChildProcess:
    """An endpoint in a process of its own, and what it has reported so far.

    Attributes:
        node: name of the endpoint.
        frames: numbers of the frames that it received, in order, per lane.
        seen: the same without order and repeats.
        sizes: the sizes of those frames.
        arrived: numbers of the frames that its session had, whether or not it came to receive
            them; for endpoints of ``create_reporting_session``.
    """

    def __init__(self, node: str, process: asyncio.subprocess.Process, patience: float) -> None:
        self.node = node
        self.frames: dict[Lane, list[int]] = {lane: [] for lane in Lane}
        self.seen: dict[Lane, set[int]] = {lane: set() for lane in Lane}
        self.sizes: set[int] = set()
        self.arrived: dict[Lane, list[int]] = {lane: [] for lane in Lane}
        self._clogged = False
        self._sent = False
        self._process = process
        self._patience = patience
        self._address: str | None = None
        self._closed = False
        self._errors = b""
        self._news = asyncio.Event()
        self._readers = [
            asyncio.create_task(self._read_reports()),
            asyncio.create_task(self._read_errors()),
        ]

    @property
    def peer(self) -> Peer:
        """Where the endpoint is reached."""
        assert self._address is not None, "not ready"
        return Peer(NodeId(self.node), self._address)

    def tell(self, order: dict[str, Any]) -> None:
        """Write a line to its input."""
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps(order) + b"\n")

    def send(
        self,
        to: Peer,
        *,
        first: int,
        count: int,
        lane: Lane = Lane.DATA,
        size: int = len(FRAME),
        grace: float | None = None,
    ) -> None:
        """Order it to send numbered frames.

        Args:
            grace: seconds after which a send that waits is told, and the last one; None: it waits.
        """
        order = {"to": to.id, "address": to.address, "lane": lane.value, "size": size}
        self.tell({**order, "first": first, "count": count, "grace": grace})

    def has_clogged(self) -> bool:
        """Tell whether a send waited for longer than its order allows."""
        return self._clogged

    def peak_resident_bytes(self) -> int:
        """Give the most memory that it ever had."""
        with open(f"/proc/{self._process.pid}/status", encoding="utf-8") as file:
            line = next(line for line in file if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024

    def has_sent(self) -> bool:
        """Tell whether it has carried out an order to send."""
        return self._sent

    async def ready(self) -> None:
        """Wait until the endpoint is open."""
        await self.until(lambda: self._address is not None, "to be ready")

    async def received(self, count: int, lane: Lane = Lane.DATA) -> None:
        """Wait until it has received this many different frames."""
        await self.until(lambda: len(self.seen[lane]) >= count, f"{count} frames on {lane.value}")

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until its reports make a condition true."""
        try:
            async with asyncio.timeout(self._patience):
                while not condition():
                    assert not self._readers[0].done(), self._story(f"ended; expected {what}")
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(self._story(f"not within {self._patience} s: {what}")) from None

    async def stop(self) -> None:
        """Stop it as it stands (SIGSTOP), and wait until it has stopped."""
        self._process.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(self._patience):
            # A stop makes no event that its parent could wait for and not take from others.
            while self._state() != "T":  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._process.send_signal(signal.SIGCONT)

    async def close(self) -> None:
        """Let it close its endpoint and exit, and check that it does so without complaint."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self.until(lambda: self._closed, "to close")
        async with asyncio.timeout(self._patience):
            code = await self._process.wait()
        assert code == 0, self._story(f"exit code {code}")

    async def kill(self) -> None:
        """Kill it (SIGKILL) if it still runs, and take in its last reports. Safe to repeat."""
        if self._process.returncode is None:
            self._process.kill()
        async with asyncio.timeout(self._patience):
            await self._process.wait()
            await asyncio.gather(*self._readers)
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _state(self) -> str:
        with open(f"/proc/{self._process.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]

    def _story(self, problem: str) -> str:
        counts = {lane.value: len(got) for lane, got in self.frames.items()}
        errors = self._errors.decode(errors="replace")
        return f"child {self.node!r}: {problem}; received {counts}; it wrote:\n{errors}"

    async def _read_reports(self) -> None:
        assert self._process.stdout is not None
        try:
            while (line := await self._process.stdout.readline()).endswith(b"\n"):
                self._take(orjson.loads(line))
                self._news.set()
        finally:
            self._news.set()

    def _take(self, report: dict[str, Any]) -> None:
        match report["kind"]:
            case "ready":
                self._address = report["address"]
            case "frame":
                self.frames[Lane(report["lane"])].append(report["number"])
                self.seen[Lane(report["lane"])].add(report["number"])
                self.sizes.add(report["size"])
            case "arrived":
                self.arrived[Lane(report["lane"])] += report["numbers"]
            case "clogged":
                self._clogged = True
            case "sent":
                self._sent = True
            case "closed":
                self._closed = True

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(ERROR_BYTES):
            self._errors = (self._errors + chunk)[-ERROR_BYTES:]
