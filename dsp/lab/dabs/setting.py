"""The parameters of an experiment, those of the paper and those that it leaves open."""

from dataclasses import dataclass, fields

from dsp.config.scaling import DeciderName, ScaleRules
from dsp.errors import ConfigError
from dsp.lab.dabs.topologies import topology

__all__ = ["Setting", "STRATEGIES", "GROUPINGS", "PAPER", "OPEN_PARAMETERS", "rules_of"]

STATIC = "static"
STRATEGIES: dict[str, DeciderName | None] = {
    STATIC: None,
    "incremental": "threshold",
    "decentralised": "probabilistic",
    "ranked": "ranked",
    "autoscale": "autoscale+",
    "autoscale-late": "autoscale+",
    "autoscale-lean": "autoscale+",
}
"""Names of strategies, and the deciders that they are."""

GROUPINGS = ("round-robin", "osg", "adaptive")

PAPER: dict[tuple[str, str, str], dict[str, float]] = {
    ("insensitive", "progressive", "uniform"): {"incremental": 0.29, "autoscale": 0.07},
    ("insensitive", "erratic", "uniform"): {
        "incremental": 0.19,
        "autoscale": 0.18,
        "learning": 0.13,
    },
    ("sensitive", "erratic", "zipf"): {"autoscale": 0.048},
    ("complex", "erratic", "zipf"): {"autoscale": 0.10},
}
"""Shares of late tuples that paper 002 prints; its learning baseline is not built here."""

OPEN_PARAMETERS = {
    "low": "least rate of a stream, tuples per second",
    "high": "highest rate",
    "duration": "seconds of a stream",
    "cost": "seconds that a tuple costs at the critical operator, on average",
    "distinct": "different values",
    "start_time": "seconds from the decision to create an instance until it takes tuples",
    "window_time": "seconds of work that may wait at an instance, the rest before it",
    "static": "instances of static: what the mean load needs at the target load",
    "osg_window": "OSG's N; the paper's 1,024 is more than most instances here ever execute",
}
"""What the paper leaves open, and how it is settled here."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is simulated.

    Attributes:
        topology: "insensitive", "sensitive" or "complex".
        stream: "progressive" or "erratic".
        values: "uniform" or "zipf" (exponent 1.5).
        strategy: who decides how many instances there are; a key of ``STRATEGIES``.
        grouping: who chooses the instance for a tuple; one of ``GROUPINGS``.
        low: tuples per second, least.
        high: tuples per second, most.
        duration: seconds of the stream.
        cost: mean seconds of a tuple at the critical operator.
        distinct: different values.
        period: seconds between two decisions: the paper's monitoring frequency.
        late: seconds after which a tuple is late: the paper's processing timeout.
        weight: the lambda of table 2, for equations 7 and 13.
        beta: of table 2; ``autoscale-late`` has ``late_beta``, as section 6 advises.
        late_beta: near 0.
        lean_margin: of equation 13 for ``autoscale-lean``, which keeps less in reserve.
        start_time: seconds until a new instance takes tuples.
        window_time: seconds of work that may wait at an instance.
        report_every: seconds between two reports to neighbours.
        static_instances: of the static strategy; 0 for what the mean load needs.
        maximum: instances of an operator, at most: the paper's cluster has 9 machines of 4 units.
        osg_window: records between two looks at OSG's matrices.
    """

    topology: str = "insensitive"
    stream: str = "progressive"
    values: str = "uniform"
    strategy: str = "autoscale"
    grouping: str = "osg"
    low: float = 1.5
    high: float = 32.0
    duration: float = 600.0
    cost: float = 0.5
    distinct: int = 4096
    period: float = 10.0
    late: float = 30.0
    weight: float = 0.3
    beta: float = 0.8
    late_beta: float = 0.1
    lean_margin: float = 0.7
    start_time: float = 5.0
    window_time: float = 1.0
    report_every: float = 1.0
    static_instances: int = 0
    maximum: int = 36
    osg_window: int = 128

    def __post_init__(self) -> None:
        topology(self.topology)
        if self.strategy not in STRATEGIES:
            raise ConfigError(f"no strategy {self.strategy!r}; there are {', '.join(STRATEGIES)}")
        if self.grouping not in GROUPINGS:
            raise ConfigError(f"no grouping {self.grouping!r}; there are {', '.join(GROUPINGS)}")
        for name in ("cost", "period", "late", "report_every", "window_time"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name):g}: seconds, over 0")

    @property
    def cell(self) -> tuple[str, str, str]:
        """Topology, stream and values."""
        return self.topology, self.stream, self.values

    def describe(self) -> dict[str, object]:
        """Every parameter with its value."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def rules_of(setting: Setting) -> ScaleRules | None:
    """Give the settings of a strategy as a configuration has them; None if nothing scales."""
    decider = STRATEGIES[setting.strategy]
    if decider is None:
        return None
    return ScaleRules(
        decider=decider,
        period=setting.period,
        maximum=setting.maximum,
        beta=setting.late_beta if setting.strategy == "autoscale-late" else setting.beta,
        margin=setting.lean_margin if setting.strategy == "autoscale-lean" else setting.weight,
        cpu_weight=setting.weight,
    )
