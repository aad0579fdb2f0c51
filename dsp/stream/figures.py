"""The figures of an instance as plain values, for reports, people and plots."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsp.stream.instance import Instance

__all__ = ["figures_of"]


def figures_of(instance: "Instance") -> dict[str, Any]:
    """Give the figures of an instance, for people and plots."""
    figures, metrics = instance.observer.figures, instance.metrics
    worker = instance.worker
    return {
        "name": instance.name,
        "operator": instance.operator.name,
        "status": instance.machine.status.name,
        "in": metrics.total_in,
        "out": metrics.total_out,
        "dead_letters": metrics.failed,
        "repeats": worker.repeats if worker is not None else 0,
        "again": instance.outlet.again,
        "hanging": worker.hanging if worker is not None else 0,
        "active_since": instance.active_since,
        "scale_messages": instance.scale_messages,
        "coordination_messages": instance.coordinator.messages,
        "refused": instance.coordinator.refused,
        "queue": instance.inlet.waiting,
        "unfinished": instance.outlet.unfinished,
        "unacknowledged": instance.reader.unfinished if instance.reader is not None else 0,
        "arrivals": figures.arrivals if figures else 0.0,
        "processed": figures.processed if figures else 0.0,
        "load": figures.load if figures else 0.0,
        "capacity": figures.capacity if figures else None,
        "latencies": _percentiles(metrics.latencies),
    }


def _percentiles(latencies: Sequence[float]) -> dict[str, float]:
    if not latencies:
        return {}
    ordered = sorted(latencies)
    last = len(ordered) - 1
    return {f"p{p}": ordered[min(last, int(p / 100 * len(ordered)))] for p in (50, 95, 99)}
