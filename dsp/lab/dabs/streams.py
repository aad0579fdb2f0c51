"""The input streams of paper 002, figure 11: when tuples come, and which values they carry.

The paper has the rates in pictures only, so their shape is described here by a few numbers.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import log
from random import Random

from dsp.errors import ConfigError

__all__ = ["STREAMS", "VALUES", "Shape", "rate_at", "arrivals", "draw_values", "weights_of"]

Shape = tuple[tuple[float, float], ...]
"""Points of a curve: share of the duration, and how far the rate is from low (0) to high (1)."""

STREAMS: dict[str, Shape] = {
    # Low, a large increase, a plateau, a decrease, low.
    "progressive": ((0.0, 0.0), (0.15, 0.0), (0.4, 1.0), (0.6, 1.0), (0.8, 0.0), (1.0, 0.0)),
    # Two short peaks and one that lasts longer, each as steep as two hundredths of the duration.
    "erratic": (
        (0.0, 0.0), (0.12, 0.0), (0.14, 0.7), (0.2, 0.7), (0.22, 0.1), (0.34, 0.1), (0.36, 1.0),
        (0.42, 1.0), (0.44, 0.0), (0.6, 0.0), (0.62, 0.9), (0.84, 0.9), (0.86, 0.0), (1.0, 0.0),
    ),
}  # fmt: skip
"""The two streams of the paper."""

VALUES: dict[str, float] = {"uniform": 0.0, "zipf": 1.5}
"""Distributions of values, by the exponent of their law."""


def rate_at(shape: Shape, share: float, low: float, high: float) -> float:
    """Tuples per second at a share of the duration."""
    place = bisect_right([x for x, _ in shape], share)
    if place == len(shape):
        return low + (high - low) * shape[-1][1]
    (x0, y0), (x1, y1) = shape[max(0, place - 1)], shape[place]
    part = (share - x0) / (x1 - x0) if x1 > x0 else 0.0
    return low + (high - low) * (y0 + (y1 - y0) * part)


def arrivals(stream: str, duration: float, low: float, high: float, random: Random) -> list[float]:
    """Give the times at which tuples come: a Poisson process of the stream's rate.

    Raises:
        ConfigError: there is no such stream, or the rates are not in order.
    """
    shape = STREAMS.get(stream)
    if shape is None:
        raise ConfigError(f"no stream {stream!r}; there are {', '.join(STREAMS)}")
    if not 0 < low <= high or not duration > 0:
        raise ConfigError(
            f"rates {low:g} to {high:g} over {duration:g} s: the low rate is over 0 and at most "
            "the high one, and the duration over 0"
        )
    times: list[float] = []
    now = 0.0
    while True:
        # Thinning: of a process at the highest rate, as many stay as the present rate has.
        now -= log(1.0 - random.random()) / high
        if now >= duration:
            return times
        if random.random() * high < rate_at(shape, now / duration, low, high):
            times.append(now)


def weights_of(values: str, distinct: int) -> list[float]:
    """Give the probability of each value, the most frequent first.

    Raises:
        ConfigError: there is no such distribution.
    """
    if values not in VALUES:
        raise ConfigError(f"no values {values!r}; there are {', '.join(VALUES)}")
    weights = [(rank + 1) ** -VALUES[values] for rank in range(distinct)]
    total = sum(weights)
    return [weight / total for weight in weights]


def draw_values(weights: Sequence[float], count: int, random: Random) -> list[int]:
    """Draw the values of tuples."""
    bounds = list(accumulate(weights))
    return random.choices(range(len(weights)), cum_weights=bounds, k=count)
