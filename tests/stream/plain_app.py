"""A pipeline that needs next to nothing, for the process of an instance to import."""

import dsp


def pipeline() -> dsp.Pipeline:
    """Numbers through an operator that hands them on."""
    job = dsp.Pipeline("plain")
    numbers = job.source([1, 2, 3], name="numbers")
    numbers.map(abs, name="work").sink(dsp.Collector(), name="out")
    return job
