"""Results as rows of text, with ratios to a contender of one's choice."""

from collections.abc import Iterator, Sequence
from typing import Final

from dsp.lab.transport.load import Figures, LoadKind
from dsp.lab.transport.suite import Result

__all__ = ["HEADER", "rows"]

HEADER: Final = ("load", "transport", "figure", "ratio")


def rows(results: Sequence[Result], base: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Give a row for each result.

    Args:
        base: what the ratios are to: the first of these that has a figure for the load.
    """
    for result in results:
        others = {other.contender: other for other in results if other.load == result.load}
        basis = next((others[name] for name in base if name in others), None)
        ratio = _ratio(result.median, basis.median) if basis is not None else ""
        yield result.load, result.contender, _figure(result), ratio


def _figure(result: Result) -> str:
    figures = result.median
    if result.error is not None:
        return "failed: " + result.error.strip().splitlines()[-1]
    if figures.rate is not None:
        return f"{figures.rate:,.0f} records/s"
    if figures.p50 is not None and figures.p99 is not None:
        return f"p50 {figures.p50 * 1e6:,.0f} us, p99 {figures.p99 * 1e6:,.0f} us"
    if figures.resident_mib is not None:
        source, sink = figures.resident_mib
        return f"{source:.0f} and {sink:.0f} MiB"
    return f"nothing measured ({LoadKind(result.kind).value})"


def _ratio(mine: Figures, base: Figures) -> str:
    for one, other in ((mine.rate, base.rate), (mine.p50, base.p50)):
        if one is not None and other:
            return f"{one / other:.2f}"
    return ""
