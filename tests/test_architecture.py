"""The shape of the house: who may import whom, what is pure, how long a file may be.

The layers are contracts of import-linter in pyproject.toml and are run here too. What machines may
import is checked file by file, since it depends on the kind of file and not on its package.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_LINES = 400

# What would make the outcome of a step depend on more than state, event and time.
IMPURE = {
    "asyncio",
    "concurrent",
    "datetime",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "selectors",
    "socket",
    "subprocess",
    "sys",
    "threading",
    "time",
    "uuid",
}
PURE_KINDS = ("machine*.py", "*_machine.py", "events*.py", "sketch*.py")
# Machines that are called after their algorithm.
NAMED_MACHINES = [
    f"dsp/mutex/{name}.py"
    for name in ("two_fgme", "published", "ra1", "ra2", "arbiter_token", "member", "chain")
]
PURE_FILES = [
    "dsp/mutex/fence.py",
    "dsp/core/types.py",
    "dsp/core/machine.py",
    "dsp/core/randomness.py",
    "dsp/core/envelope.py",
    "dsp/testing/explorer/actions.py",
    "dsp/testing/explorer/canonical.py",
    "dsp/testing/explorer/components.py",
    "dsp/testing/explorer/digest.py",
    "dsp/testing/explorer/model.py",
    "dsp/testing/explorer/script.py",
    "dsp/testing/explorer/transition.py",
    "dsp/testing/explorer/view.py",
]
# Of dsp, a machine knows these, and files beside it, which then are held to the same rules.
MACHINES_KNOW = {"dsp.core.types", "dsp.core.machine", "dsp.core.randomness", "dsp.errors"}
SHELL_FILES = {"wire", "service"}


def kind_of(path: Path) -> bool:
    return any(path.match(kind) for kind in PURE_KINDS)


def machine_files() -> list[Path]:
    """Give the machines and all files beside them that they are made of."""
    found: set[Path] = set()
    new = {path for path in (ROOT / "dsp").rglob("*.py") if kind_of(path)}
    new |= {ROOT / name for name in NAMED_MACHINES}
    while new:
        found |= new
        new = {beside for path in new for beside in files_beside(path)} - found
    return sorted(found)


def files_beside(path: Path) -> Iterator[Path]:
    """Give the files of its own package that a file imports."""
    package = ".".join(path.relative_to(ROOT).parent.parts)
    for _, module, _ in imports(path.read_text()):
        home, _, name = module.rpartition(".")
        if home == package and module not in MACHINES_KNOW and name not in SHELL_FILES:
            yield path.with_name(f"{name}.py")


def pure_files() -> list[Path]:
    return sorted({*machine_files(), *(ROOT / name for name in PURE_FILES)})


def imports(source: str) -> Iterator[tuple[int, str, str | None]]:
    """Give line, module and imported name of every import, wherever it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, module, alias.name) for alias in node.names)


def impurities(source: str) -> list[str]:
    found = []
    for line, module, name in imports(source):
        top = module.partition(".")[0]
        # The class alone: a generator is handed in with its seed, the module's own has none.
        if top in IMPURE and (module, name) != ("random", "Random"):
            found.append(f"line {line}: {module}" + (f".{name}" if name else ""))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in {"hash", "id", "input", "open", "print", "__import__"}:
                found.append(f"line {node.lineno}: {node.func.id}()")
        elif isinstance(node, ast.AsyncFunctionDef | ast.Await):
            found.append(f"line {node.lineno}: coroutine")
    return found


def foreign(source: str, package: str) -> list[str]:
    """List what a machine imports of dsp and must not."""
    found = []
    for line, module, name in imports(source):
        if module.startswith("."):
            found.append(f"line {line}: relative import")
        elif module == "dsp" or module.startswith("dsp."):
            home, _, last = module.rpartition(".")
            beside = home == package and last not in SHELL_FILES
            if module not in MACHINES_KNOW and not beside:
                found.append(f"line {line}: {module}" + (f".{name}" if name else ""))
    return found


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", pure_files(), ids=relative)
def test_pure_files_touch_nothing_outside(path: Path) -> None:
    assert impurities(path.read_text()) == []


@pytest.mark.parametrize("path", machine_files(), ids=relative)
def test_machines_know_core_only(path: Path) -> None:
    package = ".".join(path.relative_to(ROOT).parent.parts)
    assert foreign(path.read_text(), package) == []


@pytest.mark.parametrize(
    ("source", "pure"),
    [
        ("from random import Random", True),
        ("import hashlib, heapq, math", True),
        ("import random", False),
        ("from random import choice", False),
        ("import os.path", False),
        ("from asyncio import Event", False),
        ("def f():\n    import time", False),
        ("if TYPE_CHECKING:\n    import socket", False),
        ("async def f(): ...", False),
        ("order = hash(name)", False),
        ("print(state)", False),
    ],
)
def test_the_purity_check_sees(source: str, pure: bool) -> None:
    assert (impurities(source) == []) is pure


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("from dsp.core.machine import Send", True),
        ("from dsp.mutex.events import Grant", True),
        ("from dsp.mutex.machine_ra1 import Ra1", True),
        ("from dsp.mutex.groups import Group", True),
        ("from dsp.mutex.wire import encode", False),
        ("from dsp.mutex.service import Mutex", False),
        ("from dsp.scaling.events import Grant", False),
        ("from dsp.transport.base import Transport", False),
        ("from dsp import Transport", False),
        ("from .events import Grant", False),
        ("import dsp.core.driver", False),
    ],
)
def test_the_machine_check_sees(source: str, allowed: bool) -> None:
    assert (foreign(source, "dsp.mutex") == []) is allowed


def own_files() -> list[Path]:
    folders = ["dsp", "tests", "examples", "bench", "tools"]
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in paths if "_pb" not in path.parts)


def test_no_file_is_too_long() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in own_files()}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_import_contracts_are_kept() -> None:
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", lint, "--no-logo", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
