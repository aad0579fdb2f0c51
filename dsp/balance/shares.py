"""What each record of a batch took, where only the whole is known.

A body that takes batches tells no more than the time for all. It is divided in proportion to what
is believed of each key so far; since batches differ in what they hold, what is believed gets nearer
to what holds with every batch, and is right on average from the first one on.
"""

from collections.abc import Sequence

from dsp.balance.estimates import Costs
from dsp.balance.hashing import HashFamily
from dsp.balance.settings import BalanceSettings

__all__ = ["Shares"]


class Shares:
    """Divides times of batches among their records.

    Args:
        settings: sizes of the sketches, and how long they remember.
    """

    def __init__(self, settings: BalanceSettings) -> None:
        self._costs = Costs(HashFamily(settings.rows, settings.columns, settings.seed))
        self._memory = settings.memory

    def of(self, keys: Sequence[bytes], total: float) -> list[float]:
        """Give the part of each record, by its key."""
        if not keys:
            return []
        believed = self._costs.estimate(keys)
        whole = float(believed.sum())
        if whole > 0.0:
            seconds: list[float] = (believed * (total / whole)).tolist()
        else:
            seconds = [total / len(keys)] * len(keys)
        self._costs.decay(0.5 ** (len(keys) / self._memory))
        self._costs.add(keys, seconds)
        return seconds
