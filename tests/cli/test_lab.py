"""``dsp lab scaling``."""

from pathlib import Path

import orjson
from typer.testing import CliRunner, Result

from dsp.cli.app import app

SMALL = ("lab", "scaling", "--seeds", "2", "--steps", "30", "--operators", "2", "--workers", "1")


def dsp(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_prints_the_open_parameters_and_the_figures() -> None:
    result = dsp(*SMALL, "--rules", "probabilistic,ranked")
    assert result.exit_code == 0
    assert "sigma: 300, step of the Brownian motion, records per time step" in result.stdout
    assert "rule ranked  figure mean |accuracy - 1|  mean 0." in result.stdout
    assert "reference 40.0" in result.stdout


def test_prints_json() -> None:
    result = dsp(*SMALL, "--rules", "ranked", "--load", "doubling", "--json")
    found = orjson.loads(result.stdout)
    assert found["setting"]["load"] == "doubling"
    assert found["seeds"] == [0, 1]
    assert set(found["rules"]["ranked"]["full"]) == {"mean", "p5", "p95", "reference"}


def test_draws(tmp_path: Path) -> None:
    result = dsp(*SMALL, "--rules", "ranked", "--plots", str(tmp_path / "plots"))
    assert result.exit_code == 0
    names = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert names == [
        f"scaling-brownian-{name}.png"
        for name in ("accuracy", "instances", "messages", "throughput", "traffic")
    ]


def test_an_unknown_rule_is_an_error() -> None:
    result = dsp(*SMALL, "--rules", "best")
    assert result.exit_code == 1
    assert "no rule 'best'" in str(result.exception)
