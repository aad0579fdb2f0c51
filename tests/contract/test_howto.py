"""The page about writing a transport shows the example as it is."""

import re
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from tests.contract.tcp_package import PACKAGE

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "write-a-transport.md"
EXCERPT = re.compile(
    r"<!-- not run: part of examples/tcp_transport -->\n```python\n(.*?)```", re.DOTALL
)
EXCERPTS = EXCERPT.findall(PAGE.read_text())


def test_there_are_excerpts() -> None:
    assert len(EXCERPTS) >= 5


@pytest.mark.parametrize("excerpt", EXCERPTS)
def test_an_excerpt_is_in_the_example(excerpt: str) -> None:
    """Word by word, at whatever depth it is indented there."""
    lines = dedent(excerpt).splitlines()
    sources = [path.read_text().splitlines() for path in PACKAGE.glob("dsp_tcp/*.py")]
    windows = (
        dedent("\n".join(source[start : start + len(lines)])).splitlines()
        for source in sources
        for start in range(len(source))
    )
    assert any(window == lines for window in windows), f"not in the example:\n{excerpt}"


def test_the_entry_point_is_the_one_of_the_example() -> None:
    shown = re.search(r"```toml title=\"entry-point.toml\"\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    declared = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
    assert tomllib.loads(shown[1])["project"]["entry-points"] == declared
