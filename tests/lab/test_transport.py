"""Measuring transports: real processes, for moments only. What is measured decides nothing."""

import orjson
import pytest
from typer.testing import CliRunner

from dsp.cli.app import app
from dsp.errors import ConfigError
from dsp.lab.transport.load import Figures, Load, LoadKind, pack, percentile, unpack
from dsp.lab.transport.pair import Contender
from dsp.lab.transport.suite import Result, contender, measure, median
from dsp.lab.transport.table import rows

ZMQ = {"url": "zmq+tcp://127.0.0.1:0"}


def test_frames_hold_their_records() -> None:
    records = [b"", b"a", bytes(300)]
    assert unpack(pack(records)) == records


def test_percentiles_and_medians() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0], 0.99) == 1.0
    runs = [Figures(rate=1.0), Figures(rate=5.0), Figures(rate=2.0)]
    assert median(runs) == Figures(rate=2.0)


@pytest.mark.parametrize("kind", list(LoadKind))
def test_every_load_is_measured(kind: LoadKind) -> None:
    load = Load(kind, record_bytes=100, batch=16, seconds=0.1)
    (result,) = measure([contender("zmq", ZMQ)], [load], runs=1)
    assert result.error is None
    figures = result.median
    if kind is LoadKind.FLOW:
        assert figures.rate is not None
        assert figures.rate > 0
    elif kind is LoadKind.CLOG:
        assert figures.resident_mib is not None
    else:
        assert figures.p50 is not None
        assert figures.p99 is not None
        assert 0 < figures.p50 <= figures.p99


def test_a_contender_that_breaks_is_told_with_its_words() -> None:
    broken = Contender("broken", "dsp.lab.transport.absent")
    (result,) = measure([broken], [Load(LoadKind.FLOW, seconds=0.1)], runs=2)
    assert result.error is not None
    assert "dsp.lab.transport.absent" in result.error
    ((*_, figure, _),) = rows([result], ["broken"])
    assert figure.startswith("failed: ")


def test_ratios_are_to_the_chosen_one() -> None:
    results = [
        Result(name, "load", "flow", (), Figures(rate=rate))
        for name, rate in (("raw", 200.0), ("ours", 150.0))
    ]
    assert [row[3] for row in rows(results, ["raw"])] == ["1.00", "0.75"]


def test_a_simulated_network_is_refused() -> None:
    with pytest.raises(ConfigError, match="one process"):
        contender("sim", {"url": "sim://world"})


def test_the_command_prints_json() -> None:
    arguments = ["lab", "transport", ZMQ["url"], "--runs", "1", "--seconds", "0.05", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found = orjson.loads(result.stdout)
    assert {entry["kind"] for entry in found} == {kind.value for kind in LoadKind}
