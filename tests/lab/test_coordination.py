"""Scaling at once, and under mutual exclusion: figures, plots, and runs in processes."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from dsp.cli.app import app
from dsp.errors import ConfigError
from dsp.lab.coordination.application import Setting
from dsp.lab.coordination.runs import run_in_processes
from dsp.lab.coordination.study import Study, run_study

BRIEF = Setting(wave=3.0, waves=1)


@pytest.fixture(scope="module")
def study() -> Study:
    return run_study(BRIEF, ["ack", "2fgme"], range(2))


def test_exclusion_keeps_neighbours_apart_and_costs_messages(study: Study) -> None:
    for name in ("ack", "2fgme"):
        assert study.mean(name, "scaling steps") >= 5
        assert study.mean(name, "ms from decision to newcomer") > 0
    assert study.mean("ack", "steps of neighbours that overlap") > 0
    assert study.mean("2fgme", "steps of neighbours that overlap") == 0
    assert study.mean("ack", "messages per step, coordination") == 0
    assert study.mean("2fgme", "messages per step, coordination") > 1
    assert max(study.waits["ack"]) == 0 < max(study.waits["2fgme"])


def test_the_same_seed_gives_the_same_figures(study: Study) -> None:
    again = run_study(BRIEF, ["2fgme"], [0]).waits["2fgme"]
    assert study.waits["2fgme"][: len(again)] == again


def test_an_unknown_coordination() -> None:
    with pytest.raises(ConfigError, match="'both'; there are ack, 2fgme"):
        run_study(BRIEF, ["both"], [0])


SMALL = ("lab", "coordination", "--seeds", "1", "--wave", "2", "--waves", "1", "--workers", "1")


def test_the_command_prints_rows_and_draws(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*SMALL, "--operators", "2", "--plots", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "2fgme  steps of neighbours that overlap  mean 0.00" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["coordination.png"]


def test_the_command_prints_json() -> None:
    arguments = [*SMALL, "--operators", "2", "--coordinations", "2fgme", "--json"]
    found = orjson.loads(CliRunner().invoke(app, arguments).stdout)
    assert found["where"] == "virtual time"
    assert found["setting"]["operators"] == 2
    assert {row["coordination"] for row in found["rows"]} == {"2fgme"}


@pytest.mark.timeout(240)
@pytest.mark.asyncio
async def test_processes_over_zeromq() -> None:
    """Counted by value in the run itself, which raises if a record is missing."""
    setting = Setting(operators=2, high=60.0, wave=6.0, waves=1)
    outcome = await run_in_processes(setting, "2fgme", "zmq://127.0.0.1:0")
    assert outcome.steps >= 2
    assert outcome.overlaps == 0
    assert outcome.coordination_messages > 0
