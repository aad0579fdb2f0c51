"""Fair runs in which somebody waits for ever."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dsp.testing.explorer.actions import Step
from dsp.testing.explorer.engine import Engine
from dsp.testing.explorer.exploration import explore
from dsp.testing.explorer.graph import UNFAIR, Graph
from dsp.testing.explorer.model import AnyModel
from dsp.testing.explorer.result import Kind, Result, Violation
from dsp.testing.explorer.view import View

__all__ = ["find_starvation"]


def _is_fair(graph: Graph, component: Sequence[int]) -> bool:
    """Whether each class is taken inside the component, or impossible in some state of it.

    If some cycle inside is fair, then so is the whole component, so that looking at maximal
    components is enough. A single state stands for a run that stays there for ever.
    """
    members = set(component)
    never_off: set[int] | None = None
    taken: set[int] = set()
    for number in component:
        possible = set()
        for edge in graph.edges(number):
            possible.add(graph.fairness(edge))
            if graph.target(edge) in members:
                taken.add(graph.fairness(edge))
        never_off = possible if never_off is None else never_off & possible
    return not (never_off or set()) - taken - {UNFAIR}


def _cycle(graph: Graph, component: Sequence[int]) -> list[int]:
    """A closed way through a fair component that is fair by itself."""
    members = set(component)
    start = at = component[0]
    way: list[int] = []

    def possible(kind: int, number: int) -> bool:
        return any(graph.fairness(edge) == kind for edge in graph.edges(number))

    classes = {graph.fairness(edge) for number in component for edge in graph.edges(number)}
    for kind in sorted(classes - {UNFAIR}):
        visited = {start, *(graph.target(edge) for edge in way)}
        if any(graph.fairness(edge) == kind for edge in way):
            continue
        if not all(possible(kind, number) for number in visited):
            continue
        takers = {
            number: edge
            for number in component
            for edge in graph.edges(number)
            if graph.fairness(edge) == kind and graph.target(edge) in members
        }
        if takers:
            way += graph.path(at, members, takers.__contains__)
            at = graph.target(way[-1]) if way else start
            way.append(takers[at])
        else:
            off = [number for number in component if not possible(kind, number)]
            way += graph.path(at, members, set(off).__contains__)
        at = graph.target(way[-1])
    if not way:
        inner = [edge for edge in graph.edges(start) if graph.target(edge) in members]
        way = inner[:1]
        at = graph.target(way[-1]) if way else start
    return way + graph.path(at, members, partial(int.__eq__, start))


def _steps(model: AnyModel, graph: Graph, edges: Sequence[int]) -> tuple[Step, ...]:
    engine = Engine(model)
    state, fingerprint = engine.initial()
    steps = []
    for edge in edges:
        action = engine.successors(state, fingerprint)[graph.choice(edge)][0]
        step, state, fingerprint = engine.explain(state, fingerprint, action)
        steps.append(step)
    return tuple(steps)


def find_starvation(
    model: AnyModel,
    starving: Mapping[str, Callable[[View[Any]], bool]],
    *,
    max_states: int = 2_000_000,
) -> Result:
    """Look for a fair run in which a party waits for ever.

    A run is fair if nothing that is due (``Model.fairness``, ``Stimulus.fair``) stays possible for
    ever without happening. The model is explored first with all checks of ``explore``, and a fault
    found there is reported instead.

    Args:
        model: what to explore, usually with endless scripts. Its states must be finite: see
            ``Model.canonical`` for counters.
        starving: for each party, whether it waits in a state.
        max_states: stop, incomplete, beyond so many states. The whole graph is kept in memory, at
            some 300 bytes for each state.

    Returns:
        Figures, and if somebody can starve a violation whose ``trace`` leads to a ``cycle`` that
        can be repeated for ever. Among several the one with the shortest way to it is reported.
    """
    began = time.perf_counter()
    result = explore(model, max_states=max_states)
    if not result.complete:
        return result
    graph = Graph(model, list(starving.values()), max_states)
    best: tuple[str, list[int]] | None = None
    for party, label in zip(starving, graph.labels, strict=True):
        for component in graph.components(label):
            first = best is None or component[0] < best[1][0]
            if first and _is_fair(graph, component):
                best = party, component
    violation = None
    if best is not None:
        party, component = best
        stem, cycle = graph.stem(component[0]), _cycle(graph, component)
        steps = _steps(model, graph, [*stem, *cycle])
        violation = Violation(
            Kind.STARVATION,
            f"{party} can wait for ever",
            steps[: len(stem)],
            steps[len(stem) :],
        )
    seconds = time.perf_counter() - began
    return replace(result, seconds=seconds, violation=violation, complete=violation is None)
