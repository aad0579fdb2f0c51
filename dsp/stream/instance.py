"""One instance of an operator: data plane, metrics, trigger and protocol, each its own object.

The parts are those of paper 000, figure 4.1. Everything here runs on the event loop; what comes
from other instances is handed in by the host, what goes to them is handed to it.
"""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from dsp._pb.engine_pb2 import EngineEnd, EngineEndAck, EngineGone, EngineRetire
from dsp.core.envelope import Envelope
from dsp.core.machine import PeerLost, Received
from dsp.core.types import NodeId
from dsp.scaling.deciders import Decider, Observation
from dsp.scaling.events import (
    LeaveRequested,
    QueueEmptied,
    ScaleMessage,
    ScaleOutRequested,
)
from dsp.scaling.place import Place
from dsp.scaling.service import ScaleRequest, ScaleTrigger
from dsp.scaling.status import Status
from dsp.stream.bodies import BulkBody
from dsp.stream.ending import Ending
from dsp.stream.graph import Graph, Grouping, Kind
from dsp.stream.home import Home
from dsp.stream.inlet import Arrival, Inlet
from dsp.stream.observing import Observer, room_for
from dsp.stream.offsets import OffsetStore
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Limits
from dsp.stream.reading import Reader
from dsp.stream.runners import make_runner
from dsp.stream.speaker import Speaker
from dsp.stream.steps import Step
from dsp.stream.working import Worker

if TYPE_CHECKING:
    from dsp.config import Config

__all__ = ["Instance"]

logger = logging.getLogger(__name__)

PROGRESS_PAUSE = 0.002
# Room at an instance of which it is not known yet how fast it is.
FIRST_ROOM = 128, 16


