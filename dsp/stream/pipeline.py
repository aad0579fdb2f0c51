"""How users say what runs: a pipeline of sources, operators and sinks.

>>> pipeline = Pipeline("words")
>>> lines = pipeline.source(["a b", "b"])
>>> words = lines.flat_map(str.split)
>>> _ = words.key_by(lambda word: word).sink(print)

Nothing runs yet: ``dsp.run`` checks the graph and starts it. Bodies get values and must not change
them: another branch may get the same ones.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dsp.stream.bodies import BulkBody
from dsp.stream.codecs import Codec, JsonCodec, make_codec
from dsp.stream.graph import DEAD_LETTERS, Edge, Graph, Grouping, Kind, Operator
from dsp.stream.groupings.making import checked
from dsp.stream.signatures import name_of
from dsp.stream.sinks.base import as_sink
from dsp.stream.sources.base import as_source

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dsp.stream.sinks.base import Sink
    from dsp.stream.sources.base import Source

__all__ = ["Pipeline", "Stream"]


class Pipeline:
    """The description of an application.

    Args:
        name: of the application.
        codec: of the records on its edges, where an operator does not say otherwise: ``"json"``,
            ``"bytes"``, ``"arrow"``, a protobuf message class, or a codec of your own.
    """

    def __init__(self, name: str, *, codec: "str | type[Message] | Codec" = "json") -> None:
        self.name = name
        self._codec = make_codec(codec)
        self._operators: list[Operator] = []
        self._edges: list[Edge] = []

    def source(
        self,
        source: "Source | Iterable[Any] | Any",  # noqa: ANN401
        *,
        name: str | None = None,
        codec: "str | type[Message] | Codec | None" = None,
    ) -> "Stream":
        """Let records come from somewhere.

        Args:
            source: a ``Source``, or an iterable or async iterable of values.
            name: of the operator.
            codec: of the records that it gives.
        """
        made = as_source(source)
        name = name or self._unused("source")
        self._add(Operator(name, Kind.SOURCE, made, self._made(codec), elastic=False))
        return Stream(self, (name,))

    def merge(self, *streams: "Stream") -> "Stream":
        """Put streams together: the next operator gets the records of all of them."""
        return Stream(self, tuple(name for stream in streams for name in stream.operators))

    def connect(self, source: "Stream | str", target: "Stream | str") -> None:
        """Send the records of one operator to another one as well, by name."""
        for end in source.operators if isinstance(source, Stream) else (source,):
            for to in target.operators if isinstance(target, Stream) else (target,):
                codec = next((o.codec for o in self._operators if o.name == end), JsonCodec())
                self._edges.append(Edge(end, to, Grouping.SHUFFLE, codec))

    def dead_letters(self, sink: "Sink | Callable[[Any], object]") -> None:
        """Send records on which a body fails to a sink, with the reason.

        The sink gets a dictionary for each: ``operator``, ``instance``, ``id``, ``value``,
        ``error`` and ``traceback``. Without it, such records are logged and counted.
        """
        self._add(Operator(DEAD_LETTERS, Kind.SINK, as_sink(sink), JsonCodec(), elastic=False))

    def graph(self) -> Graph:
        """Check the description.

        Raises:
            ConfigError: one line per mistake, all of them.
        """
        edges = list(self._edges)
        if any(operator.name == DEAD_LETTERS for operator in self._operators):
            edges += [
                Edge(operator.name, DEAD_LETTERS, Grouping.ROUND_ROBIN, JsonCodec())
                for operator in self._operators
                if operator.name != DEAD_LETTERS
            ]
        return Graph.check(self.name, self._operators, edges)

    # -- for streams ----------------------------------------------------------------------

    def _add(self, operator: Operator) -> None:
        self._operators.append(operator)

    def _made(self, codec: "str | type[Message] | Codec | None") -> Codec:
        return self._codec if codec is None else make_codec(codec)

    def _codec_of(self, name: str) -> Codec:
        return next(operator.codec for operator in self._operators if operator.name == name)

    def _unused(self, wanted: str) -> str:
        names = {operator.name for operator in self._operators}
        numbers = (f"{wanted}-{n}" for n in range(2, len(names) + 3))
        return wanted if wanted not in names else next(n for n in numbers if n not in names)


class Stream:
    """Records that come out of an operator; every method adds the next one.

    Streams branch: call methods of the same stream twice, and both get every record.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        operators: tuple[str, ...],
        grouping: Grouping = Grouping.SHUFFLE,
        key: Callable[[Any], Any] | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.operators = operators
        self._grouping = grouping
        self._key = key

    # -- how records are grouped ----------------------------------------------------------

    def key_by(self, key: Callable[[Any], Any]) -> "Stream":
        """Send records of one key to the same instance of the next operator.

        Args:
            key: gives text, bytes, a number, or a tuple of them.
        """
        return Stream(self.pipeline, self.operators, Grouping.KEY, key)

    def grouped(self, grouping: str, key: Callable[[Any], Any] | None = None) -> "Stream":
        """Say how records are shared out among the instances of the next operator.

        Args:
            grouping: ``"round-robin"``: they take turns. ``"adaptive"``: who will be through with
                it first, by the work that lies at each; with a key also by what records of each
                key cost. ``"osg"``: by estimated cost alone, as in paper 002. ``"key"``: the owner
                of its key. ``"partial-key"``: one of two owners of its key. ``"broadcast"``: all.
            key: gives text, bytes, a number, or a tuple of them. Of ``osg`` and ``adaptive`` it is
                what the cost of a record depends on. Those two need the extra ``balance`` with it.

        Raises:
            ConfigError: there is no such grouping, or it has a key too many or too few.
            MissingExtraError: the extra ``balance`` is not installed.
        """
        return Stream(self.pipeline, self.operators, checked(grouping, key), key)

    def broadcast(self) -> "Stream":
        """Send every record to all instances of the next operator."""
        return Stream(self.pipeline, self.operators, Grouping.BROADCAST)

    # -- operators ------------------------------------------------------------------------

    def map(self, body: Callable[[Any], Any], **options: Any) -> "Stream":  # noqa: ANN401
        """Make one value of each value. ``options`` are those of ``apply``."""
        return self.apply(Kind.MAP, body, **options)

    def filter(self, body: Callable[[Any], Any], **options: Any) -> "Stream":  # noqa: ANN401
        """Keep the values for which the body gives something true."""
        return self.apply(Kind.FILTER, body, **options)

    def flat_map(self, body: Callable[[Any], Any], **options: Any) -> "Stream":  # noqa: ANN401
        """Make any number of values of each value."""
        return self.apply(Kind.FLAT_MAP, body, **options)

    def batches(self, body: Callable[[list[Any]], Any], **options: Any) -> "Stream":  # noqa: ANN401
        """Make a list of values of a list of values.

        If as many come out as went in, each keeps the identity of the one at its place.
        """
        return self.apply(Kind.BATCHES, body, **options)

    def columns(self, body: Callable[[Any], Any], **options: Any) -> "Stream":  # noqa: ANN401
        """Make a ``pyarrow.RecordBatch`` of one. Needs the extra ``arrow``."""
        return self.apply(Kind.COLUMNS, body, **options)

    def apply(
        self,
        kind: Kind,
        body: Callable[[Any], Any],
        *,
        name: str | None = None,
        codec: "str | type[Message] | Codec | None" = None,
        elastic: bool = True,
        instances: int = 1,
        threads: int | None = None,
        minimum: int = 1,
        maximum: int | None = None,
        capacity: float | None = None,
        service_time: "float | Callable[[Any], float]" = 0.0,
    ) -> "Stream":
        """Add an operator.

        Args:
            kind: what it does with records.
            body: a function or coroutine function. Sync ones run in worker threads.
            name: of the operator; the body's name without it.
            codec: of the records that it gives; the pipeline's without it.
            elastic: False where state cannot be partitioned: it stays at one instance.
            instances: how many it starts with.
            threads: worker threads of each instance; for an async body, calls at the same time.
                What the body asks for, or 1, without it.
            minimum: instances, at least.
            maximum: instances, at most.
            capacity: records per second of one instance, if known; else it is measured.
            service_time: seconds per record in a world, where bodies cost no time; or a function
                that gives them for a value.
        """
        pipeline = self.pipeline
        if threads is None:
            threads = body.threads if isinstance(body, BulkBody) else 1
        if name is None:
            own = name_of(body)
            name = pipeline._unused(kind.value) if own == "<lambda>" else own
        pipeline._add(
            Operator(
                name,
                kind,
                body,
                pipeline._made(codec),
                elastic=elastic,
                instances=instances,
                threads=threads,
                minimum=minimum,
                maximum=maximum,
                capacity=capacity,
                service_time=service_time,
            )
        )
        self._connect(name)
        return Stream(pipeline, (name,))

    def sink(
        self,
        sink: "Sink | Callable[[Any], object]",
        *,
        name: str | None = None,
    ) -> "Stream":
        """Let records go somewhere.

        Args:
            sink: a ``Sink``, or a function that is called with each value.
            name: of the operator.
        """
        name = name or self.pipeline._unused("sink")
        self.pipeline._add(Operator(name, Kind.SINK, as_sink(sink), JsonCodec(), elastic=False))
        self._connect(name)
        return Stream(self.pipeline, (name,))

    def _connect(self, target: str) -> None:
        for name in self.operators:
            codec = self.pipeline._codec_of(name)
            edge = Edge(name, target, self._grouping, codec)
            self.pipeline._edges.append(replace(edge, key=self._key))
