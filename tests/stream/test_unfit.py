"""Values that the codec of an edge cannot hold: dead letters, on every kind of edge."""

import math

import pytest

import dsp
from dsp.config import Config
from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.stream.codecs import JsonCodec
from dsp.stream.plain_json import dump_json
from dsp.stream.sinks import JsonLinesSink
from dsp.testing import Host, World
from dsp.testing.pipelines import WorldSpawner
from tests.stream.runs import copied

RECORDS = 200


def spoiled(number: int) -> object:
    """Every tenth value is none that JSON can hold."""
    if number % 10:
        return {"n": number}
    return {"n": {number}} if number % 20 else {"n": number, "x": math.nan}


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
@pytest.mark.parametrize("by_key", [False, True])
def test_they_reach_the_sink_for_dead_letters(by_key: bool, delivery: str) -> None:
    collector, letters = dsp.Collector(), dsp.Collector()
    pipeline = dsp.Pipeline("unfit")
    stream = pipeline.source(range(RECORDS), name="numbers").map(spoiled, name="spoil")
    if by_key:
        stream = stream.key_by(lambda value: str(value["n"]))
    stream.map(lambda value: value, name="same", instances=3).sink(collector, name="out")
    pipeline.dead_letters(letters)
    lost: list[int] = []
    with World(5) as world:

        async def main(host: Host) -> None:
            config = Config.model_validate(
                {
                    "transport": {"url": host.url},
                    "node": {"id": str(NodeId("app"))},
                    "stream": {"delivery": delivery, "batch_records": 16},
                }
            )
            # Each instance is on a host of its own: everything between them is encoded.
            spawner = WorldSpawner(world, pipeline.graph(), config)
            async with dsp.run(pipeline, config, spawner=spawner, seed=1) as app:
                summary = await app.join()
            lost.append(summary.lost)
            assert summary.dead_letters == RECORDS // 10

        host = world.add_host("app", main)
        world.run_until(lambda: host.finished, limit=100)
    assert lost == [0]
    assert sorted(each["n"] for each in collector.values) == [
        number for number in range(RECORDS) if number % 10
    ]
    assert sorted(int(letter["id"], 16) for letter in letters.values) == [*range(0, RECORDS, 10)]
    assert {letter["operator"] for letter in letters.values} == {"spoil"}
    assert all("spoil -> same: json cannot hold" in each["error"] for each in letters.values)
    assert any("nan" in str(letter["value"]) for letter in letters.values)


@pytest.mark.parametrize("value", [math.nan, math.inf, [1, {"x": -math.inf}]])
def test_json_refuses_what_it_would_make_null(value: object) -> None:
    with pytest.raises(CodecError, match="NaN and infinity are no JSON"):
        JsonCodec().encode([1, value])
    with pytest.raises(TypeError, match="let the body give None"):
        dump_json({"value": value})


def test_json_takes_null() -> None:
    for value in (None, "null", [None, {"null": None}], math.pi):
        assert JsonCodec().decode(JsonCodec().encode([value])) == [value]


@pytest.mark.asyncio
async def test_a_file_takes_no_nan(tmp_path: object) -> None:
    path = f"{tmp_path}/out.jsonl"
    letters = await copied([{"x": 1.5}, {"x": math.nan}, {"x": None}], JsonLinesSink(path))
    with open(path) as file:  # noqa: ASYNC230
        assert file.read() == '{"x":1.5}\n{"x":null}\n'
    assert len(letters) == 1
    assert "NaN" in letters[0]["error"]
