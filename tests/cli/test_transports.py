"""``dsp transports``, and what ``dsp check`` says of transports that are not there.

Schemes are added as other packages add them: by entry points of an installed distribution.
"""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from dsp.cli.app import app


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "other-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[dsp.transports]\n"
        "absent = package_that_is_absent:Transport\n"
        "noclass = dsp.errors:DspError\n"
        "extra = module_that_needs_an_extra:Transport\n"
    )
    (tmp_path / "module_that_needs_an_extra.py").write_text(
        "from dsp.errors import MissingExtraError\n"
        "raise MissingExtraError('zmq', 'transport extra://')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


def dsp(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_lists_what_is_installed() -> None:
    result = dsp("transports")
    assert result.exit_code == 0
    assert "sim:// installed" in result.stdout.splitlines()


@pytest.mark.usefixtures("distribution")
def test_a_broken_transport_does_not_hide_the_others() -> None:
    result = dsp("transports")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "sim:// installed" in lines
    assert "absent:// broken: No module named 'package_that_is_absent'" in lines
    assert "extra:// not installed: pip install 'dsp[zmq]'" in lines
    assert any(line.startswith("noclass:// broken: ") for line in lines)


@pytest.mark.usefixtures("distribution")
def test_list_for_programs() -> None:
    result = dsp("transports", "--json")
    listed = {one["scheme"]: one for one in orjson.loads(result.stdout)}
    assert listed["sim"]["status"] == "installed"
    assert listed["extra"]["status"] == "not installed"
    assert listed["extra"]["extra"] == "zmq"


@pytest.mark.usefixtures("distribution")
@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("extra", "pip install 'dsp[zmq]'"),
        ("absent", "does not load: No module named 'package_that_is_absent'"),
        ("noclass", "is not a dsp Transport class"),
    ],
)
def test_check_names_the_remedy(tmp_path: Path, scheme: str, words: str) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text(f'[transport]\nurl = "{scheme}://host:1"\n')
    result = dsp("check", str(path))
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"{path}:2: transport.url: ")
    assert words in line
