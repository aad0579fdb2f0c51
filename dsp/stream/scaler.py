"""The half of an instance that scales: asks its decider, waits for its turn, takes the step."""

from abc import abstractmethod
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dsp._pb.engine_pb2 import EngineRetire
from dsp.core.envelope import Envelope
from dsp.core.types import NodeId
from dsp.scaling.deciders import Decider, Observation, proactive_settings
from dsp.scaling.deciders.configured import rules_of
from dsp.scaling.events import LeaveRequested, ScaleOutRequested
from dsp.scaling.place import Place
from dsp.scaling.service import ScaleRequest, ScaleTrigger
from dsp.stream.coordination import Coordinator, ScalingStep, Wish
from dsp.stream.ending import Ending
from dsp.stream.foresight import Foresight, foreseer
from dsp.stream.graph import Graph, Kind
from dsp.stream.home import Home
from dsp.stream.observing import Observer
from dsp.stream.speaker import Speaker

if TYPE_CHECKING:
    from dsp.config import Config

__all__ = ["Scaler"]


class Scaler(Speaker):
    """Takes the scaling steps of an instance.

    Args:
        home: the host.
        place: where the instance is in the graph.
        graph: the application.
        config: settings.
        news: told of every scaling action: who, what, how many.
    """

    observer: Observer
    ending: Ending

    def __init__(
        self,
        home: Home,
        place: Place,
        graph: Graph,
        config: "Config",
        news: Callable[[str, str, int], None],
    ) -> None:
        super().__init__(home, place, graph.operators[place.member.operator], news)
        self._scaling = config.scaling
        self._wish: Wish | None = None
        self._step_began = 0.0
        self.coordinator = self._make_coordinator(config, graph)

    def _make_coordinator(self, config: "Config", graph: Graph) -> Coordinator:
        if config.scaling.coordination == "2fgme":
            # Only who excludes neighbours needs mutual exclusion: others would wait for its import.
            from dsp.stream.exclusion import Exclusion, excluding_edges

            if guarded := excluding_edges(self.operator.name, graph):
                patience = config.transport.session.suspect_after + config.stream.lost_after
                return Exclusion(self.machine, guarded, self._home, self._begin_step, patience)
        return Coordinator(self._begin_step)

    @abstractmethod
    def look_later(self) -> None:
        """See soon whether a leaver is drained, or the stream is over."""

    @property
    def settled(self) -> bool:
        """Active, and busy with no operation of the scale protocol."""
        return self.machine.may_scale

    def _make_observer(self, decider: Decider | None, *, by_key: bool) -> Observer:
        is_source = self.operator.kind is Kind.SOURCE
        settings = proactive_settings(rules_of(self._scaling, self.operator.name))
        return Observer(
            self._home,
            self.machine,
            self.metrics,
            self.outlet,
            by_key=by_key,
            name_keepers=self._scaling.coordination == "2fgme",
            foresight=Foresight(settings, foreseer(decider), is_source=is_source),
            behind=(lambda: self.operator.body.waiting) if is_source else (lambda: None),
        )

    def _make_trigger(
        self, decider: Decider | None, period: float, random: Random
    ) -> ScaleTrigger | None:
        if decider is None or not self.operator.elastic:
            return None
        return ScaleTrigger(
            self.machine,
            decider,
            period=period,
            random=random,
            observe=self._observe,
            begin=self._decided,
            retire=lambda name: self._home.post(
                self.name, name, Envelope(engine_retire=EngineRetire())
            ),
        )

    def _observe(self, now: float) -> Observation | None:
        busy = self.ending.begun or self.coordinator.waiting
        return None if busy else self.observer.observe(now)

    def _decided(self, request: ScaleRequest) -> None:
        """The decider wants a step: it is for the siblings that there are now."""
        siblings = self.observer.siblings
        if isinstance(request, ScaleOutRequested):
            request = ScaleOutRequested(request.count, "duplicate")
        asked = self._home.clock()
        self.coordinator.ask(Wish(request, asked, lambda: self.observer.siblings == siblings))

    def _may_begin(self, request: ScaleRequest) -> bool:
        leaves = isinstance(request, LeaveRequested)
        return self.settled and not self.ending.begun and not (leaves and self.machine.keeper)

    def _begin_step(self, wish: Wish) -> bool:
        """Begin a step whose turn has come, if it can begin still."""
        if not self._may_begin(wish.request):
            return False
        self._wish, self._step_began = wish, self._home.clock()
        if isinstance(wish.request, LeaveRequested):
            self._news(self.name, "leaving", 1)
        self._step(wish.request)
        return True

    def _step_over(self, newcomers: tuple[NodeId, ...]) -> None:
        wish, self._wish = self._wish, None
        if wish is not None:
            times = (wish.asked, self._step_began, self._home.clock())
            self._home.stepped(ScalingStep(self.name, wish.kind, *times, newcomers))
            self.coordinator.over()

    def leave(self) -> None:
        """Leave because somebody asks for it, unless the operator or the stream needs it here."""
        if self._may_begin(LeaveRequested()):
            self.coordinator.ask(Wish(LeaveRequested(), self._home.clock()))
