"""Runs the snippets and commands of a page in this process, so that they share its Spark."""

import contextlib
import io
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dsp.cli.app import app
from tests.test_documentation import blocks, matches
from tools.documentation import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run_page_here"]


def run_page_here(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, session: "SparkSession"
) -> int:
    """Run all blocks of a page, in a folder; give how many ran."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("NO_COLOR", "1")
    ran, output, titles = 0, "", []
    for block in blocks((ROOT / name).read_text()):
        if block.kind == "python":
            if block.title:
                (folder / block.title).write_text(block.text)
                # Workers are children of a Java that was started elsewhere.
                session.sparkContext.addPyFile(str(folder / block.title))
                titles.append(Path(block.title).stem)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = compile(block.text, f"{name}:{block.line}", "exec")
                exec(code, {"__name__": "snippet"})
            output = said.getvalue()
        elif block.kind == "text":
            assert matches(block.text, output), f"{name}, line {block.line}: prints\n{output}"
        elif block.kind == "toml":
            (folder / (block.title or "dsp.toml")).write_text(block.text)
        elif block.kind == "console":
            _run_console(block.text, name)
        ran += 1
    for title in titles:
        sys.modules.pop(title, None)
    return ran


def _run_console(text: str, name: str) -> None:
    for part in text.split("$ ")[1:]:
        command, _, expected = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "dsp"
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{name}: {command}:\n{done.output}\n{done.exception}"
        assert matches(expected, done.output), f"{name}: {command} prints\n{done.output}"
