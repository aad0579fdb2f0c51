"""What balancers can be told."""

from dataclasses import dataclass
from math import ceil, log2

__all__ = ["BalanceSettings", "size_for"]


def size_for(epsilon: float, delta: float) -> tuple[int, int]:
    """Give rows and columns: ``ceil(log2(1 / delta))`` and ``ceil(2.7 / epsilon)``.

    The paper writes ``log``; base 2 gives its figure 6 (delta .25, 2 rows). A row is off by more
    than epsilon with probability 1/2.7 at most, so the base e would be enough: 2 is on the safe
    side.

    Raises:
        ValueError: epsilon or delta is not above 0 and below 1.
    """
    if not (0.0 < epsilon < 1.0 and 0.0 < delta < 1.0):
        raise ValueError(f"epsilon {epsilon} and delta {delta} must be above 0 and below 1")
    return ceil(log2(1.0 / delta)), ceil(2.7 / epsilon)


@dataclass(frozen=True, slots=True)
class BalanceSettings:
    """Sizes and tolerances, those of paper 002 where it has them.

    Attributes:
        rows: of the sketches.
        columns: of the sketches.
        seed: of their hash functions.
        window: records between two looks at the matrices; N in the paper.
        tolerance: relative error between two looks up to which they are stable; mu in the paper.
        report_records: records after which the meter of the adaptive balancer tells what it saw.
        report_pause: and the seconds that have to pass between two of its reports.
        memory: records after which half of what the adaptive balancer knows is forgotten.
    """

    rows: int = 5
    columns: int = 54
    seed: int = 0
    window: int = 1024
    tolerance: float = 0.05
    report_records: int = 64
    report_pause: float = 0.05
    memory: float = 2048.0
