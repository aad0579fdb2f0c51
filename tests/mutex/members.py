"""Models of groups whose members join, leave, crash and are suspected, for the explorer."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import cast

from dsp.core.machine import PeerLost, Reject
from dsp.core.types import Lane, NodeId
from dsp.mutex.events import (
    Admit,
    EnterRequested,
    ExitRequested,
    JoinRequested,
    LeaveRequested,
    Left,
    Revoke,
    Settled,
    Superseded,
)
from dsp.mutex.member import Member
from dsp.mutex.seat import Groups, Seat
from dsp.mutex.status import Phase, Status
from dsp.testing.explorer import Model, Run, Script, Stimulus, View, crash, join, tell

__all__ = ["MembersModel"]

Fence = tuple[int, int]


class MembersModel(Model[Member]):
    """Members that enter, and others that come and go meanwhile.

    The ghost is a resource that every entry presents its number to: the highest number of each
    group.

    Args:
        groups: the founders.
        visitors: who enters, once for each time it is named.
        joiners: members that join at any moment and then enter once, with their group.
        leavers: members that leave at any moment at which they are idle, after their entries.
        crashes: members that crash at any moment.
        suspicions: pairs of one who suspects, at any moment, another one that lives.
        quorum: whether suspicion needs a majority.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        visitors: Sequence[NodeId] = (),
        joiners: Mapping[NodeId, int] | None = None,
        leavers: Sequence[NodeId] = (),
        crashes: Sequence[NodeId] = (),
        suspicions: Sequence[tuple[NodeId, NodeId]] = (),
        quorum: bool = True,
    ) -> None:
        self.groups = groups
        self.visitors = visitors
        self.joiners = dict(joiners or {})
        self.leavers = leavers
        self.crashes = crashes
        self.suspicions = suspicions
        self.quorum = quorum

    def group(self, name: NodeId) -> int:
        return self.joiners[name] if name in self.joiners else int(name in self.groups[1])

    def machines(self) -> Mapping[NodeId, Member]:
        everybody = (*self.groups[0], *self.groups[1])
        return {
            name: Member(Seat(name, self.groups), founder=True, quorum=self.quorum)
            for name in everybody
        }

    def newcomer(self, name: NodeId) -> Member:
        groups = [*self.groups]
        groups[self.joiners[name]] += (name,)
        return Member(Seat(name, (groups[0], groups[1])), quorum=self.quorum)

    def ghost(self) -> Hashable:
        return (0, 0)

    # -- what happens -------------------------------------------------------------------------

    def scripts(self) -> Sequence[Script]:
        scripts = []
        for name in dict.fromkeys((*self.visitors, *self.leavers)):
            steps = visit(name) * self.visitors.count(name)
            if name in self.leavers:
                steps += (tell(name, LeaveRequested(), when=can_leave(name)),)
            scripts.append(Script(name, steps))
        for name in self.joiners:
            begin = join(name, lambda name=name: self.newcomer(name))  # type: ignore[misc]
            scripts.append(Script(name, (begin, tell(name, JoinRequested()), *visit(name))))
        scripts += [Script(f"crash {name}", (crash(name),)) for name in self.crashes]
        scripts += [
            Script(f"{who} suspects {whom}", (tell(who, PeerLost(whom)),))
            for who, whom in self.suspicions
        ]
        return scripts

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        match effect:
            case Admit(_, number):
                fence = cast("Fence", run.ghost)
                own = self.group(node)
                if number > fence[1 - own]:
                    high = max(fence[own], number)
                    run.ghost = (high, fence[1]) if own == 0 else (fence[0], high)
                elif self.suspicions:
                    run.feed(node, Superseded(fence[1 - own]))
                else:
                    run.violate(f"{node} has number {number}, {fence} was seen")
            case Revoke():
                if not self.suspicions:
                    run.violate(f"{node} loses its entry: {effect.reason}")
                run.post(node, EnterRequested())
            case Reject(sender, reason):
                run.violate(f"{node} rejects a message of {sender}: {reason}")
            case Settled() | Left():
                pass
            case _:
                run.violate(f"{node} gives {effect}")

    def on_undeliverable(
        self, run: Run, sender: NodeId, to: NodeId, message: Hashable, lane: Lane
    ) -> None:
        """Who joins after a crash learns of it by trying."""
        if to in self.crashes and sender in self.joiners:
            run.post(sender, PeerLost(to))

    # -- what must hold -----------------------------------------------------------------------

    def invariant(self, view: View[Member]) -> None:
        fence = cast("Fence", view.ghost)
        inside: tuple[list[NodeId], list[NodeId]] = ([], [])
        for name in view.nodes:
            member = view.machine(name)
            own = self.group(name)
            # One whose number was superseded may believe to be inside, but is refused.
            if member.status is Status.INSIDE and member.number > fence[1 - own]:
                inside[own].append(name)
        assert not (inside[0] and inside[1]), f"{inside[0]} and {inside[1]} are inside"
        if not self.suspicions:
            for name in view.nodes:
                member = view.machine(name)
                assert (
                    member.status is not Status.INSIDE
                    or member.number > fence[1 - self.group(name)]
                ), f"{name} is inside and would be refused"

    def quiet(self, view: View[Member]) -> None:
        alive = [name for name in view.nodes if view.machine(name).phase is not Phase.LEFT]
        for name in alive:
            member = view.machine(name)
            assert member.phase is Phase.MEMBER, f"{name} joins for ever"
            assert member.status is Status.IDLE, f"{name} is {member.status.name} for ever"
            known = sorted((name, *member.roster.known))
            assert known == sorted(alive), f"{name} knows {known}, there are {alive}"


def visit(name: NodeId) -> tuple[Stimulus, ...]:
    def idle(view: View[Member]) -> bool:
        return view.machine(name).status is Status.IDLE

    def inside(view: View[Member]) -> bool:
        return view.machine(name).status is Status.INSIDE

    return (tell(name, EnterRequested(), when=idle), tell(name, ExitRequested(), when=inside))


def can_leave(name: NodeId) -> Callable[[View[Member]], bool]:
    return lambda view: view.machine(name).status is Status.IDLE
