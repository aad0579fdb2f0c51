"""Mistakes in a graph are told before anything starts, and all of them at once."""

import pytest

import dsp
from dsp.errors import ConfigError
from dsp.stream.graph import Graph


def two(a: int, b: int) -> int:
    return a + b


def none() -> int:
    return 1


def told(pipeline: dsp.Pipeline) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        dsp.run(pipeline)
    return str(caught.value).splitlines()


def test_every_mistake_of_one_pipeline_is_told() -> None:
    pipeline = dsp.Pipeline("wrong")
    numbers = pipeline.source(range(3), name="numbers")
    first = numbers.map(abs, name="twin")
    numbers.filter(bool, name="twin").sink(print)
    second = first.map(two, name="two-arguments")  # type: ignore[arg-type]
    pipeline.connect(second, "twin")
    numbers.map(abs, name="loose")
    numbers.map(abs, name="few", instances=0, minimum=3, maximum=2).sink(print)
    numbers.map(abs, name="fixed", elastic=False, instances=2).sink(print)
    numbers.map("text", name="not a name!").sink(print)  # type: ignore[arg-type]
    numbers.key_by(none).sink(print, name="keyed")  # type: ignore[arg-type]
    pipeline.connect("numbers", "nowhere")
    pipeline.connect("numbers", "few")
    faults = "\n".join(told(pipeline))
    for fault in (
        "twin: 2 operators have this name",
        "these operators form a cycle",
        "two-arguments: the body two(a: int, b: int) -> int is called with one argument",
        "loose: what it gives goes nowhere",
        "few: instances is 0, at least 1 is needed",
        "few: maximum 2 is below minimum 3",
        "fixed: it is not elastic, so it has one instance, not 2",
        "'not a name!': a name has 1 to 64 letters",
        "not a name!: the body is 'text', which cannot be called",
        "numbers -> keyed: the key function none() -> int is called with one argument",
        "numbers -> nowhere: there is no operator 'nowhere'",
        "numbers -> few: connected twice",
    ):
        assert fault in faults
    assert all(line.startswith("pipeline 'wrong': ") for line in faults.splitlines())


def test_a_cycle() -> None:
    pipeline = dsp.Pipeline("ring")
    one = pipeline.source([1], name="source").map(abs, name="one")
    two = one.map(abs, name="two")
    two.sink(print, name="out")
    pipeline.connect(two, one)
    assert told(pipeline) == [
        "pipeline 'ring': one, two, out: these operators form a cycle, or come after one"
    ]


def test_no_source_and_no_sink() -> None:
    assert told(dsp.Pipeline("empty")) == [
        "pipeline 'empty': there is no source: call pipeline.source(...)"
    ]
    pipeline = dsp.Pipeline("endless")
    pipeline.source([1], name="numbers")
    assert told(pipeline) == [
        "pipeline 'endless': numbers: what it gives goes nowhere; end it with .sink(...)"
    ]


def test_nothing_goes_into_a_source_or_out_of_a_sink() -> None:
    pipeline = dsp.Pipeline("wrong-way")
    source = pipeline.source([1], name="numbers")
    sink = source.sink(print, name="out")
    other = pipeline.source([1], name="others")
    other.sink(print)
    pipeline.connect(other, source)
    sink.sink(print, name="beyond")
    assert told(pipeline) == [
        "pipeline 'wrong-way': numbers: nothing can be sent to a source",
        "pipeline 'wrong-way': out: nothing comes out of a sink",
    ]


def test_what_makes_sense_is_ordered_by_who_sends_to_whom() -> None:
    pipeline = dsp.Pipeline("right")
    late = pipeline.source([1], name="numbers").map(abs, name="late")
    early = pipeline.source([2], name="others").map(abs, name="early")
    pipeline.connect(early, late)
    late.sink(print, name="out")
    graph = pipeline.graph()
    assert isinstance(graph, Graph)
    order = list(graph.operators)
    assert order.index("early") < order.index("late") < order.index("out")
    assert graph.upstream("late") == ("numbers", "early")
