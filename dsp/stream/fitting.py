"""Records that the codec of an edge cannot hold: told apart, so that the others go on."""

from itertools import compress

from dsp.errors import CodecError
from dsp.stream.batch import Batch
from dsp.stream.codecs import encode
from dsp.stream.graph import Edge
from dsp.stream.steps import Failure

__all__ = ["fit"]


def fit(edge: Edge, batch: Batch) -> tuple[Batch, list[Failure]]:
    """Give the records of a batch that an edge can carry, and those that it cannot."""
    if not isinstance(batch.values, list):
        try:
            encode(edge.codec, batch.values)
        except CodecError as error:
            failures = [Failure(each, None, str(error), "") for each in batch.ids]
            return batch.part(0, 0), failures
        return batch, []
    fits: list[bool] = []
    failures = []
    for value, each in zip(batch.values, batch.ids, strict=True):
        try:
            encode(edge.codec, [value])
        except CodecError as error:
            failures.append(Failure(each, value, f"{edge.source} -> {edge.target}: {error}", ""))
            fits.append(False)
        else:
            fits.append(True)
    values, ids = list(compress(batch.values, fits)), list(compress(batch.ids, fits))
    return Batch(values, ids, batch.born), failures