class Instance(Speaker):
    """A running copy of an operator.

    Args:
        home: the host.
        place: where it is in the graph.
        graph: the application.
        config: settings.
        decider: decides when to scale; None for never.
        period: seconds between two questions to it.
        random: of this instance alone.
        store: where a source remembers how far it is.
        news: told of every scaling action: who, what, how many.
    """

    def __init__(
        self,
        home: Home,
        place: Place,
        graph: Graph,
        config: "Config",
        *,
        decider: Decider | None,
        period: float,
        random: Random,
        store: OffsetStore | None = None,
        news: Callable[[str, str, int], None] = lambda name, what, count: None,
    ) -> None:
        stream = config.stream
        super().__init__(home, place, graph.operators[place.member.operator], news)
        self._graph = graph
        self._config = stream
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.error: BaseException | None = None
        at_most_once = stream.delivery == "at_most_once"
        edges = [graph.edges[self.operator.name, name] for name in place.downstream]
        self.inlet = Inlet(
            lambda to, progress: home.post(self.name, to, Envelope(engine_progress=progress)),
            home.finished,
            at_most_once=at_most_once,
            pause=PROGRESS_PAUSE,
            grant=self._grant,
        )
        self.outlet = Outlet(
            self, [(edge, self._limits(edge.target)) for edge in edges], keep=not at_most_once
        )
        incoming = {name: graph.edges[name, self.operator.name] for name in place.upstream}
        by_key = any(edge.grouping is Grouping.KEY for edge in incoming.values())
        self.observer = Observer(home, self.machine, self.metrics, self.outlet, by_key=by_key)
        self.ending = Ending(
            lambda to: home.post(self.name, to, Envelope(engine_end=EngineEnd())),
            lambda to: home.post(self.name, to, Envelope(engine_end_ack=EngineEndAck())),
            lambda: self._end("the stream is over", clean=True),
        )
        self.inlet.on_done = self.outlet.on_idle = self.look_later
        self._look_scheduled = False
        runner = self._runner = make_runner(
            self.operator.threads, self.operator.service_time, self.name, stream.inline_time
        )
        self.reader: Reader | None = None
        self.worker: Worker | None = None
        if self.operator.kind is Kind.SOURCE:
            sources = [each.name for each in graph.sources()]
            self.reader = Reader(
                self.operator,
                sources.index(self.operator.name),
                edges,
                self.outlet,
                runner,
                self.metrics,
                store,
                most_records=stream.batch_records,
                clock=home.clock,
                changed=self.look_later,
            )
        else:
            self.worker = Worker(
                self.name,
                self.operator,
                edges,
                incoming,
                self.inlet,
                self.outlet,
                Step(self.operator, stream.retries),
                runner,
                self.metrics,
                batch_time=stream.batch_time,
                most_records=8 * stream.batch_records,
                hang_after=stream.hang_after,
                drop_repeats=stream.delivery == "effectively_once",
                clock=home.clock,
                changed=self.look_later,
            )
        self._trigger = (
            ScaleTrigger(
                self.machine,
                decider,
                period=period,
                random=random,
                observe=self._observe,
                begin=self._begin,
                retire=lambda name: home.post(
                    self.name, name, Envelope(engine_retire=EngineRetire())
                ),
            )
            if decider is not None and self.operator.elastic
            else None
        )

    # -- life -----------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Active, and busy with no operation of the scale protocol."""
        return self.machine.may_scale

    @property
    def quiet(self) -> bool:
        """Whether nothing waits, is worked on, or is under way to a successor."""
        worker, reader = self.worker, self.reader
        return (
            self.inlet.empty
            and self.inlet.open == 0
            and (worker is None or not worker.busy)
            and (reader is None or reader.done)
            and self.outlet.idle
        )

    def stop_reading(self) -> None:
        """Take no more records from the source, if this instance reads one."""
        if self.reader is not None:
            self.reader.stop()
            if self.machine.status is Status.IDLE and not self.operator.body.drains:
                self.reader.over = True

    def abandon(self, reason: str) -> None:
        """End at once, whatever is under way."""
        self._end(reason, clean=False)

    def _activate(self) -> None:
        if self.reader is not None:
            self._start(self.reader.run(), "reader")
        if self.worker is not None:
            workers = 1 if self.worker._step.is_async else self.operator.threads
            for number in range(workers):
                self._start(self.worker.run(), f"worker {number}")
        self._start(self._report(), "reports")
        if self._trigger is not None:
            self._start(self._trigger.run(), "trigger")
        self.look_later()

    def _start(self, work: Any, name: str) -> None:  # noqa: ANN401
        task = self._loop.create_task(work, name=f"{self.name} {name}")
        self._tasks[task] = None
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("%s: %s failed", self.name, task.get_name(), exc_info=error)
            self.error = error
            self._end(f"{task.get_name()} failed: {error!r}", clean=False)

    def _end(self, reason: str, *, clean: bool) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        self.inlet.settle()
        self.outlet.close()
        if not clean:
            for name in self.machine.neighbours.members:
                self._home.post(self.name, name, Envelope(engine_gone=EngineGone()))
        for task in list(self._tasks):
            task.cancel()
        self._home.gone(self, reason, clean=clean)

    async def close(self) -> None:
        """Wait for the tasks of an instance that is over, and let go of what it had."""
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks)
        if self.worker is not None:
            await self.worker.close()
        if self.reader is not None:
            await self.reader.close()
        await self._runner.close()

    # -- what comes -----------------------------------------------------------------------

    def arrive(self, arrival: Arrival) -> None:
        """A batch came."""
        if self.inlet.put(arrival):
            self.metrics.arrived(arrival.records)

    def hear(self, sender: NodeId, envelope: Envelope, message: ScaleMessage | None) -> None:
        """A message of another instance came, decoded if it is one of the scale protocol."""
        if message is not None:
            self._step(Received(sender, message))
            return
        match envelope.WhichOneof("body"):
            case "engine_progress":
                self.outlet.progress(sender, envelope.engine_progress)
                self.look_later()
            case "engine_demand":
                self.observer.told(sender, envelope.engine_demand)
            case "engine_end":
                self.ending.heard(sender)
                self.look_later()
            case "engine_end_ack":
                self.ending.acknowledged(sender)
                self.look_later()
            case "engine_retire":
                self.leave()
            case "engine_gone":
                self.lose(sender)
            case "engine_stop":
                self.stop_reading()
                self.look_later()
            case other:
                logger.warning("%s: %s of %s makes no sense here", self.name, other, sender)

    def lose(self, name: NodeId) -> None:
        """An instance is dead."""
        self.observer.forget(name)
        self._step(PeerLost(name))
        if self._is_gone:
            return
        self.outlet.lost(name)
        self.inlet.forget(name)
        self.look_later()

    # -- the scale protocol ---------------------------------------------------------------

    def look_later(self) -> None:
        if not self._look_scheduled and not self._is_gone:
            self._look_scheduled = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        """See whether a leaver is drained, or the stream is over."""
        self._look_scheduled = False
        if self._is_gone:
            return
        machine = self.machine
        worker = self.worker
        if machine.status is Status.DRAINING:
            still = self.inlet.empty and (worker is None or not worker.busy)
            if still and self.outlet.idle:
                self.inlet.settle()
                self._step(QueueEmptied())
            return
        if machine.status is not Status.ACTIVE:
            return
        quiet = self.quiet
        self.ending.step(
            settled=self.settled,
            quiet=quiet,
            before=[member.id for member in machine.neighbours.side(machine.place.upstream)],
            after=[member.id for member in machine.neighbours.side(machine.place.downstream)],
        )

    # -- deciding -------------------------------------------------------------------------

    def _observe(self, now: float) -> Observation | None:
        return None if self.ending.begun else self.observer.observe(now)

    def _begin(self, request: ScaleRequest) -> None:
        if isinstance(request, ScaleOutRequested):
            request = ScaleOutRequested(request.count, "duplicate")
        else:
            self._news(self.name, "leaving", 1)
        self._step(request)

    def leave(self) -> None:
        """Leave because somebody asks for it, unless the operator or the stream needs it here."""
        if self.settled and not self.machine.keeper and not self.ending.begun:
            self._begin(LeaveRequested())

    async def _report(self) -> None:
        """Tell successors what is known about their operator, and keep the figures fresh."""
        every = self._config.report_every
        began = self._loop.time()
        while True:
            await asyncio.sleep(every)
            # A busy loop is late: what was sent meanwhile was sent in a longer time.
            now = self._loop.time()
            self.observer.period(now, self.inlet.waiting, now - began)
            began = now

    def _grant(self) -> tuple[int, int]:
        senders = max(1, len(self.machine.neighbours.side(self.machine.place.upstream)))
        body = self.operator.body
        most = body.most_records if isinstance(body, BulkBody) else 0
        return room_for(self._config, self.metrics.capacity, senders, FIRST_ROOM, most)

    def _limits(self, target: str) -> Limits:
        config, capacity = self._config, self._graph.operators[target].capacity
        window, batch = room_for(config, capacity, 1, FIRST_ROOM)
        enough = min(config.batch_records, config.window_records)
        return Limits(window, batch, config.window_bytes, enough, config.linger)
