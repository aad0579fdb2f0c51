"""Settings of scaling: by which rule instances decide, when, and within what bounds."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from dsp.config.section import Section, between_fields

__all__ = ["DeciderName", "ScaleRules", "ScalingConfig"]

_ORDERED = (("low", "target", "high"), ("minimum", "maximum"))

DeciderName = Literal["probabilistic", "secure", "ranked", "centralised", "threshold", "autoscale+"]


class ScaleRules(Section):
    """How the instances of an operator decide: the keys of ``[scaling]`` but its operators."""

    decider: DeciderName = Field(
        default="ranked",
        description=(
            "The rule by which instances decide. 'ranked', 'probabilistic' and 'secure' let each "
            "decide by itself; 'centralised' and 'threshold' let the keeper decide for all, which "
            "acts less often and stalls while the keeper does; 'autoscale+' estimates the load of "
            "the next period, and needs the extra 'balance' for real figures of the CPU."
        ),
    )
    low: float = Field(
        default=0.6,
        ge=0.01,
        le=10.0,
        description=(
            "Share of its capacity up to which an instance thinks of leaving. Higher frees "
            "instances sooner; near target it sends away what is soon created anew."
        ),
    )
    target: float = Field(
        default=0.7,
        ge=0.01,
        le=10.0,
        description=(
            "Share of its capacity that an instance is meant to be busy with. Lower keeps a "
            "reserve for bursts; higher needs fewer instances. At least low."
        ),
    )
    high: float = Field(
        default=0.8,
        ge=0.01,
        le=10.0,
        description=(
            "Share of its capacity from which on an instance thinks of creating siblings. Lower "
            "reacts sooner; near target it creates what is soon sent away. At least target."
        ),
    )
    period: float = Field(
        default=5.0,
        ge=0.01,
        le=86_400.0,
        description=(
            "Seconds between two decisions of an instance. Shorter follows the load more closely; "
            "longer costs fewer messages. Well above the time that an operation takes."
        ),
    )
    minimum: int = Field(
        default=1,
        ge=1,
        le=100_000,
        description=(
            "Instances of an operator that are left at least. More are ready for a sudden load, "
            "and cost as much while there is none."
        ),
    )
    maximum: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description=(
            "Instances of an operator that there are at most; left out, there is no bound. Fewer "
            "protects the hosts, and leaves records waiting when the load is higher. Instances "
            "that decide at the same moment may pass it by what all but one of them create."
        ),
    )
    cool_down: float = Field(
        default=0.0,
        ge=0.0,
        le=86_400.0,
        description=(
            "Seconds between two actions of one instance, at least. Longer is calmer; shorter "
            "follows a load that keeps growing."
        ),
    )
    per_minute: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description=(
            "Instances that one instance may create or send away in a minute; left out, there is "
            "no bound. Fewer bounds the harm of a wrong figure; more answers a burst at once."
        ),
    )

    window: float | None = Field(
        default=None,
        gt=0.0,
        le=86_400.0,
        description=(
            "For autoscale+: seconds of monitoring that it estimates from; left out, two periods. "
            "Longer is less misled by noise; shorter sees a turn of the load sooner."
        ),
    )
    settle: float | None = Field(
        default=None,
        ge=0.0,
        le=86_400.0,
        description=(
            "For autoscale+: seconds after the last change of an operator's instances in which it "
            "monitors nothing, and at least a period passes after the first; left out, half a "
            "period. Longer believes no figures of the change; shorter acts again sooner."
        ),
    )
    beta: float = Field(
        default=0.5,
        gt=0.0,
        le=1.0,
        description=(
            "Share of the present number of instances below which autoscale+ scales in. "
            "Near 0 it keeps them until there is hardly any load; above margin it frees them at "
            "once, and creates them anew when the load wavers; the paper's value is 0.8."
        ),
    )
    margin: float = Field(
        default=0.7,
        gt=0.0,
        le=1.0,
        description=(
            "Share of its reserved CPU that a new number of instances counts on, by autoscale+. "
            "Lower creates more of them, and acts less often; the paper's value is 0.3."
        ),
    )
    cpu_weight: float = Field(
        default=0.3,
        ge=0.0,
        lt=1.0,
        description=(
            "Share of the CPU in use that autoscale+ counts on besides what is free. "
            "Higher believes in the present use; lower expects to lose it to others."
        ),
    )
    cpu_reserved: float = Field(
        default=1.0,
        gt=0.0,
        le=1.0,
        description=(
            "Share of a core that is reserved for an instance, by autoscale+. Lower where several "
            "instances have to share a core; it creates more of them then."
        ),
    )
    combine: Literal["max", "min"] = Field(
        default="max",
        description=(
            "For autoscale+: of its own estimate of what comes and that of its predecessors, 'max' "
            "takes the larger, which is cautious, and 'min' the smaller, which saves instances."
        ),
    )

    @field_validator("target", "high", "maximum")
    @classmethod
    def _in_order(cls, value: float | None, info: ValidationInfo) -> float | None:
        other = {b: a for names in _ORDERED for a, b in pairwise(names)}[info.field_name or ""]
        # One that is itself wrong is absent here, and reported on its own.
        least = info.data.get(other)
        if value is not None and least is not None and value < least:
            raise between_fields(
                f"{value:g} is below {other} ({least:g})",
                other,
                hint=f"raise it or lower {other}",
            )
        return value


class ScalingConfig(ScaleRules):
    """The ``[scaling]`` table: how instances decide to duplicate or to leave."""

    operators: dict[str, ScaleRules] = Field(
        default={},
        description=(
            "Tables by the name of an operator, such as [scaling.operators.map], with the keys of "
            "[scaling]. What such a table leaves out is as in [scaling]."
        ),
    )
    # After the operators' tables: they get what stands before them, and this is no key of theirs.
    coordination: Literal["ack", "2fgme"] = Field(
        default="ack",
        description=(
            "When a scaling step may begin. 'ack': at once; acknowledgements of the neighbours are "
            "enough. '2fgme': while no neighbouring operator takes one, by mutual exclusion of two "
            "groups; steps of neighbours never overlap, wait for each other, and cost more "
            "messages. The same for all processes of an application."
        ),
    )

    @field_validator("operators", mode="before")
    @classmethod
    def _complete(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, Mapping):
            return value
        general = dict(info.data)
        for names in _ORDERED:
            # One that is wrong is absent, and reported once, not again for every operator.
            if not general.keys() >= {*names}:
                for name in names:
                    general.pop(name, None)
        return {name: _completed(table, general) for name, table in value.items()}

    def of(self, operator: str) -> ScaleRules:
        """The settings of an operator."""
        return self.operators.get(operator, self)


def _completed(table: object, general: Mapping[str, object]) -> object:
    if isinstance(table, ScaleRules):
        table = table.model_dump(exclude_unset=True)
    return {**general, **table} if isinstance(table, Mapping) else table
