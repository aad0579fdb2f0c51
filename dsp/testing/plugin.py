"""The pytest plug-in: worlds as fixtures, tests over many seeds, failures that can be replayed;
a real Kafka and a local Spark as fixtures.

Loaded by pytest where dsp is installed. A test that takes the fixture ``world`` may be a plain
function, or a coroutine function that then runs inside the world, in virtual time.
"""

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dsp.testing.kafka import BrokerOptions, ExternalBroker, KafkaBroker
    from dsp.testing.world import World

# Nothing of dsp is imported here before a test asks for it: the plug-in is loaded in every pytest
# run of whoever has dsp installed.

TRACE_LINES = 20

_no_kafka = pytest.StashKey[str]()
_NO_KAFKA = "dsp_no_kafka"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the world fixtures."""
    group = parser.getgroup("dsp", "simulated worlds")
    group.addoption(
        "--dsp-seeds",
        type=_count,
        default=None,
        metavar="N",
        help="run each test that takes a world with N seeds, from 0 (default: the test's "
        "dsp_seeds marker, or 1)",
    )
    group.addoption(
        "--dsp-seed",
        type=int,
        default=None,
        metavar="SEED",
        help="run each test that takes a world with this seed only, to replay a failure",
    )


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("must be 1 or more")
    return value


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers", "dsp_seeds(n): run this test in n worlds, with seeds 0 to n - 1"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once per seed."""
    if "world_seed" not in metafunc.fixturenames:
        return
    one: int | None = metafunc.config.getoption("--dsp-seed")
    if one is not None:
        seeds = [one]
    else:
        marker = metafunc.definition.get_closest_marker("dsp_seeds")
        asked: int | None = metafunc.config.getoption("--dsp-seeds")
        seeds = list(range(asked or (marker.args[0] if marker else 1)))
    metafunc.parametrize("world_seed", seeds, ids=[f"seed{seed}" for seed in seeds])


@pytest.fixture
def world(world_seed: int) -> "Iterator[World]":
    """A simulated world with this run's seed; closed after the test."""
    from dsp.testing.world import World

    world = World(world_seed)
    yield world
    world.close()


@pytest.fixture(scope="session")
def kafka_options() -> "BrokerOptions":
    """What ``kafka_broker`` is started with; override it for more listeners or other settings."""
    from dsp.testing.kafka import BrokerOptions

    return BrokerOptions()


@pytest.fixture(scope="session")
def kafka_broker(
    kafka_options: "BrokerOptions", pytestconfig: pytest.Config
) -> "Iterator[KafkaBroker | ExternalBroker]":
    """A real Apache Kafka for the whole test run; tests that take it are skipped without one."""
    from dsp.testing.kafka import KafkaUnavailable, find_broker

    try:
        with find_broker(kafka_options, say=_announce(pytestconfig)) as broker:
            yield broker
    except KafkaUnavailable as error:
        pytestconfig.stash[_no_kafka] = str(error)
        if (told := getattr(pytestconfig, "workeroutput", None)) is not None:
            told[_NO_KAFKA] = str(
                error
            )  # a worker of pytest-xdist: another process has the summary
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(f"CI=true, and there is no Kafka: {error}", pytrace=False)
        pytest.skip(f"no Kafka: {error}")


@pytest.fixture(scope="session")
def spark_options() -> dict[str, str]:
    """Settings of Spark that ``spark_session`` is made with; override it for jars, for example."""
    return {}


@pytest.fixture(scope="session")
def spark_session(spark_options: dict[str, str]) -> "Iterator[SparkSession]":
    """A Spark on two threads of this process, for the whole test run: dsp's stages use it too.

    It takes seconds to start, so tests that share it are best kept in few files. Tests that take it
    are skipped where there is no PySpark or no Java.
    """
    from dsp.errors import MissingExtraError
    from dsp.spark import SparkSettings, SparkUnavailable, hold

    try:
        lease = hold(SparkSettings(master="local[2]", options=spark_options))
    except (MissingExtraError, SparkUnavailable) as error:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(f"CI=true, and there is no Spark: {error}", pytrace=False)
        pytest.skip(f"no Spark: {error}")
    yield lease.session
    lease.release()


def _announce(config: pytest.Config) -> Callable[[str], None]:
    """Give a function that writes to the terminal, past pytest's capturing."""

    def say(line: str) -> None:
        capture = config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            print(f"\n[kafka] {line}", file=sys.stderr, flush=True)

    return say


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ANN401 - of pytest-xdist
    """Take over from a worker of pytest-xdist that it had no Kafka."""
    reason = getattr(node, "workeroutput", {}).get(_NO_KAFKA)
    if reason is not None:
        node.config.stash[_no_kafka] = reason


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say at the end of the run that there was no Kafka: skipped tests are easily overlooked."""
    reason = config.stash.get(_no_kafka, None)
    if reason is not None:
        terminalreporter.section("Kafka")
        terminalreporter.write_line(f"Tests that need Kafka did not run: {reason}", yellow=True)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pycollect_makeitem() -> Generator[None, Any, Any]:
    """Make a plain test out of each coroutine test that takes a world.

    Done as soon as the test is collected (innermost of all wrappers), so that plug-ins which would
    run it on a real loop find nothing to do.
    """
    collected = yield
    for item in collected if isinstance(collected, list) else [collected]:
        if isinstance(item, pytest.Function) and "world" in item.fixturenames:
            test = item.obj
            if inspect.iscoroutinefunction(test):
                item.obj = _inside_world(test)
    return collected


def _inside_world(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**fixtures: Any) -> None:  # noqa: ANN401
        world: World = fixtures["world"]
        world.run(test(**fixtures))

    return run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say how to replay a failure, and what happened last."""
    report = yield
    funcargs: dict[str, Any] = getattr(item, "funcargs", {})
    if report.failed and "world_seed" in funcargs:
        seed = funcargs["world_seed"]
        text = f"seed {seed}; replay: pytest '{item.nodeid}' --dsp-seed {seed}"
        world: World | None = funcargs.get("world")
        if world is not None:
            text += f"\nat {world.now:.6f} virtual seconds; the last that happened:\n"
            text += world.trace.tail(TRACE_LINES)
        report.sections.append(("simulated world", text))
    return report
