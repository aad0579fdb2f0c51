"""An incarnation that does not know that it is over, beside the one that took its place."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from dsp.core.session.segments import Superseded
from dsp.core.types import Lane, NodeId
from dsp.testing.explorer import Run, View
from tests.session.model import FIRST, LATER, A, B, SessionModel
from tests.session.watched import Delivered, Heard, Watched

__all__ = ["ZombieModel"]

HEIR = NodeId("heir")


class Following(Watched):
    """Answers whoever spoke last."""

    follows = True


class ZombieModel(SessionModel):
    """``b`` has an open session with ``a``; then its heir, a later incarnation, speaks up too.

    The ghost is that of ``SessionModel`` and whether ``a`` has heard the heir.

    Args:
        b: lanes on which both incarnations of ``b`` send, one payload for each.
    """

    def __init__(self, b: Sequence[Lane], **options: Any) -> None:  # noqa: ANN401
        super().__init__((), b, opened=True, **options)
        self.wishes[HEIR] = tuple(b)

    def machines(self) -> Mapping[NodeId, Watched]:
        ends = {A: Following(B, FIRST[A], self.limits), B: self.kind(A, FIRST[B], self.limits)}
        heir = self.kind(A, FIRST[B] + LATER, self.limits)
        return {**self.shaken(ends), HEIR: heir}

    def ghost(self) -> Hashable:
        return ((), False)

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        ghost: Any = run.ghost
        streams, heard = ghost
        match effect:
            case Heard(epoch):
                run.ghost = (streams, heard or (node == A and epoch >= LATER))
                return
            case Superseded() if node == B:
                return
            case Delivered((_, other), _, _) if node == A and heard and other < LATER:
                run.violate(f"a stale incarnation got {effect} delivered")
        run.ghost = streams
        super().on_effect(run, node, effect)
        run.ghost = (run.ghost, heard)

    def streams(self, view: View[Watched]) -> Any:  # noqa: ANN401
        return view.ghost[0]  # type: ignore[index]
