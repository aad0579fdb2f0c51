"""Who does not read a configuration does not pay for pydantic."""

import subprocess
import sys

import pytest

import dsp.config


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module", ["dsp", "dsp.config", "dsp.config.faults", "dsp.transport.base", "dsp.cli.main"]
)
def test_import_leaves_heavy_packages_out(module: str) -> None:
    program = f"import sys, {module}; print({{'pydantic', 'typer', 'rich'}} & {{*sys.modules}})"
    assert run(program) == "set()"


def test_lazy_names() -> None:
    for name in dsp.config.__all__:
        assert getattr(dsp.config, name) is not None
        assert name in dir(dsp.config)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dsp.config.nothing  # noqa: B018


def test_config_imports_in_a_fresh_process() -> None:
    assert run("from dsp.config import load_config; print(load_config(env={}).node.id)") == "None"
