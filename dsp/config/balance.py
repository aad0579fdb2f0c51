"""Settings of load balancing: how edges are shared out, and how precisely costs are known."""

from typing import Literal

from pydantic import Field

from dsp.config.section import Section

__all__ = ["BalanceConfig"]


class BalanceConfig(Section):
    """The ``[balance]`` table: which instance gets a record, where the pipeline does not say."""

    shuffle: Literal["adaptive", "round-robin"] = Field(
        default="adaptive",
        description=(
            "How records are shared out on edges without a grouping. adaptive: to the instance "
            "with the least work before it. round-robin: in turns, which is simpler to foresee."
        ),
    )
    epsilon: float = Field(
        default=0.05,
        gt=0.0,
        lt=1.0,
        description=(
            "Share of the keys that have a cell of a sketch in common: its precision. "
            "Smaller tells more keys apart, and makes larger messages."
        ),
    )
    delta: float = Field(
        default=0.05,
        gt=0.0,
        lt=1.0,
        description=(
            "Share of the estimates that miss the precision, at most. Smaller is surer, and makes "
            "more rows."
        ),
    )
    seed: int = Field(
        default=0,
        ge=0,
        le=(1 << 63) - 1,
        description="Seed of the hash functions; the same in all processes of an application.",
    )
    osg_window: int = Field(
        default=1024,
        ge=1,
        le=10_000_000,
        description=(
            "Records after which an instance looks whether its costs are stable (N of paper 002). "
            "Fewer tells costs sooner; more tells them better."
        ),
    )
    osg_tolerance: float = Field(
        default=0.05,
        ge=0.0,
        le=10.0,
        description=(
            "Share by which costs differ between two looks and are stable still (mu of paper 002). "
            "Larger leaves round-robin sooner, with rougher estimates."
        ),
    )
    report_records: int = Field(
        default=64,
        ge=1,
        le=10_000_000,
        description=(
            "Records after which an instance tells the adaptive grouping what they cost. Fewer "
            "follow changes sooner; more mean fewer messages."
        ),
    )
    report_pause: float = Field(
        default=0.05,
        ge=0.0,
        le=3600.0,
        description=(
            "Seconds between two such reports, at least. Longer means fewer messages of quick "
            "instances."
        ),
    )
    memory: float = Field(
        default=2048.0,
        ge=1.0,
        le=1e9,
        description=(
            "Records after which the adaptive grouping has forgotten half of what it knew about "
            "costs. Fewer follow changes sooner; more know rare keys better."
        ),
    )
