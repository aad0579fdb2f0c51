"""The contract of a sink, and the sinks that stay in memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from dsp.errors import ConfigError, DspError
from dsp.stream.signatures import body_fault, is_async

__all__ = [
    "Sink",
    "SinkBroken",
    "PartlyWritten",
    "TakesTogether",
    "CallableSink",
    "Collector",
    "as_sink",
]


class SinkBroken(DspError):
    """A sink cannot go on, and no record is to blame: a disk is full, a file was changed.

    It ends the application. What was not acknowledged comes again after a restart.
    """


class PartlyWritten(Exception):
    """A sink failed on a record and took those before it. The cause is what went wrong.

    Args:
        taken: how many records it took; the next one is the guilty one.
    """

    def __init__(self, taken: int) -> None:
        super().__init__(taken)
        self.taken = taken


class Sink(ABC):
    """Takes records. What ``write`` returned from is dealt with: sources forget it.

    Attributes:
        columnar: whether ``write`` gets columns.
        blocking: whether ``write`` may take its time, and so runs in a worker thread.
        remembers: whether it tells repeats after a restart too.
        drop_repeats: set by the engine before ``open``: whether delivery is ``effectively_once``.
        dropped: records that it left out because it had them, counted by itself.
    """

    columnar: bool = False
    blocking: bool = True
    remembers: bool = False
    drop_repeats: bool = False
    dropped: int = 0

    def check(self) -> None:  # noqa: B027
        """Look, before anything starts, whether this can work. Quick, and changes nothing.

        Raises:
            ConfigError: it cannot; names the place and what to do.
        """

    def open(self) -> Any:  # noqa: ANN401, B027
        """Begin. Called before the first ``write``. A coroutine function is awaited.

        Raises:
            DspError: it cannot begin; this ends the application.
        """

    @abstractmethod
    def write(self, values: Any, ids: Sequence[int]) -> Any:  # noqa: ANN401
        """Take records. A coroutine function is awaited.

        Args:
            values: a list of values, or columns.
            ids: their identities; a repeated record has the same one.

        Raises:
            SinkBroken: no record is to blame; it ends the application.
            PartlyWritten: records before the guilty one were taken.
            Exception: of these records, none was taken. Each is tried again, alone, and becomes a
                dead letter in the end.
        """

    def forget(self, ends: Mapping[int, int]) -> None:  # noqa: B027
        """Records will never come again: their identities need not be kept.

        Called between two writes, where ``remembers`` is true and sources keep how far they are.

        Args:
            ends: by the identity of a source's record over 2**36, the first one that may come.
        """

    def close(self) -> Any:  # noqa: ANN401, B027
        """Let go of everything. Called after the last ``write``. A coroutine function is awaited.

        If a ``write`` hangs, it is called while that goes on.
        """


@runtime_checkable
class TakesTogether(Protocol):
    """A sink that can take many records in one step, and remember them by one identity.

    Its ``drop_repeats`` has to be true before ``open``.
    """

    def take_together(self, several: Sequence[Any], identity: int) -> bool:
        """Take records, all or none; False if it took those of this identity before.

        Args:
            several: lists of values, or columns, as ``write`` gets them.
            identity: of all of them together.

        Raises:
            SinkBroken: no record is to blame.
            Exception: one of them cannot be written; ``try_values`` finds out which.
        """
        ...

    def try_values(self, values: Any) -> None:  # noqa: ANN401
        """Raise what taking these would raise because of them. Takes nothing."""
        ...


class CallableSink(Sink):
    """Calls a function, or awaits a coroutine function, with each value."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        if is_async(function):
            self.write = self._write_async  # type: ignore[method-assign]

    def write(self, values: Any, ids: Sequence[int]) -> Any:  # noqa: ANN401
        for place, value in enumerate(values):
            try:
                self._function(value)
            except Exception as error:
                raise PartlyWritten(place) from error

    async def _write_async(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        for place, value in enumerate(values):
            try:
                await self._function(value)
            except Exception as error:
                raise PartlyWritten(place) from error


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
        self._known: set[int] = set()

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        if not self.drop_repeats:
            self.values.extend(values)
            self.ids.extend(ids)
            return
        for value, each in zip(values, ids, strict=True):
            if each in self._known:
                self.dropped += 1
                continue
            self._known.add(each)
            self.values.append(value)
            self.ids.append(each)

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
