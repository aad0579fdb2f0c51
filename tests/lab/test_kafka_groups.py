"""The arrangement of paper 000 chapter 4, on a real broker, beside the same job on dsp."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

import dsp
from dsp.cli.app import app
from dsp.errors import ConfigError
from dsp.lab.kafka_groups.flow import Flow, figures_of
from dsp.lab.kafka_groups.groups import run_groups
from dsp.lab.kafka_groups.plots import draw_flows
from dsp.lab.kafka_groups.stage import GroupSettings
from dsp.lab.kafka_groups.study import choose_operator
from dsp.testing.kafka import ExternalBroker, KafkaBroker
from examples.taxi.load import Load, SteppedSource

RECORDS = 300
QUICK = GroupSettings(partitions=4, heartbeat=0.2, sample=0.1)


def is_odd(value: int) -> bool:
    return value % 2 == 1


async def twice(value: int) -> list[int]:
    await asyncio.sleep(0.002)
    return [value, value]


def job() -> dsp.Pipeline:
    described = dsp.Pipeline("groups")
    source = SteppedSource(lambda: range(RECORDS), Load(((1.5, RECORDS / 1.5),)))
    odd = described.source(source, name="numbers").filter(is_odd, name="odd", elastic=False)
    odd.flat_map(twice, name="twice").sink(dsp.Collector(), name="out")
    return described


@pytest.mark.timeout(120)
def test_every_record_comes_through_while_replicas_come_and_go(
    kafka_broker: KafkaBroker | ExternalBroker, tmp_path: Path
) -> None:
    graph = job().graph()
    schedules = {"twice": [(-1.0, 1.0), (0.0, 2.0), (0.3, 3.0), (0.9, 1.0)]}
    flow, wanted = asyncio.run(run_groups(graph, "twice", schedules, kafka_broker.bootstrap, QUICK))
    odd = [value for value in range(RECORDS) if is_odd(value)]
    assert flow.ids == wanted
    assert len(wanted) == 2 * len(odd)
    out: Any = graph.operators["out"].body
    assert set(out.values) == set(odd)
    assert len(out.values) == len(wanted) + flow.repeats
    figures = figures_of(flow, "twice", wanted)
    assert figures.lost == 0
    assert figures.given == RECORDS
    assert figures.instances >= 2
    assert len(flow.rates) == 3
    assert flow.rebalances
    assert len(flow.joins) >= 1
    assert figures.stall > 0
    draw_flows(tmp_path / "flows.png", [flow, flow], "twice")
    assert (tmp_path / "flows.png").stat().st_size > 5000


def test_figures_of_a_run() -> None:
    flow = Flow(
        name="made up",
        given=4,
        arrivals=[(0.0, 1), (1.0, 1), (4.0, 1)],
        ids={1, 2, 3},
        repeats=1,
        input_rate=[(0.0, 1.0), (8.0, 1.0)],
        instances={"work": [(0.0, 1.0), (2.0, 2.0)]},
        rates={
            "a": [(float(at), 3.0) for at in range(9)],
            "b": [(float(at), 0.0 if at in (4, 5) else 1.0) for at in range(2, 9)],
        },
        rebalances=[(2.0, 2.5), (3.0, 3.25)],
    )
    figures = figures_of(flow, "work", {1, 2, 3, 4})
    assert (figures.taken, figures.lost, figures.repeats) == (3, 1, 1)
    assert (figures.instances, figures.changes, figures.stall) == (2, 1, 3.0)
    assert (figures.rebalances, figures.rebalancing) == (2, 0.75)
    assert figures.silence == 2.0
    # From 3 to 8 s: 3 and 4/6 records per second.
    assert figures.uneven == pytest.approx(3 / ((3 + 4 / 6) / 2))


def test_what_does_not_suit_is_told() -> None:
    branched = dsp.Pipeline("branched")
    stream = branched.source([1], name="numbers").map(lambda each: each, name="same")
    stream.sink(dsp.Collector(), name="one")
    stream.sink(dsp.Collector(), name="other")
    with pytest.raises(ConfigError, match="is no line"):
        choose_operator(branched.graph(), None)
    with pytest.raises(ConfigError, match="no elastic operator of 'groups'; there are twice"):
        choose_operator(job().graph(), "odd")
    assert choose_operator(job().graph(), None) == "twice"


@pytest.mark.timeout(180)
def test_the_command(
    kafka_broker: KafkaBroker | ExternalBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TAXI_FACTOR", "200")  # 4.5 seconds
    settings = tmp_path / "dsp.toml"
    settings.write_text("[scaling]\ndecider = 'ranked'\nperiod = 0.5\nmaximum = 3\n")
    arguments = ["lab", "kafka-groups", "--kafka", kafka_broker.bootstrap, "--heartbeat", "0.2"]
    command = [*arguments, "--config", str(settings), "--json"]
    told = CliRunner().invoke(app, command, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    study = orjson.loads(told.stdout)
    assert study["operator"] == "in_zone"
    assert set(study["figures"]) == {"Kafka groups", "dsp"}
    for figures in study["figures"].values():
        assert figures["lost"] == 0
        assert figures["given"] == 1200
        assert figures["taken"] == study["figures"]["dsp"]["taken"] > 300
