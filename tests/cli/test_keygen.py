"""``dsp keygen``."""

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dsp.cli.app import app
from dsp.errors import ConfigError
from dsp.transport.zmq.keys import read_key_file


def keygen(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["keygen", *arguments], catch_exceptions=True)


def test_writes_a_pair_and_prints_the_public_key(tmp_path: Path) -> None:
    result = keygen(str(tmp_path / "node"))
    assert result.exit_code == 0
    assert result.stdout.strip() == read_key_file(tmp_path / "node.pub")
    assert read_key_file(tmp_path / "node") != read_key_file(tmp_path / "node.pub")
    assert stat.S_IMODE((tmp_path / "node").stat().st_mode) == 0o600


def test_replaces_nothing_unless_asked(tmp_path: Path) -> None:
    first = keygen(str(tmp_path / "node")).stdout
    refused = keygen(str(tmp_path / "node"))
    assert isinstance(refused.exception, ConfigError)
    assert "--replace" in str(refused.exception)
    assert keygen(str(tmp_path / "node"), "--replace").stdout != first


def test_names_the_place_that_cannot_be_written(tmp_path: Path) -> None:
    refused = keygen(str(tmp_path / "absent" / "node"))
    assert isinstance(refused.exception, ConfigError)
    assert "absent" in str(refused.exception)
    with pytest.raises(FileNotFoundError):
        read_key_file(tmp_path / "absent" / "node")
