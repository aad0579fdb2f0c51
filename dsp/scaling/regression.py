"""Where a series goes: the best of a linear, a logarithmic and an exponential model.

Paper 002, 4.1: AUTOSCALE+ estimates what comes in the next iteration with the model that fits the
last one best. The fits are least squares in closed form; they need no library.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, fsum, inf, log

__all__ = ["Model", "MODELS", "best_model"]

# From fewer points any line could be drawn; their mean is all that they say.
LEAST_POINTS = 3
# A more curved model has to fit better than rounding could make it, or the simpler one is taken.
CLEARLY = 1 - 1e-9
# Where exponents end: beyond it no rate of records lies, and `exp` would overflow.
MOST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted model.

    Attributes:
        kind: "mean", "linear", "logarithmic" or "exponential".
        residual: sum of the squared distances from the points.
        at: gives the value at a time, on the clock of the points.
    """

    kind: str
    residual: float
    at: Callable[[float], float]

    def mean(self, start: float, end: float, points: int = 10) -> float:
        """Give the mean between two times (equation 3 over the number of its points)."""
        step = (end - start) / points
        return fsum(self.at(start + (number + 0.5) * step) for number in range(points)) / points


def best_model(times: Sequence[float], values: Sequence[float]) -> Model:
    """Fit every model and give the one with the least residual.

    Args:
        times: of the points, rising; at least one.
        values: at these times.

    Raises:
        ValueError: no points, or not as many times as values.
    """
    if not times or len(times) != len(values):
        raise ValueError(f"{len(times)} times and {len(values)} values: as many, and at least one")
    best = _mean(times, values)
    if len(times) < LEAST_POINTS or times[-1] <= times[0]:
        return best
    for fit in MODELS.values():
        model = fit(times, values)
        if model is not None and model.residual < best.residual * CLEARLY:
            best = model
    return best


def _mean(times: Sequence[float], values: Sequence[float]) -> Model:
    mean = fsum(values) / len(values)
    return _model("mean", lambda time: mean, times, values)


def _linear(times: Sequence[float], values: Sequence[float]) -> Model | None:
    origin = times[0]
    line = _line([time - origin for time in times], values, [1.0] * len(times))
    if line is None:
        return None
    level, slope = line
    return _model("linear", lambda time: level + slope * (time - origin), times, values)


def _logarithmic(times: Sequence[float], values: Sequence[float]) -> Model | None:
    # The curve begins one step before the first point: there is no logarithm of 0.
    step = (times[-1] - times[0]) / (len(times) - 1)
    origin = times[0] - step

    def scale(time: float) -> float:
        return log(max(time - origin, step * 1e-3) / step)

    line = _line([scale(time) for time in times], values, [1.0] * len(times))
    if line is None:
        return None
    level, slope = line
    return _model("logarithmic", lambda time: level + slope * scale(time), times, values)


def _exponential(times: Sequence[float], values: Sequence[float]) -> Model | None:
    if min(values) <= 0:  # an exponential function has no zeros
        return None
    origin = times[0]
    # The fit is of logarithms, where small values count as much as large ones. Weighted by the
    # squares of the values, distances count nearly as they do for the other models.
    weights = [value * value for value in values]
    line = _line([time - origin for time in times], [log(value) for value in values], weights)
    if line is None:
        return None
    level, slope = line

    def at(time: float) -> float:
        return exp(min(level + slope * (time - origin), MOST_EXPONENT))

    return _model("exponential", at, times, values)


def _line(
    xs: Sequence[float], ys: Sequence[float], weights: Sequence[float]
) -> tuple[float, float] | None:
    """Level and slope of the line with the least weighted squares; None if there is none."""
    total = fsum(weights)
    if not 0 < total < inf:
        return None
    mean_x = fsum(w * x for w, x in zip(weights, xs, strict=True)) / total
    mean_y = fsum(w * y for w, y in zip(weights, ys, strict=True)) / total
    spread = fsum(w * (x - mean_x) ** 2 for w, x in zip(weights, xs, strict=True))
    if spread <= 0:
        return None
    rise = fsum(w * (x - mean_x) * (y - mean_y) for w, x, y in zip(weights, xs, ys, strict=True))
    slope = rise / spread
    return mean_y - slope * mean_x, slope


def _model(
    kind: str, at: Callable[[float], float], times: Sequence[float], values: Sequence[float]
) -> Model:
    residual = fsum((at(time) - value) ** 2 for time, value in zip(times, values, strict=True))
    return Model(kind, residual, at)


MODELS: dict[str, Callable[[Sequence[float], Sequence[float]], Model | None]] = {
    "linear": _linear,
    "logarithmic": _logarithmic,
    "exponential": _exponential,
}
"""The three models of the paper; each gives None where it cannot be fitted."""
