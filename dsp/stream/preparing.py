"""What came out of a body, made ready for the edges that it goes to."""

from dsp.errors import CodecError
from dsp.stream.batch import Batch
from dsp.stream.fitting import fit
from dsp.stream.graph import Edge
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Made
from dsp.stream.steps import Failure

__all__ = ["make_fitting"]


def make_fitting(
    outlet: Outlet, edges: list[Edge], batch: Batch
) -> tuple[list[Made], list[Failure]]:
    """Prepare a batch for every edge; tell apart what the codec of an edge cannot hold."""
    try:
        return _make_all(outlet, edges, batch), []
    except CodecError:
        failures: list[Failure] = []
        for edge in edges:
            batch, unfit = fit(edge, batch)
            failures += unfit
        return (_make_all(outlet, edges, batch) if len(batch) else []), failures


def _make_all(outlet: Outlet, edges: list[Edge], batch: Batch) -> list[Made]:
    """Prepare a batch for every edge: split by key, or encoded if it goes to another process.

    Meant for a worker thread: it only reads what the loop changes, and the loop checks again.
    """
    return [outlet.prepare(edge, batch) for edge in edges]
