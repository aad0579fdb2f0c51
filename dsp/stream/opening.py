"""Opens what an instance calls before its first batch, and closes it at the end."""

import asyncio
import logging
from collections.abc import Callable

from dsp.stream.bodies import BulkBody
from dsp.stream.offsets import Ends
from dsp.stream.runners import Runner
from dsp.stream.signatures import is_async
from dsp.stream.sinks.base import Sink

__all__ = ["Opening"]

logger = logging.getLogger(__name__)

# Seconds that the end of an instance waits for its sink or body to let go.
CLOSE_PATIENCE = 10.0


class Opening:
    """A sink, or a body that is opened and closed; most bodies are neither.

    Args:
        name: of the instance.
        sink: if it is one.
        bulk: the body, if it is one that is opened.
        runner: where that is done, if it may take its time.
        drop_repeats: whether the sink leaves out records that were here before.
    """

    def __init__(
        self,
        name: str,
        sink: Sink | None,
        bulk: BulkBody | None,
        runner: Runner,
        *,
        drop_repeats: bool,
    ) -> None:
        self._name = name
        self._sink = sink
        self._bulk = bulk
        self._runner = runner
        self._drop_repeats = drop_repeats
        self._lock = asyncio.Lock()
        self._opened = False

    async def open(self) -> None:
        """Open it, unless another worker has done so."""
        async with self._lock:
            if self._opened:
                return
            if self._bulk is not None:
                await self._runner.call(self._bulk.open, 0)
                self._opened = True
            if (sink := self._sink) is None:
                return
            self._opened = True
            sink.drop_repeats = self._drop_repeats
            if is_async(sink.open):
                await sink.open()
            else:
                await self._runner.call(sink.open, 0)

    @property
    def remembers(self) -> bool:
        """Whether this is a sink that keeps identities."""
        return self._sink is not None and self._drop_repeats and self._sink.remembers

    async def forget(self, ends: Ends, sure: Callable[[], None]) -> None:
        """Let the sink forget records that will never come again, once that is sure."""
        sink = self._sink
        assert sink is not None

        def work() -> None:
            if self._opened:
                sure()
                sink.forget(ends)

        # In the worker thread, between two writes.
        await self._runner.call(work, 0)

    async def close(self) -> None:
        """Close it, if it was opened, once no call of it is under way."""
        body: Sink | BulkBody | None = self._bulk if self._sink is None else self._sink
        if body is None or not self._opened:
            return
        self._opened = False
        if self._sink is not None and is_async(self._sink.close):
            await self._sink.close()
            return
        # In the worker thread, after the call that may still be there. One that hangs is not
        # waited for.
        closing = asyncio.ensure_future(self._runner.call(body.close, 0))
        await asyncio.wait([closing], timeout=CLOSE_PATIENCE)
        if closing.done():
            closing.result()
        else:
            closing.cancel()
            what = "sink" if self._sink is not None else "body"
            logger.error("%s: the %s hangs, and is not closed", self._name, what)
