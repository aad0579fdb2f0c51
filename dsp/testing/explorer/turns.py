"""Which scripts can act: asked for many of them at once where that is possible.

Models give every node several scripts of one step that is possible again and again. To ask each of
them in each state took half of the time of an exploration, and hardly ever was the answer yes. All
guards of one node together are one predicate, whose answer is found again by what it reads.
"""

from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dsp.testing.explorer.components import Node
    from dsp.testing.explorer.space import ScriptPart, Space
    from dsp.testing.explorer.view import Remembered, View

__all__ = ["Turn", "turns_of"]


class Turn:
    """Scripts that follow each other in the model and are asked together.

    Attributes:
        parts: the scripts.
        slot: of the node that has to exist for any of them; None for a script that is asked alone.
        enabled: those of them that can act in a state, if they are asked together.
    """

    __slots__ = ("enabled", "parts", "slot")

    def __init__(self, parts: "list[ScriptPart]", node: "Node | None", space: "Space") -> None:
        self.parts = parts
        self.slot = None if node is None else node.slot
        self.enabled: Remembered[tuple[ScriptPart, ...]] = space.remember(_ask_all(parts))


def _ask_all(
    parts: "list[ScriptPart]",
) -> "Callable[[View[Any]], tuple[ScriptPart, ...]]":
    guards = [(part, part.drives[0].stimulus.when) for part in parts if part.drives]

    def ask(view: "View[Any]") -> "tuple[ScriptPart, ...]":
        return tuple(part for part, when in guards if when is None or when(view))

    return ask


def _node_of(part: "ScriptPart") -> "Node | None":
    """The node by which a script is grouped: only if it has one step that is always its next."""
    return part.drives[0].node if part.script.endless and len(part.drives) == 1 else None


def turns_of(space: "Space") -> "Iterator[Turn]":
    """Group the scripts of a model, in their order."""
    groups: Iterable[tuple[Node | None, Iterator[ScriptPart]]] = groupby(space.scripts, _node_of)
    for node, parts in groups:
        if node is None:
            yield from (Turn([part], None, space) for part in parts)
        else:
            yield Turn([*parts], node, space)
