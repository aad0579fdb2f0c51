"""Whom a member knows, whom it suspects, and whom it holds for dead."""

from collections.abc import Hashable, Iterator, Set
from typing import Any

from dsp.core.types import NodeId
from dsp.mutex.events import View
from dsp.mutex.status import Phase, Status
from dsp.mutex.two_fgme import TwoFGME

__all__ = ["Roster"]


class Roster:
    """The members as one of them sees them.

    Suspicion is not enough to hold a member for dead: it takes a majority of all that ever joined
    and did not leave, or exactly half with the first name among them. So a member that was cut
    off, or stopped and continued, and therefore suspects everybody, takes nothing from anyone.

    Args:
        me: the member.
        group: its group.
        quorum: False lets every suspicion count at once.
    """

    def __init__(self, me: NodeId, group: int, *, quorum: bool = True) -> None:
        self.me = me
        self.group = group
        self.quorum = quorum
        # Group and generation; a generation of 0 is not known yet.
        self.known: dict[NodeId, tuple[int, int]] = {}
        self.suspects: set[NodeId] = set()
        # Messages to these were lost, so that both ends have to begin anew.
        self.broken: set[NodeId] = set()
        # Held for dead, with the generation that died.
        self.lost: dict[NodeId, tuple[int, int]] = {}

    def view(self, *, without_me: bool = False) -> View:
        """All members by group, sorted."""
        own = () if without_me else (self.me,)
        groups: tuple[list[NodeId], list[NodeId]] = ([], [])
        groups[self.group].extend(own)
        for name, (group, _) in self.known.items():
            groups[group].append(name)
        return tuple(sorted(groups[0])), tuple(sorted(groups[1]))

    def meet(self, name: NodeId, group: int, generation: int) -> None:
        """A member is there, in this generation."""
        self.known[name] = (group, generation)
        self.lost.pop(name, None)
        self.suspects.discard(name)
        self.broken.discard(name)

    def strangers(self, view: View) -> list[tuple[NodeId, int]]:
        """Who in another's view is new here, with its group."""
        return [
            (name, group)
            for group, names in enumerate(view)
            for name in names
            if name != self.me and name not in self.known and name not in self.lost
        ]

    def forget(self, name: NodeId) -> None:
        """A member left."""
        self.known.pop(name, None)
        self.lost.pop(name, None)
        self.suspects.discard(name)
        self.broken.discard(name)

    def competes(self, name: NodeId) -> bool:
        """Whether a known member is of the other group."""
        return name in self.known and self.known[name][0] != self.group

    def bury(self) -> list[NodeId]:
        """Hold the suspects for dead, if enough others are not suspected. Gives their names."""
        if not self.suspects or not self._enough():
            return []
        dead = sorted(self.suspects)
        for name in dead:
            self.lost[name] = self.known.pop(name)
        self.suspects.clear()
        self.broken.difference_update(dead)
        return dead

    def resurrect(self, name: NodeId) -> None:
        """One that was held for dead speaks."""
        if name in self.lost:
            self.known[name] = self.lost.pop(name)

    def _enough(self) -> bool:
        if not self.quorum:
            return True
        # The dead count: or suspicions one after the other would leave a majority of one.
        total = 1 + len(self.known) + len(self.lost)
        alive = 1 + len(self.known) - len(self.suspects)
        if 2 * alive == total:
            first = min((self.me, *self.known, *self.lost))
            return first not in self.suspects and first not in self.lost
        return 2 * alive > total

    def rules(
        self, phase: Phase, lock: TwoFGME, awaiting: Set[NodeId]
    ) -> Iterator[tuple[bool, str]]:
        """What must hold between whom a member knows, is linked with and waits for."""
        linked = lock.competitors
        yield linked <= self.known.keys(), "linked with a stranger"
        yield not linked & awaiting, "linked, and waits for an answer"
        yield phase is Phase.JOINING or not awaiting, "waits for answers, as a member"
        competitors = {name for name in self.known if self.competes(name)}
        yield phase is not Phase.MEMBER or linked == competitors, "some competitor is not linked"
        yield phase is Phase.MEMBER or lock.status is Status.IDLE, "no member, not idle"
        yield not self.lost.keys() & self.known.keys(), "knows the dead"

    def describe(self) -> dict[str, object]:
        """A small summary for logs."""
        return {
            "members": self.view(),
            "suspects": sorted(self.suspects),
            "lost": sorted(self.lost),
        }

    def state(self) -> Hashable:
        """Everything that changes, as an immutable value."""
        return (
            tuple(sorted(self.known.items())),
            frozenset(self.suspects),
            frozenset(self.broken),
            tuple(sorted(self.lost.items())),
        )

    def restore(self, state: Hashable) -> None:
        """Return to a state that ``state`` gave."""
        parts: Any = state
        known, suspects, broken, lost = parts
        self.known, self.suspects = dict(known), {*suspects}
        self.broken, self.lost = {*broken}, dict(lost)
