"""The papers' protocol fails: the traces of its faults, found anew.

The lengths are those of this model, where ending is part of the step that causes it.
"""

import pytest

from dsp.testing.explorer import explore
from tests.scaling.graphs import LINE, Graph, line
from tests.scaling.published import Fault, PublishedPipeline

FAULTS = [
    ((1, 1, 1), LINE, "d b0", Fault.EARLY, 5, "b1: a record comes too early"),
    ((1, 2, 2), LINE, "x b1 x c1", Fault.LOST, 9, "from b1 to c1, which is gone"),
    ((1, 2, 1), LINE, "d a0 x b1", Fault.LOST, 15, "from a1 to b1, which is gone"),
    ((1, 2, 1), LINE, "d b1 x b1", Fault.LOST, 8, "from a0 to b1, which is gone"),
    ((1, 1, 1), LINE, "d a0 d b0", Fault.VIEWS, 12, "a1 knows ['b0'], there is ['b0', 'b1']"),
    ((1, 1, 1), LINE, "d c0 d c0", Fault.NEVER_STARTED, 7, "c1 is never started"),
    ((1,), line(1), "d a0", Fault.NEVER_STARTED, 1, "a1 is never started"),
    ((1, 1, 1), LINE, "d a0 d b0 x a1 x b1", Fault.STUCK, 18, "a1 never ends its leaving"),
]


@pytest.mark.parametrize(
    ("sizes", "graph", "steps", "fault", "length", "text"), FAULTS, ids=[str(f[2]) for f in FAULTS]
)
def test_the_literal_protocol_fails(
    sizes: tuple[int, ...], graph: Graph, steps: str, fault: Fault, length: int, text: str
) -> None:
    records = 1 if fault in (Fault.EARLY, Fault.LOST) else 0
    model = PublishedPipeline(*sizes, steps=steps, look_for=fault, graph=graph, records=records)
    result = explore(model)
    assert result.violation is not None
    assert text in result.violation.message
    assert len(result.violation.trace) == length
