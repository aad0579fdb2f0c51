"""Ready-made ways to keep times in machine states finite."""

from collections.abc import Hashable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

__all__ = ["rebase_floats"]


@runtime_checkable
class _NamedTuple(Protocol):
    @classmethod
    def _make(cls, items: Iterable[Hashable]) -> Hashable: ...


def rebase_floats(state: Hashable, by: float, *, oldest: float | None = None) -> Hashable:
    """Reduce every float in a state, for machines in whose states every float is an instant.

    Integers are left alone, so counters and identifiers stay what they are. Meant for
    ``Model.rebase``. Use whole numbers as time-outs in models: they add up without rounding.

    Args:
        state: made of tuples, frozensets and frozen dataclasses.
        by: how much to set the clock back.
        oldest: instants before this become this, so that times of events long past do not go on
            growing. Choose one beyond every time-out, for example -100.0.
    """
    if isinstance(state, float):
        return state - by if oldest is None else max(state - by, oldest)
    if isinstance(state, tuple):
        items = [rebase_floats(item, by, oldest=oldest) for item in state]
        # A named tuple takes its items one by one.
        return type(state)._make(items) if isinstance(state, _NamedTuple) else tuple(items)
    if isinstance(state, frozenset):
        return frozenset(rebase_floats(item, by, oldest=oldest) for item in state)
    value: Any = state
    if not is_dataclass(value) or isinstance(value, type):
        return state
    names = [field.name for field in fields(value) if field.init]
    changes = {name: rebase_floats(getattr(value, name), by, oldest=oldest) for name in names}
    return cast("Hashable", replace(value, **changes))
