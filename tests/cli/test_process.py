"""The command as a process: exit codes, streams, and a missing extra."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from dsp import __version__

BLOCKED = "import sys; sys.modules[{name!r}] = None; from dsp.cli.main import run; run()"
RAISING = (
    "import dsp.cli.app, dsp.errors\n"
    "from dsp.cli.main import run\n"
    "@dsp.cli.app.app.command()\n"
    "def fail() -> None:\n"
    "    raise {error}\n"
    "run()\n"
)


def python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("DSP_")}
    for forcing in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        env.pop(forcing, None)
    env["PYTHONPATH"] = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=cwd,
        env=env,
        check=False,
    )


def dsp(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return python("-m", "dsp.cli", *arguments, cwd=cwd)


def test_version() -> None:
    done = dsp("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"dsp {__version__}\n", "")


def test_help_names_every_command_and_the_exit_codes() -> None:
    done = dsp("--help")
    assert done.returncode == 0
    for words in ("check", "schema", "transports", "--version", "Exit codes"):
        assert words in done.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["check"], ["check", "--nonsense", "x"]])
def test_wrong_usage_exits_2(arguments: list[str]) -> None:
    done = dsp(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Usage" in done.stderr


def test_check_exit_codes(tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text("")
    (tmp_path / "bad.toml").write_text("x = 1\n")
    assert dsp("check", "good.toml", cwd=tmp_path).returncode == 0
    done = dsp("check", "bad.toml", cwd=tmp_path)
    assert done.returncode == 1
    assert (
        done.stdout
        == "bad.toml:1: x: unknown key (allowed: node, transport, stream, scaling, balance)\n"
    )


@pytest.mark.parametrize("name", ["typer", "rich"])
def test_missing_extra_is_named(name: str) -> None:
    done = python("-c", BLOCKED.format(name=name))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "dsp: the dsp command needs the extra 'cli': pip install 'dsp[cli]'\n"


def test_other_missing_modules_keep_their_traceback() -> None:
    done = python("-c", BLOCKED.format(name="dsp.cli.output"))
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_known_error_is_one_clean_message() -> None:
    done = python("-c", RAISING.format(error="dsp.errors.ConnectError('no route')"), "fail")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "dsp: no route\n")


@pytest.mark.parametrize("error", ["RuntimeError('boom')", "dsp.errors.InvariantError('boom')"])
def test_bugs_keep_their_traceback(error: str) -> None:
    done = python("-c", RAISING.format(error=error), "fail")
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.rstrip().endswith("boom")


@pytest.mark.parametrize(
    ("text", "words"),
    [("x = 1\n", ["what is wrong", "unknown key"]), ("", ["setting", "transport.url", "default"])],
)
def test_tables_on_a_terminal(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "dsp.toml").write_text(text)
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "dsp.cli", "check", "dsp.toml"],
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "TERM": "xterm",
                "COLUMNS": "120",
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
        )
        # Less than a terminal's buffer, so nobody need read while it runs.
        process.wait(timeout=50)
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "\x1b[" in shown
    for word in words:
        assert word in shown
