"""The parameters of an experiment, those of the papers and those that the papers leave open."""

from dataclasses import dataclass, field, fields

from dsp.scaling.deciders.autoscale import Proactive
from dsp.scaling.deciders.probabilistic import Thresholds

__all__ = ["Setting", "OPEN_PARAMETERS"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What is simulated.

    Attributes:
        operators: in a line; each has a load of its own.
        instances: of each operator at the start.
        capacity: records that an instance can process in a time step.
        thresholds: target, high and low.
        period: time steps between two decisions of an instance.
        steps: time steps of a run.
        load: "brownian", "sinusoidal", "doubling", "halving" or "monotone".
        aligned: all instances decide at the same steps; otherwise each has a phase of its own.
        sigma: standard deviation of a step of the Brownian motion, in records. Open in the papers.
        floor: the least load of an operator, in records. Open in the papers.
        amplitude: of the sinusoid, as a share of its mean. Open in the papers.
        wavelength: of the sinusoid, in time steps. Open in the papers.
        slope: growth of the monotone load in a time step, as a share of its start. Open in the
            papers.
    """

    operators: int = 5
    instances: int = 14
    capacity: float = 500.0
    thresholds: Thresholds = field(default_factory=Thresholds)
    period: int = 5
    steps: int = 200
    load: str = "brownian"
    aligned: bool = False
    sigma: float = 300.0
    floor: float = 350.0
    amplitude: float = 0.5
    wavelength: int = 50
    slope: float = 0.02

    @property
    def proactive(self) -> Proactive:
        """Parameters of AUTOSCALE+, with time steps as its seconds."""
        return Proactive(self.period, window=2 * self.period, settle=self.period / 2)

    @property
    def first_load(self) -> float:
        """The load at which the first instances are exactly right."""
        return self.instances * self.capacity * self.thresholds.target

    def ideal(self, load: float) -> float:
        """The ideal number of instances, not rounded, at least 1."""
        return max(1.0, load / (self.capacity * self.thresholds.target))

    def describe(self) -> dict[str, object]:
        """Every parameter with its value."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


OPEN_PARAMETERS = {
    "sigma": "step of the Brownian motion, records per time step",
    "floor": "least load of an operator, records per time step",
    "amplitude": "of the sinusoidal load, share of its mean",
    "wavelength": "of the sinusoidal load, time steps",
    "slope": "growth of the monotone load per time step, share of its start",
    "ideal": "load / (target x capacity), not rounded, at least 1",
    "first load": "that for which the first instances are exactly right",
    "share": "records go to active instances in equal shares",
    "count": "an instance counts from its start until it is gone",
    "first message": "of an operation arrives in the same time step, all others in the next one",
}
"""What the papers leave open, and how it is settled here."""
