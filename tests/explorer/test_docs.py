"""The examples of the how-to run as they are, and print what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "explore-a-protocol.md"


def test_examples_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    scope: dict[str, object] = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)
    printed = capsys.readouterr().out
    shown = text.split("## How to read a trace\n\n```\n")[1].split("   ...")[0]
    head, _, steps = shown.partition("\n")
    assert printed.startswith(head.split(" 0.0 s")[0])
    assert steps in printed
    assert "starvation: " in printed
