"""What an instance can process with the CPU that it can get (paper 002, equations 6 to 9 and 13).

Shares of CPU are parts of one core, between 0 and 1.
"""

from dataclasses import dataclass

from dsp.errors import ConfigError

__all__ = ["CpuUse", "usable_cpu", "capacity", "reserved_capacity"]


@dataclass(frozen=True, slots=True)
class CpuUse:
    """How the core of an instance is used.

    Attributes:
        own: share that the instance uses.
        others: share that whatever else runs there uses.
        sharing: instances that share the core, this one included.
        need: share that the body uses while it works on a record: 1 if it computes, less if it
            waits for something else than the CPU.
    """

    own: float = 0.0
    others: float = 0.0
    sharing: int = 1
    need: float = 1.0

    def __post_init__(self) -> None:
        for name in ("own", "others", "need"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ConfigError(f"{name} is {value:g}: a share of a core is from 0 to 1")
        if self.sharing < 1:
            raise ConfigError(f"sharing is {self.sharing}: the instance itself is on its core")


def usable_cpu(use: CpuUse, weight: float, reserved: float) -> float:
    """The share of a core that an instance can count on (equation 7), at most a whole one.

    Args:
        use: as measured.
        weight: the paper's lambda, which underestimates what is used already.
        reserved: share that is reserved for the instance.
    """
    free = max(0.0, 1.0 - use.others) / use.sharing
    return min(1.0, weight * max(use.own, reserved) + free)


def capacity(latency: float, usable: float, need: float = 1.0) -> float:
    """Records per second (equations 6 and 9).

    The latency is what a record took with the CPU that the instance had. CPU limits it only where
    less is usable than the body needs while it works.
    """
    return min(1.0, usable / need if need > 0 else 1.0) / latency


def reserved_capacity(latency: float, reserved: float, margin: float) -> float:
    """Records per second that are sure wherever an instance runs (equation 13).

    Args:
        latency: seconds per record.
        reserved: share of a core that is reserved for an instance.
        margin: the paper's alpha, printed as lambda: how much of the reservation is counted on.
    """
    return reserved * margin / latency
