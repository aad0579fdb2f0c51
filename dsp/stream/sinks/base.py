"""The contract of a sink, and the sinks that stay in memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from dsp.errors import ConfigError
from dsp.stream.signatures import body_fault, is_async

__all__ = ["Sink", "CallableSink", "Collector", "as_sink"]


class Sink(ABC):
    """Takes records. What ``write`` returned from is dealt with: sources forget it.

    Attributes:
        columnar: whether ``write`` gets columns.
        blocking: whether ``write`` may take its time, and so runs in a worker thread.
    """

    columnar: bool = False
    blocking: bool = True

    def open(self) -> None:  # noqa: B027
        """Begin. Called before the first ``write``, where ``write`` is called."""

    @abstractmethod
    def write(self, values: Any, ids: Sequence[int]) -> Any:  # noqa: ANN401
        """Take records. A coroutine function is awaited.

        Args:
            values: a list of values, or columns.
            ids: their identities; a repeated record has the same one.
        """

    def close(self) -> None:  # noqa: B027
        """Let go of everything. Called after the last ``write``."""


class CallableSink(Sink):
    """Calls a function, or awaits a coroutine function, with each value."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        if is_async(function):
            self.write = self._write_async  # type: ignore[method-assign]

    def write(self, values: Any, ids: Sequence[int]) -> Any:  # noqa: ANN401
        for value in values:
            self._function(value)

    async def _write_async(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        for value in values:
            await self._function(value)


class Collector(Sink):
    """Keeps values in memory, for tests.

    Attributes:
        values: in the order of their arrival.
        ids: their identities.
    """

    blocking = False

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.ids: list[int] = []

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        self.values.extend(values)
        self.ids.extend(ids)

    @property
    def repeats(self) -> int:
        """How many records came again."""
        return len(self.ids) - len({*self.ids})


def as_sink(sink: object) -> Sink:
    """Give the sink that an object stands for.

    Raises:
        ConfigError: neither a sink nor a function of one argument.
    """
    if isinstance(sink, Sink):
        return sink
    if not callable(sink):
        raise ConfigError(f"{sink!r:.80} is no sink: give a Sink or a function of one argument")
    if fault := body_fault(sink, 1):
        raise ConfigError(f"the sink {fault}")
    return CallableSink(sink)
