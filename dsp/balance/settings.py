"""What balancers can be told."""

from dataclasses import dataclass

__all__ = ["BalanceSettings"]


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
