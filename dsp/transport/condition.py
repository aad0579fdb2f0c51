"""What an endpoint remembers of its troubles, and how it is put into words."""

import logging
from collections import Counter
from collections.abc import Container, Iterable, Mapping

from dsp.core.types import Lane, NodeId
from dsp.transport.base import HealthState, LinkHealth, TransportHealth
from dsp.transport.link import Link
from dsp.transport.watchdog import Stall

__all__ = ["Condition"]

logger = logging.getLogger(__name__)


class Condition:
    """Problems that last, faults that were counted, connections that were made again.

    Args:
        name: of the endpoint, for logs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.problems: dict[str, str] = {}
        self.faults: Counter[str] = Counter()
        self.reconnects: Counter[NodeId] = Counter()

    def problem(self, about: str, what: str | None) -> None:
        """Something is wrong, or, with None, right again."""
        if what is None:
            self.problems.pop(about, None)
        else:
            self.problems[about] = what

    def fault(self, cause: str, details: str, level: int = logging.WARNING) -> None:
        """Count what went wrong with a peer or a stranger, and tell of it now and then."""
        self.faults[cause] += 1
        count = self.faults[cause]
        # A stranger must not be able to fill the log: the 1st, 2nd, 4th, 8th... time.
        if count & (count - 1) == 0:
            logger.log(level, "%s: %s (%d so far): %s", self._name, cause, count, details)

    def stalled(self, link: Link, stall: Stall, *, connected: bool) -> None:
        """Tell that frames wait and none has moved."""
        logger.warning("%s: %s", self._name, _standing(link, stall.seconds, connected))

    def health(
        self,
        state: HealthState,
        failure: BaseException | None,
        links: Mapping[tuple[NodeId, Lane], Link],
        up: Container[NodeId],
        stalls: Iterable[Stall],
        received: int,
        last_progress: float | None,
    ) -> TransportHealth:
        """Put it into words.

        Args:
            state: of the life cycle; OK is looked at more closely.
            received: frames that wait to be received.
        """
        standing = {stall.key: stall.seconds for stall in stalls}
        each = tuple(
            LinkHealth(
                peer=link.peer,
                lane=link.lane,
                connected=link.peer.id in up,
                waiting_frames=len(link.queue),
                unacknowledged_frames=link.unacknowledged(),
                stalled=standing.get(key, 0.0),
            )
            for key, link in links.items()
        )
        return TransportHealth(
            state=self._closer(each) if state is HealthState.OK else state,
            problems=(
                (f"{failure!r}",)
                if failure is not None
                else (
                    *self.problems.values(),
                    *(
                        _standing(links[key], seconds, links[key].peer.id in up)
                        for key, seconds in standing.items()
                    ),
                )
            ),
            last_progress=last_progress,
            send_queue_frames=sum(link.waiting_frames for link in each),
            receive_queue_frames=received,
            unacknowledged_frames=sum(link.unacknowledged_frames for link in each),
            reconnects=dict(self.reconnects),
            links=each,
        )

    def _closer(self, links: Iterable[LinkHealth]) -> HealthState:
        stalled = [link for link in links if link.stalled]
        if any(link.connected for link in stalled):
            return HealthState.STALLED
        return HealthState.DEGRADED if self.problems or stalled else HealthState.OK


def _standing(link: Link, seconds: float, connected: bool) -> str:
    how = "is connected" if connected else "is away"
    return (
        f"{link.peer} on {link.lane.value} {how}, frames wait for it, and none has moved for "
        f"{seconds:.1f} s"
    )
