"""One instance of an operator: data plane, metrics, trigger and protocol, each its own object.

The parts are those of paper 000, figure 4.1. Everything here runs on the event loop; what comes
from other instances is handed in by the host, what goes to them is handed to it.
"""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dsp._pb.balance_pb2 import BalanceFrame
from dsp._pb.engine_pb2 import EngineEnd, EngineEndAck, EngineGone, EngineProgress
from dsp.core.envelope import Envelope
from dsp.core.machine import PeerLost, Received
from dsp.core.types import NodeId
from dsp.scaling.deciders import Decider
from dsp.scaling.events import (
    Member,
    QueueEmptied,
    ScaleMessage,
)
from dsp.scaling.place import Place
from dsp.scaling.status import Status
from dsp.stream.batch import Batch
from dsp.stream.ending import Ending
from dsp.stream.graph import Graph, Grouping, Kind
from dsp.stream.groupings.making import Groupings, goes_by_work
from dsp.stream.home import Home
from dsp.stream.inlet import Arrival, Inlet
from dsp.stream.letters import DeadLetters
from dsp.stream.metering import make_metering
from dsp.stream.offsets import Ends
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Progress
from dsp.stream.reading import Reader
from dsp.stream.room import Room, limits_to
from dsp.stream.runners import make_runner
from dsp.stream.scaler import Scaler
from dsp.stream.steps import Failure, Step
from dsp.stream.tokens import Token
from dsp.stream.working import Worker

if TYPE_CHECKING:
    from dsp.config import Config
    from dsp.stream.offset_store import OffsetStore

__all__ = ["Instance"]

logger = logging.getLogger(__name__)

PROGRESS_PAUSE = 0.005
# Messages of who may scale.
COORDINATION = frozenset({"mutex", "engine_core", "engine_enter", "engine_entered", "engine_exit"})
# How much comes to an instance by these may be more than its share.
BY_KEY = (Grouping.KEY, Grouping.PARTIAL_KEY)


