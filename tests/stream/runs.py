"""Running a pipeline to its end, in this process."""

from typing import Any

import dsp
from dsp.config import Config
from dsp.stream.summary import Summary


async def finished(pipeline: dsp.Pipeline, **stream: Any) -> Summary:  # noqa: ANN401
    """Run a pipeline whose sources end."""
    config = Config.model_validate({"stream": stream})
    async with dsp.run(pipeline, config) as app:
        return await app.join()


async def copied(source: object, sink: object, **stream: Any) -> list[Any]:  # noqa: ANN401
    """Let records go from a source to a sink; give the dead letters."""
    letters = dsp.Collector()
    pipeline = dsp.Pipeline("copy")
    pipeline.source(source).sink(sink)  # type: ignore[arg-type]
    pipeline.dead_letters(letters)
    await finished(pipeline, **stream)
    return letters.values
