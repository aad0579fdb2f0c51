"""The half of an instance that speaks for it: the scale protocol, and the way to successors."""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from dsp.core.machine import Fail, Reject, Resolve, Send
from dsp.core.types import NodeId
from dsp.errors import InvariantError
from dsp.scaling.events import (
    Activate,
    Assigned,
    Delivered,
    Deserted,
    Drain,
    ScaleEvent,
    Spawn,
    Spawned,
    SpawnFailed,
    Stop,
    Terminate,
)
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.place import Place
from dsp.scaling.status import Status
from dsp.stream.batch import Batch
from dsp.stream.graph import Operator
from dsp.stream.home import Home
from dsp.stream.inlet import Arrival
from dsp.stream.letters import DeadLetters
from dsp.stream.metrics import MetricCollector
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Sent
from dsp.stream.steps import Failure
from dsp.stream.tokens import Token
from dsp.stream.wire import pack_batch

__all__ = ["Speaker"]

logger = logging.getLogger(__name__)


class Speaker:
    """Runs the scale machine of an instance, and is what surrounds its outlet.

    Args:
        home: the host.
        place: where the instance is in the graph.
        operator: what it is an instance of.
        news: told of every scaling action: who, what, how many.
    """

    outlet: Outlet

    def __init__(
        self, home: Home, place: Place, operator: Operator, news: Callable[[str, str, int], None]
    ) -> None:
        self.name = place.member.id
        self.operator = operator
        self.machine = ScaleMachine(place)
        self._home = home
        self._news = news
        self._loop = asyncio.get_running_loop()
        self._routes: dict[str, tuple[NodeId, ...]] = {}
        self._is_gone = False
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.error: BaseException | None = None
        self.scale_messages = 0
        self.metrics = MetricCollector(operator.workers, operator.capacity, self._loop.time())

    @property
    @abstractmethod
    def letters(self) -> DeadLetters:
        """Where records go that cannot be processed or sent."""

    @abstractmethod
    def _activate(self) -> None:
        """Begin to process records."""

    @abstractmethod
    def _step_over(self, newcomers: tuple[NodeId, ...]) -> None:
        """A scaling step is over, done or not."""

    @abstractmethod
    def _end(self, reason: str, *, clean: bool) -> None:
        """End, in good order or not."""

    @abstractmethod
    def neighbours_changed(self) -> None:
        """Neighbours may have come or gone."""

    @abstractmethod
    def look_later(self) -> None:
        """See soon whether a leaver is drained, or the stream is over."""

    # -- tasks ----------------------------------------------------------------------------

    def _start(self, work: Any, name: str) -> None:  # noqa: ANN401
        """Start a task whose end is noticed."""
        task = self._loop.create_task(work, name=f"{self.name} {name}")
        self._tasks[task] = None
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broke(task.get_name(), error)

    def _broke(self, what: str, error: BaseException) -> None:
        logger.error("%s: %s failed", self.name, what, exc_info=error)
        self.error = error
        self._end(f"{what} failed: {error!r}", clean=False)

    # -- the scale protocol ---------------------------------------------------------------

    def _step(self, event: ScaleEvent) -> None:
        if self._is_gone:
            return
        idle = self.machine.status is Status.IDLE
        effects = self.machine.handle(event, self._loop.time())
        if not effects and isinstance(event, Delivered):
            return  # as for nearly every batch: nothing changed that anybody follows
        for effect in effects:
            match effect:
                case Send(to, message, _):
                    self.scale_messages += 1
                    self._home.post_scale(self.name, to, message)  # type: ignore[arg-type]
                case Spawn(count):
                    self._start(self._spawn(count), "spawn")
                case Activate():
                    self._activate()
                case Drain():
                    self.look_later()
                case Terminate():
                    self._news(self.name, "left", 1)
                    self._step_over(())
                    self._end("it left", clean=True)
                case Stop(reason):
                    # One that never started has nothing that could be missing.
                    self._end(reason, clean=idle)
                case Deserted(operator):
                    self._deserted(operator)
                case Reject(sender, reason):
                    logger.warning("%s: message of %s rejected: %s", self.name, sender, reason)
                case Resolve("duplicate", tuple(newcomers)):
                    self._news(self.name, "duplicated", len(newcomers))
                    self._step_over(newcomers)
                case Fail(_, error):
                    logger.warning("%s: could not duplicate: %s", self.name, error)
                    self._step_over(())
        self._follow()

    def _follow(self) -> None:
        """Let the outlet follow the machine's views, unless the instance is over by now."""
        if self._is_gone:
            return
        routes = {name: self.machine.routes(name) for name in self.machine.place.downstream}
        if routes != self._routes:
            self._routes = routes
            self.outlet.view_changed()
        self.neighbours_changed()

    def _deserted(self, operator: str) -> None:
        """Nobody of a neighbouring operator is left, and only siblings create siblings."""
        place, neighbours = self.machine.place, self.machine.neighbours
        if operator in place.upstream and neighbours.side(place.upstream):
            logger.error("%s: no instance of %s is left", self.name, operator)
            return
        # Nobody sends to this instance any more, or nobody will ever take what it makes.
        self._end(f"no instance of {operator} is left", clean=False)

    async def _spawn(self, count: int) -> None:
        try:
            names = await self._home.spawn(self.machine.place, count)
        except Exception as error:
            logger.exception("%s: no sibling could be created", self.name)
            self._step(SpawnFailed(repr(error)))
        else:
            self._step(Spawned(tuple(names)))

    # -- for the outlet -------------------------------------------------------------------

    def routes(self, operator: str) -> tuple[NodeId, ...]:
        """The successors that records may be assigned to."""
        return self._routes.get(operator, ())

    def assigned(self, to: NodeId, batches: int) -> None:
        """Batches will be sent."""
        self._step_quietly(Assigned(to, batches))

    def confirmed(self, by: NodeId, batches: int) -> None:
        """Batches are done, or will not arrive."""
        self._step(Delivered(by, batches))

    def _step_quietly(self, event: ScaleEvent) -> None:
        effects = self.machine.handle(event, self._loop.time())
        if effects:
            raise InvariantError(f"{event} has effects: {effects}")

    def transmit(self, sent: Sent) -> None:
        """Send a batch."""
        if self._home.is_local(sent.to):
            arrival = Arrival(
                self.name,
                self.operator.name,
                sent.sequence,
                len(sent.ids),
                sent.size,
                sent.born,
                batch=sent.batch,
                request=sent.request,
            )
            self._home.hand_over(self.name, sent, arrival)
            return
        assert sent.payload is not None
        message = pack_batch(sent.sequence, self.operator.name, sent.ids, sent.born)
        if sent.request is not None:
            message.request.CopyFrom(sent.request)
        self._home.send_batch(self.name, sent.to, message, sent.payload)

    def relay(self, to: NodeId, batch: Batch) -> Token | None:
        """Let an instance of this process process records now, if it can."""
        return self._home.relay(self.operator.name, to, batch)

    def adopt(self, sent: Sent, token: Token) -> None:
        """Have who processed records tell when they are done."""
        number, records = sent.sequence, len(sent.ids)
        arrival = Arrival(self.name, self.operator.name, number, records, sent.size, sent.born)
        self._home.adopt(sent.to, arrival, token)

    def is_local(self, name: NodeId) -> bool:
        """Whether an instance is in this process."""
        return self._home.is_local(name)

    def blocked(self, waiting: bool) -> None:
        """Outputs begin or cease to wait for room."""
        now = self._loop.time()
        if waiting:
            self.metrics.blocked(now)
        else:
            self.metrics.unblocked(now)

    def unfit(self, failures: Sequence[Failure], born: float, token: Token) -> None:
        """Records that the codec of an edge cannot hold are left out."""
        self.outlet.burying += 1
        self._start(self._bury(failures, born, token), "dead letters")

    async def _bury(self, failures: Sequence[Failure], born: float, token: Token) -> None:
        # Cancelled, it lets go of nothing: what is not acknowledged comes again.
        await self.letters.bury(failures, born, token)
        self.outlet.burying -= 1
        token.release()
        self.look_later()
