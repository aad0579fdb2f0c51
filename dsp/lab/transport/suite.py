"""Which loads are measured over which transports, in which order, and what comes of it."""

import asyncio
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsp.config import TransportConfig
from dsp.core.types import NodeId
from dsp.errors import ConfigError, DspError
from dsp.lab.transport.load import Figures, Load, LoadKind
from dsp.lab.transport.pair import Contender, run_pair
from dsp.transport.registry import scheme_of, transport_class

__all__ = ["LOADS", "Result", "contender", "measure"]

SESSION: Final = "dsp.transport.session:create_session"
ADAPTER: Final = "dsp.transport.registry:create_transport"
CLOG_SECONDS: Final = 3.0

LOADS: Final = (
    Load(LoadKind.FLOW, 100, 256),
    Load(LoadKind.FLOW, 1024, 256),
    Load(LoadKind.FLOW, 100, 1),
    Load(LoadKind.ANSWERS),
    Load(LoadKind.LOADED_ANSWERS),
    Load(LoadKind.SHARED_ANSWERS),
    Load(LoadKind.CLOG),
)
"""What is measured unless something else is asked for."""


@dataclass(frozen=True, slots=True)
class Result:
    """Medians of all runs of one load by one contender, or why there are none."""

    contender: str
    load: str
    kind: str
    runs: tuple[Figures, ...]
    median: Figures
    error: str | None = None


def contender(
    name: str, settings: dict[str, Any], *, sink: dict[str, Any] | None = None, session: bool = True
) -> Contender:
    """Make a contender of a transport's settings.

    Args:
        settings: the ``[transport]`` table of both ends; a URL with port 0 serves both.
        sink: the table of the receiving end, if it is another one.
        session: measure with a session over the transport, as applications use it.

    Raises:
        ConfigError: the settings are wrong.
        MissingExtraError: the transport's extra is not installed.
    """
    factory = SESSION if session else ADAPTER
    for table in (settings, sink or settings):
        config = TransportConfig.model_validate(table)
        if scheme_of(config.url) == "sim":
            raise ConfigError(f"{config.url}: a simulated network is in one process, not in two")
        transport_class(config.url).from_config(config, NodeId("probe"))
    return Contender(
        name,
        sink={"factory": factory, "transport": sink or settings},
        source={"factory": factory, "transport": settings},
    )


def measure(
    contenders: Sequence[Contender],
    loads: Sequence[Load] = LOADS,
    *,
    runs: int = 5,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Measure every load over every contender, in turns, so that noise hits all of them alike.

    Args:
        progress: called with a line before each run.
    """
    return list(asyncio.run(_measure(contenders, loads, runs, progress)))


async def _measure(
    contenders: Sequence[Contender],
    loads: Sequence[Load],
    runs: int,
    progress: Callable[[str], None],
) -> Iterator[Result]:
    found: dict[tuple[str, Load], list[Figures]] = {}
    errors: dict[tuple[str, Load], str] = {}
    for load in loads:
        for run in range(1 if load.kind is LoadKind.CLOG else runs):
            for each in contenders:
                key = (each.name, load)
                if load.kind not in each.kinds or key in errors:
                    continue
                progress(f"{load.name} over {each.name}, run {run + 1}")
                try:
                    found.setdefault(key, []).append(await run_pair(each, load))
                except (DspError, TimeoutError) as error:
                    errors[key] = str(error) or repr(error)
    keys = dict.fromkeys([*found, *errors])
    return (
        Result(
            name, load.name, load.kind.value, tuple(runs_), median(runs_), errors.get((name, load))
        )
        for name, load in keys
        for runs_ in [found.get((name, load), [])]
    )


def median(runs: Sequence[Figures]) -> Figures:
    """Give the median of each figure over some runs."""

    def middle(values: list[float]) -> float | None:
        return statistics.median(values) if values else None

    memory = [run.resident_mib for run in runs if run.resident_mib is not None]
    return Figures(
        rate=middle([run.rate for run in runs if run.rate is not None]),
        p50=middle([run.p50 for run in runs if run.p50 is not None]),
        p99=middle([run.p99 for run in runs if run.p99 is not None]),
        resident_mib=max(memory) if memory else None,
    )
