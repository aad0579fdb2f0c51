"""Figures of live runs, in the form in which simulated ones come."""

from collections.abc import Callable, Sequence
from statistics import fmean, pstdev

from dsp.lab.mutex.live import run_live
from dsp.lab.mutex.setting import Setting
from dsp.lab.mutex.study import Figure, Study

__all__ = ["run_live_study"]


async def run_live_study(
    algorithms: Sequence[str],
    seeds: Sequence[int],
    *,
    nodes: int = 12,
    entries: int = 10,
    pause: float = 0.1,
    stay: float = 0.1,
    url: str = "zmq+tcp://127.0.0.1:0",
    progress: Callable[[], None] = lambda: None,
) -> Study:
    """Run every algorithm for every seed, one after the other, in real time.

    Raises:
        ConfigError: there is no such algorithm, or the URL is wrong.
        MissingExtraError: the transport's extra is not installed.
    """
    setting = Setting(nodes=nodes, entries=entries, pause=pause, stay=stay, first=max(pause, stay))
    case = f"{nodes} nodes, {entries} entries, P {pause:g} s, inCS {stay:g} s, {url}"
    figures = []
    for name in algorithms:
        found: dict[str, list[float]] = {}
        for seed in seeds:
            trace = await run_live(
                setting, name, seed, url=url, limit=_limit(setting), progress=progress
            )
            late = [wait for waits in trace.waits.values() for wait in waits[entries // 5 :]]
            for figure, value in (
                ("messages", float(trace.messages)),
                ("inside", trace.occupancy),
                *([("wait", fmean(late))] if late else []),
                *([("round trip", fmean(trace.round_trips))] if trace.round_trips else []),
                ("stuck", float(trace.stuck)),
                ("overlaps", float(trace.overlaps)),
            ):
                found.setdefault(figure, []).append(value)
        figures += [
            Figure("live", name, case, figure, fmean(values), pstdev(values))
            for figure, values in found.items()
        ]
    return Study(
        tuple(seeds), {"first": "first requests are spread over P or inCS"}, tuple(figures)
    )


def _limit(setting: Setting) -> float:
    """Seconds that are enough even if all take turns one by one."""
    return 10 + setting.entries * (setting.pause + setting.nodes * (setting.stay + 0.2))
