"""``dsp check`` and ``dsp schema``."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from dsp.cli.app import app
from dsp.config import json_schema


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("dsp.toml")


def dsp(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(app, arguments, env=env, catch_exceptions=False)


def test_good_file_prints_values_and_where_they_come_from(file: Path) -> None:
    file.write_text('[transport]\nurl = "sim://world/a"\n')
    result = dsp("check", "dsp.toml", DSP_NODE__ID="n7")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "ok: dsp.toml"
    assert 'node.id = "n7"  # environment DSP_NODE__ID' in lines
    assert 'transport.url = "sim://world/a"  # dsp.toml:2' in lines
    assert "transport.drain_timeout = 5.0" in lines
    assert result.stderr == ""


def test_good_file_for_programs(file: Path) -> None:
    file.write_text('[transport]\nurl = "sim://world/a"\n')
    result = dsp("check", "--json", "dsp.toml")
    assert result.exit_code == 0
    answer = orjson.loads(result.stdout)
    assert answer["ok"] is True
    assert answer["values"]["transport.url"] == "sim://world/a"
    assert answer["sources"] == {
        "transport.url": {"kind": "file", "name": "dsp.toml", "line": 2, "column": None}
    }


def test_every_fault_on_a_line(file: Path) -> None:
    file.write_text('[transport]\nurl = "nope://a"\nsend_queue_frames = 0\nulr = 1\n')
    result = dsp("check", "dsp.toml", DSP_NODE__IDD="x")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("dsp.toml:3: transport.send_queue_frames: must be")
    assert lines[1].startswith("dsp.toml:4: transport.ulr: unknown key")
    assert lines[2].startswith("environment DSP_NODE__IDD: node.idd: unknown setting")
    assert lines[3].startswith("dsp.toml:2: transport.url: unknown scheme 'nope'")
    assert "sim://" in lines[3]
    assert result.stderr == "4 faults\n"


def test_forced_colours_do_not_break_a_pipe(file: Path) -> None:
    file.write_text("x = 1\n")
    result = dsp("check", "dsp.toml", FORCE_COLOR="1")
    known = "node, transport, stream, scaling, balance"
    assert result.stdout == f"dsp.toml:1: x: unknown key (allowed: {known})\n"


def test_faults_for_programs(file: Path) -> None:
    file.write_text('[transport]\nurl = "nope://a"\n')
    result = dsp("check", "dsp.toml", "--json")
    assert result.exit_code == 1
    assert result.stderr == ""
    answer = orjson.loads(result.stdout)
    assert answer["ok"] is False
    (fault,) = answer["faults"]
    assert fault["path"] == "transport.url"
    assert fault["source"]["line"] == 2


def test_wrong_url_is_reported_once(file: Path) -> None:
    file.write_text('[transport]\nurl = "nope"\n')
    assert len(dsp("check", "dsp.toml").stdout.splitlines()) == 1


def test_default_url_is_not_checked_for_a_file_that_cannot_be_read(file: Path) -> None:
    result = dsp("check", "dsp.toml")
    assert result.exit_code == 1
    assert result.stdout == "dsp.toml: no such file (check the name and the working directory)\n"
    assert result.stderr == "1 fault\n"


def test_schema() -> None:
    result = dsp("schema")
    assert result.exit_code == 0
    assert orjson.loads(result.stdout) == json_schema()
