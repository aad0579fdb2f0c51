"""Every snippet and every command in the documentation runs, and shows what happens.

A page is run from top to bottom in an empty directory:

* ``python``: run as a program, or by pytest if it defines tests. ``title="name.py"`` saves it under
  that name; a block without it is run and forgotten.
* ``toml``: saved under its title, ``dsp.toml`` without one.
* ``console``: lines after ``$ `` are commands; other lines are their output, where ``...`` stands
  for anything. Commands of make are not run (one of them runs this test): make must know them.
* ``text``: directly after a ``python`` block it is the output of that program.

``<!-- not run: reason -->`` before a block leaves it out.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.documentation import ROOT, anchor, broken_links, pages, stale_pages, unreachable_pages

# Pages whose blocks have tests of their own, because they show faults on purpose.
TESTED_ELSEWHERE = {
    "docs/howto/configure.md": "tests/config/test_docs.py",
    "docs/howto/explore-a-protocol.md": "tests/explorer/test_docs.py",
    # One Spark for all snippets of a page: each for itself would take most of a minute.
    "docs/howto/spark-stages.md": "tests/spark/test_stage.py",
    "docs/howto/spark-functions.md": "tests/spark/test_functions.py",
    "docs/howto/spark-graphs.md": "tests/spark/test_graph.py",
}
KINDS = {"python", "toml", "console", "text", "proto", "make"}
NOT_RUN = re.compile(r"<!-- not run: .{10,} -->")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    title: str | None
    text: str
    line: int
    before: str


def blocks(page: str) -> Iterator[Block]:
    """Find the fenced blocks of a page."""
    lines = page.splitlines()
    number = 0
    while number < len(lines):
        if match := re.fullmatch(r"```(\w*)(.*)", lines[number]):
            end = lines.index("```", number + 1)
            title = re.search(r'title="([^"]+)"', match[2])
            text = "".join(f"{line}\n" for line in lines[number + 1 : end])
            above = next((line for line in reversed(lines[:number]) if line.strip()), "")
            yield Block(match[1], title[1] if title else None, text, number + 1, above)
            number = end
        number += 1


def environment() -> dict[str, str]:
    # Neither settings of dsp nor those of a make that may have started us.
    ours = ("DSP_", "MAKE", "MFLAGS")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return kept | {"PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"}


def execute(arguments: list[str], directory: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        cwd=directory,
        env=environment() | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=50,
        check=False,
    )


def run_python(block: Block, directory: Path) -> str:
    tests = re.search(r"^(async )?def test_", block.text, re.MULTILINE) is not None
    path = directory / (block.title or ("test_snippet.py" if tests else "snippet.py"))
    path.write_text(block.text)
    pytest_options = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    options = pytest_options if tests else ["-W", "error"]
    done = execute([sys.executable, *options, path.name], directory)
    assert done.returncode == 0, f"line {block.line}:\n{done.stdout}"
    if block.title is None:
        path.unlink()
    return done.stdout


def run_console(block: Block, directory: Path) -> None:
    command, expected = "", ""
    for line in [*block.text.splitlines(), "$ "]:
        if not line.startswith("$ "):
            expected += f"{line}\n"
            continue
        if command:
            run_command(command, expected, directory)
        command, expected = line[2:], ""


def run_command(command: str, expected: str, directory: Path) -> None:
    words = shlex.split(command)
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    words = words[len(variables) :] if words[0] != "make" else words
    if words[0] == "make":
        done = execute([*words, "--dry-run"], ROOT)
        assert done.returncode == 0, f"{command}:\n{done.stdout}"
        return
    assert words[0] in {"python", "pytest", "dsp"}, f"who runs {command!r}?"
    if words[0] == "python":
        words[0] = sys.executable
    done = execute(words, directory, **variables)
    assert done.returncode == 0, f"{command}:\n{done.stdout}"
    if expected:
        assert matches(expected, done.stdout), f"{command} prints\n{done.stdout}"


def matches(expected: str, found: str) -> bool:
    pattern = re.escape(expected.rstrip()).replace(r"\.\.\.", ".*?")
    return re.fullmatch(pattern, found.rstrip(), re.DOTALL) is not None


def run_page(page: str, directory: Path) -> int:
    """Run the blocks of a page; give how many ran."""
    ran = 0
    output: tuple[int, str] | None = None
    for block in blocks(page):
        assert block.kind in KINDS, f"line {block.line}: {block.kind!r} is not one of {KINDS}"
        previous, output = output, None
        if NOT_RUN.fullmatch(block.before):
            continue
        if block.kind == "python":
            end = block.line + block.text.count("\n") + 1
            output = (end, run_python(block, directory))
            ran += 1
        elif block.kind == "toml":
            (directory / (block.title or "dsp.toml")).write_text(block.text)
        elif block.kind == "console":
            run_console(block, directory)
            ran += 1
        elif block.kind == "text" and previous and block.line - previous[0] <= 2:
            assert matches(block.text, previous[1]), f"line {block.line}: prints\n{previous[1]}"
    return ran


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def hand_written() -> list[Path]:
    return [page for page in pages() if page.parent.name != "api"]


@pytest.mark.parametrize("page", hand_written(), ids=name_of)
def test_what_the_page_shows_works(page: Path, tmp_path: Path) -> None:
    if name_of(page) in TESTED_ELSEWHERE:
        assert (ROOT / TESTED_ELSEWHERE[name_of(page)]).exists()
        return
    run_page(page.read_text(), tmp_path)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert [*broken_links(page)] == []


def test_every_page_can_be_found() -> None:
    assert unreachable_pages() == []


def test_generated_pages_are_fresh() -> None:
    assert stale_pages() == []


def test_the_readme_is_short_and_shows_that_it_works() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) < 120
    assert [block.kind for block in blocks(readme)].count("python") >= 2
    assert {"$ make run", "$ make test"} <= {*readme.splitlines()}


# -- the test of the test ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        "```python\nraise SystemExit(1)\n```",
        "```python\nprint('a')\n```\n\n```text\nb\n```",
        "```python\ndef test_it(world):\n    assert world.seed == 1\n```",
        "```console\n$ dsp no-such-command\n```",
        "```console\n$ dsp --version\ndsp 99\n```",
        "```console\n$ make no-such-target\n```",
        "```console\n$ rm -rf all\n```",
        "```sh\ndsp --version\n```",
        "<!-- not run: -->\n```python\nraise SystemExit(1)\n```",
    ],
)
def test_a_page_that_lies_fails(page: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint('a')\n```\n\n```text\na\n```",
        "```console\n$ dsp --version\ndsp ...\n$ make test\n$ make run ARGS=1\n```",
        '```python title="a.py"\nx = 1\n```\n```python\nimport a\n```',
        "```toml\n[node]\nid = 'a'\n```\n```console\n$ DSP_NODE__ID=b dsp check dsp.toml\n```",
    ],
)
def test_a_page_that_is_right_passes(page: str, tmp_path: Path) -> None:
    assert run_page(page, tmp_path) > 0


def test_a_block_may_be_left_out_for_a_reason(tmp_path: Path) -> None:
    page = "<!-- not run: needs a second machine -->\n```python\nraise SystemExit(1)\n```"
    assert run_page(page, tmp_path) == 0


def test_broken_links_are_seen(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# A `heading`, here\n")
    page = tmp_path / "a.md"
    page.write_text(
        "[ok](b.md) [ok](b.md#a-heading-here) [ok](https://example.org/x) `[no](link)`\n"
        "[bad](c.md) [bad](b.md#no) [bad](../../x.md)\n"
    )
    assert [fault.partition("link to ")[2] for fault in broken_links(page, tmp_path)] == [
        "c.md leads nowhere",
        "b.md#no: no such heading",
        "../../x.md leaves the project",
    ]
    assert anchor("`world.crash`: what it does") == "worldcrash-what-it-does"
