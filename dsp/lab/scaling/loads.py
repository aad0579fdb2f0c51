"""The loads of the experiments: records per time step for each operator."""

from collections.abc import Callable
from math import pi, sin
from random import Random

from dsp.core.randomness import derive_random
from dsp.errors import ConfigError
from dsp.lab.scaling.setting import Setting

__all__ = ["LOADS", "make_loads"]

STEP_AT = 50


def _brownian(setting: Setting, random: Random) -> list[float]:
    load, series = setting.first_load, []
    for _ in range(setting.steps):
        series.append(load)
        load = max(setting.floor, load + random.gauss(0.0, setting.sigma))
    return series


def _sinusoidal(setting: Setting, random: Random) -> list[float]:
    phase = random.random()
    turns = (step / setting.wavelength + phase for step in range(setting.steps))
    return [setting.first_load * (1 + setting.amplitude * sin(2 * pi * turn)) for turn in turns]


def _doubling(setting: Setting, random: Random) -> list[float]:
    return [setting.first_load * (1 if t < STEP_AT else 2) for t in range(setting.steps)]


def _halving(setting: Setting, random: Random) -> list[float]:
    return [setting.first_load * (1 if t < STEP_AT else 0.5) for t in range(setting.steps)]


def _monotone(setting: Setting, random: Random) -> list[float]:
    return [setting.first_load * (1 + setting.slope * t) for t in range(setting.steps)]


LOADS: dict[str, Callable[[Setting, Random], list[float]]] = {
    "brownian": _brownian,
    "sinusoidal": _sinusoidal,
    "doubling": _doubling,
    "halving": _halving,
    "monotone": _monotone,
}


def make_loads(setting: Setting, seed: int) -> list[list[float]]:
    """Give the load of each operator at each time step; the same for every rule.

    Raises:
        ConfigError: there is no such load.
    """
    make = LOADS.get(setting.load)
    if make is None:
        raise ConfigError(f"no load {setting.load!r}; there are {', '.join(LOADS)}")
    return [
        make(setting, derive_random(seed, "load", number)) for number in range(setting.operators)
    ]
