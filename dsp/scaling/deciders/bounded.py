"""Bounds that users expect, around any decider."""

from collections import deque
from dataclasses import dataclass

from dsp.errors import ConfigError
from dsp.scaling.deciders.base import (
    STAY,
    Decider,
    Decision,
    Duplicate,
    Leave,
    Observation,
    Retire,
    Stay,
)
from dsp.scaling.deciders.leading import Centralised, Threshold

__all__ = ["Bounds", "Bounded"]

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far and how often an instance may act.

    Attributes:
        minimum: instances of the operator, at least.
        maximum: instances of the operator, at most; None for no bound.
        cool_down: seconds between two actions of one instance.
        per_minute: instances that one instance may create or send away in a minute, itself
            included; None for no bound.

    The number of instances is that of the predecessor's report. Instances decide without each
    other, so each creates no more than its share of what ``maximum`` leaves room for; where the
    keeper alone decides, it has all of it. Between two reports, and of several predecessors, the
    bound may still be passed, and ``minimum`` by those who leave at the same time; without a report
    the bounds on the number cannot be kept, and are not.
    """

    minimum: int = 1
    maximum: int | None = None
    cool_down: float = 0.0
    per_minute: int | None = None

    def __post_init__(self) -> None:
        if self.minimum < 1:
            raise ConfigError(f"minimum is {self.minimum}: at least 1 instance is needed")
        if self.maximum is not None and self.maximum < self.minimum:
            raise ConfigError(f"maximum {self.maximum} is below minimum {self.minimum}")
        if self.cool_down < 0:
            raise ConfigError(f"cool_down is {self.cool_down:g}: seconds, 0 or more")
        if self.per_minute is not None and self.per_minute < 1:
            raise ConfigError(f"per_minute is {self.per_minute}: at least 1, or none")


class Bounded:
    """Lets a decider act within bounds.

    Args:
        inner: who decides.
        bounds: within what.

    Attributes:
        inner: who decides.
    """

    def __init__(self, inner: Decider, bounds: Bounds) -> None:
        self.inner = inner
        self._leads = isinstance(inner, Centralised | Threshold)
        self._bounds = bounds
        self._actions: deque[tuple[float, int]] = deque()

    def decide(self, observation: Observation) -> Decision:
        """Say what the instance does now."""
        decision = self._bound(self.inner.decide(observation), observation)
        if not isinstance(decision, Stay):
            self._actions.append((observation.now, _size(decision)))
        return decision

    def _bound(self, decision: Decision, observation: Observation) -> Decision:
        wanted = _size(decision)
        if not wanted:
            return decision
        now, bounds = observation.now, self._bounds
        if self._actions and now - self._actions[-1][0] < bounds.cool_down:
            return STAY
        allowed = wanted
        if bounds.per_minute is not None:
            while self._actions and now - self._actions[0][0] >= MINUTE:
                self._actions.popleft()
            allowed = min(allowed, bounds.per_minute - sum(size for _, size in self._actions))
        elif len(self._actions) > 1:
            self._actions = deque([self._actions[-1]])
        present = len(observation.report.siblings) if observation.report else None
        if isinstance(decision, Duplicate):
            if observation.held_back:
                return STAY
            if observation.report is not None and bounds.maximum is not None:
                allowed = min(allowed, self._share(bounds.maximum, observation))
            return Duplicate(allowed) if allowed > 0 else STAY
        if present is not None:
            allowed = min(allowed, present - bounds.minimum)
        if allowed <= 0:
            return STAY
        if isinstance(decision, Retire):
            return Retire(decision.siblings[:allowed])
        return decision

    def _share(self, maximum: int, observation: Observation) -> int:
        """How many siblings this instance may create, if all of them decide by the same report."""
        assert observation.report is not None
        siblings = observation.report.siblings
        room = maximum - len(siblings)
        if room <= 0 or self._leads:
            return room
        if observation.me not in siblings:
            # The predecessor does not know it yet; those that it knows see to what is missing.
            return 0
        each, rest = divmod(room, len(siblings))
        return each + (siblings.index(observation.me) < rest)


def _size(decision: Decision) -> int:
    match decision:
        case Duplicate(count):
            return count
        case Leave():
            return 1
        case Retire(siblings):
            return len(siblings)
        case Stay():
            return 0
