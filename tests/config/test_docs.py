"""What the pages show works, and shows what happens."""

import re
from pathlib import Path

import pytest

from dsp.config import ConfigFaults, load_config
from dsp.config.reference import reference_page

DOCS = Path(__file__).parents[2] / "docs"
HOWTO = (DOCS / "howto" / "configure.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", HOWTO, re.DOTALL | re.MULTILINE)


def test_reference_is_what_the_models_say() -> None:
    # Renew it with: python -m dsp.config.reference > docs/reference/configuration.md
    assert (DOCS / "reference" / "configuration.md").read_text() == reference_page()


@pytest.mark.parametrize("text", blocks("toml"))
def test_example_files_load(text: str, tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text(text)
    load_config(path, env={})


def test_faulty_example_has_the_faults_that_the_page_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (faulty,), (printed,) = blocks("toml faulty"), blocks("text")
    monkeypatch.chdir(tmp_path)
    Path("dsp.toml").write_text(faulty)
    with pytest.raises(ConfigFaults) as caught:
        load_config("dsp.toml", env={})
    assert f"{caught.value}\n" == printed


def test_example_programs_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dsp.toml").write_text(blocks("toml")[0])
    for program in blocks("python"):
        exec(compile(program, "configure.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "zmq://0.0.0.0:5555",
        "128",
        "test",
        "overrides transport.ulr unknown key did you mean url?",
    ]
