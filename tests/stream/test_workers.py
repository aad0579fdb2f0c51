"""How many batches an instance works on at once, which its capacity follows from."""

import asyncio

from dsp.stream.pipeline import Pipeline


async def wait(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_threads_of_an_async_body_share_a_batch() -> None:
    pipeline = Pipeline("workers")
    stream = pipeline.source([1]).map(wait, name="async", threads=4)
    stream.map(abs, name="sync", threads=4).sink(print)
    operators = pipeline.graph().operators
    assert operators["async"].workers == 1
    assert operators["sync"].workers == 4