class Instance(Scaler):
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
        store: "OffsetStore | None" = None,
        news: Callable[[str, str, int], None] = lambda name, what, count: None,
    ) -> None:
        stream = config.stream
        super().__init__(home, place, graph, config, news)
        self._config = stream
        at_most_once = stream.delivery == "at_most_once"
        edges = [graph.edges[self.operator.name, name] for name in place.downstream]
        incoming = {name: graph.edges[name, self.operator.name] for name in place.upstream}
        groupings = Groupings.of(config.balance)
        self.room = Room(stream, self.operator, self.metrics)
        self.inlet = Inlet(
            lambda to, progress: home.post_progress(self.name, to, progress),
            home.finished,
            at_most_once=at_most_once,
            pause=PROGRESS_PAUSE,
            grant=self.room.grant,
            near=home.is_local,
            watched={name for name, edge in incoming.items() if goes_by_work(edge, groupings)},
        )
        self.outlet = Outlet(
            self,
            [(edge, limits_to(stream, graph.operators[edge.target])) for edge in edges],
            keep=not at_most_once,
            groupings=groupings,
            relay=self,
        )
        by_key = any(edge.grouping in BY_KEY for edge in incoming.values())
        self.metering = make_metering(
            self.operator.name, incoming, groupings, self._tell_cost, self._loop.time
        )
        is_source = self.operator.kind is Kind.SOURCE
        self.observer = self._make_observer(decider, by_key=by_key)
        self.active_since: float | None = None
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
        if is_source:
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
                settled=home.settled,
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
                self.metering,
                batch_time=stream.batch_time,
                most_records=8 * stream.batch_records,
                hang_after=stream.hang_after,
                drop_repeats=stream.delivery == "effectively_once",
                clock=home.clock,
                changed=self.look_later,
            )
        self._trigger = self._make_trigger(decider, period, random)

    # -- life -----------------------------------------------------------------------------

    @property
    def letters(self) -> DeadLetters:
        """Where records go that cannot be processed or sent."""
        where = self.reader or self.worker
        assert where is not None
        return where.letters

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
        self.active_since = self._home.clock()
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

    def _end(self, reason: str, *, clean: bool) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        self.coordinator.close()
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
            self.coordinator.look()
            return
        match envelope.WhichOneof("body"):
            case "engine_progress":
                self.progressed(sender, envelope.engine_progress)
            case "balance":
                for fault in self.outlet.balance(sender, envelope.balance):
                    logger.warning("%s: message of %s rejected: %s", self.name, sender, fault)
            case "engine_demand":
                self.observer.told(sender, envelope.engine_demand)
                if envelope.engine_demand.HasField("keeper"):
                    keeper = envelope.engine_demand.keeper
                    self._home.introduce(NodeId(keeper.id), keeper.address)
                    self.coordinator.keeper_is(
                        Member(self.operator.name, keeper.generation, NodeId(keeper.id))
                    )
            case "engine_share":
                self.observer.heard(sender, envelope.engine_share)
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
            case str(kind) if kind in COORDINATION:
                self.coordinator.hear(sender, kind, envelope)
            case other:
                logger.warning("%s: %s of %s makes no sense here", self.name, other, sender)

    def progressed(self, sender: NodeId, progress: Progress | EngineProgress) -> None:
        """A successor tells how far it is."""
        self.outlet.progress(sender, progress)
        self.look_later()

    def process_now(self, source: str, batch: Batch) -> Token | None:
        """Process a batch of an instance of this process now, if there is nothing else to do.

        Returns:
            What is still to be done for it; None if it has to queue.
        """
        worker = self.worker
        if worker is None or self._is_gone or not worker.may_relay(len(batch)):
            return None
        token = Token(lambda: None)
        try:
            for arrival, failures in worker.catch_up():
                self._let_go(failures, arrival.born, arrival.token)
            failures = worker.relay(source, batch, token)
        except Exception as error:
            # As if the worker's task had failed; the token stays, and the batch goes to others.
            self._broke("relay", error)
            return token
        self._let_go(failures, batch.born, token)
        return token

    def _let_go(self, failures: list[Failure], born: float, token: Token) -> None:
        """A batch is processed: bury records on which the body failed, and release its token."""
        if failures:
            assert self.worker is not None
            self.worker.busy += 1
            self._start(self.worker.bury(failures, born, token.hold()), "dead letters")
        token.release()

    def lose(self, name: NodeId) -> None:
        """An instance is dead."""
        self.observer.forget(name)
        self.coordinator.lose(name)
        self._step(PeerLost(name))
        if self._is_gone:
            return
        self.outlet.lost(name)
        self.inlet.forget(name)
        if self.metering is not None:
            self.metering.lost(name)
        self.look_later()

    def _tell_cost(self, to: NodeId, frame: BalanceFrame) -> None:
        """Tell one that sends here what records cost, unless it left."""
        if to in self.machine.neighbours.members:
            self._home.post(self.name, to, Envelope(balance=frame))
        elif self.metering is not None:
            self.metering.lost(to)

    def settled_below(self, ends: Ends, sure: Callable[[], None]) -> None:
        """Records will never come again: a sink that remembers them need not."""
        if self.worker is not None and self.worker.opening.remembers and not self._is_gone:
            self._start(self.worker.opening.forget(ends, sure), "forgetting")

    # -- the scale protocol ---------------------------------------------------------------

    def look_later(self) -> None:
        if not self._look_scheduled and not self._is_gone and self._may_end:
            self._look_scheduled = True
            self._loop.call_soon(self._look)

    @property
    def _may_end(self) -> bool:
        """Whether anything could come of a look: while records flow nothing can, mostly."""
        if self.machine.status is not Status.ACTIVE or self.ending.begun:
            return True
        return self.reader.over if self.reader is not None else not self.room.senders

    def neighbours_changed(self) -> None:
        machine = self.machine
        self.room.senders = len(machine.neighbours.side(machine.place.upstream))
        self.look_later()

    def _look(self) -> None:
        """See whether a leaver is drained, or the stream is over."""
        self._look_scheduled = False
        if self._is_gone:
            return
        machine, worker = self.machine, self.worker
        if machine.status is Status.DRAINING:
            if self.inlet.empty and (worker is None or not worker.busy) and self.outlet.idle:
                self.inlet.settle()
                self._step(QueueEmptied())
            return
        if machine.status is not Status.ACTIVE:
            return
        if self.ending.begun:
            self.coordinator.withdraw()
        quiet = self.quiet
        if not quiet and not self.ending.begun:
            return
        self.ending.step(
            settled=self.settled,
            quiet=quiet,
            before=[member.id for member in machine.neighbours.side(machine.place.upstream)],
            after=[member.id for member in machine.neighbours.side(machine.place.downstream)],
        )

    # -- reports --------------------------------------------------------------------------

    async def _report(self) -> None:
        """Tell successors what is known about their operator, and keep the figures fresh."""
        every = self._config.report_every
        began = self._loop.time()
        while True:
            await asyncio.sleep(every)
            # A busy loop is late: what was sent meanwhile was sent in a longer time.
            now = self._loop.time()
            self.observer.period(now, self.inlet.waiting, now - began)
            if self.worker is not None:
                self.worker.report_hanging(now)
            began = now
