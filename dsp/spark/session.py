"""The one Spark of a process: made when first needed, shared, and stopped by the last to let go.

A session that the user made is used as it is and stays when all have let go of it.
"""

import atexit
import logging
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dsp.spark.address import Address, parse, probe
from dsp.spark.errors import JobFailed, SparkConflict, SparkUnreachable
from dsp.spark.java import prepare
from dsp.spark.package import executor_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Lease", "SparkSettings", "hold"]

logger = logging.getLogger(__name__)

DEFAULT_MASTER: Final = "local[*]"

# What a session of ours has, where the user does not say otherwise.
_OPTIONS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What is kept of past jobs for the web pages: a stage has thousands of them.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Python workers are asked over a socket of the file system: a third of the time of TCP.
    "spark.python.unix.domain.socket.enabled": "true",
}


@dataclass(frozen=True)
class SparkSettings:
    """Which Spark, and how it is set.

    Attributes:
        master: ``local[n]``, ``spark://host:port`` or ``sc://host:port`` (Spark Connect). None: the
            session that this process has, else that of ``SPARK_REMOTE``, else ``local[*]``.
        options: settings of Spark, for a session that dsp makes.
        packages: ``.py`` and ``.zip`` files that executors elsewhere need; dsp itself is sent too.
        connect_timeout: seconds in which a master or a Connect server has to answer.
    """

    master: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    connect_timeout: float = 5.0

    @property
    def address(self) -> Address:
        """The address of the master, if nobody made a session before.

        Raises:
            ConfigError: it is none that Spark knows.
        """
        return parse(self.master or os.environ.get("SPARK_REMOTE") or DEFAULT_MASTER)


class Lease:
    """A hold on the Spark of this process. Safe to use from several threads.

    Attributes:
        session: for all who hold it.
        address: where it is.
    """

    def __init__(self, session: "SparkSession", address: Address) -> None:
        self.session = session
        self.address = address
        self._released = False

    @property
    def alive(self) -> bool:
        """Whether the session can still run jobs, as far as is known here."""
        return _alive(self.session, self.address)

    def release(self) -> None:
        """Let go; the last one stops a session that dsp made. Safe to repeat."""
        with _lock:
            if not self._released:
                self._released = True
                _let_go(self.session)


_lock = threading.RLock()
_session: "SparkSession | None" = None
_address: Address | None = None
_ours = False
_holders = 0


def hold(settings: SparkSettings | None = None) -> Lease:
    """Give the Spark of this process; make it if there is none. Blocks for seconds then.

    Args:
        settings: which one is wanted, and how it is set if it has to be made.

    Raises:
        ConfigError: the address of the master is none.
        SparkConflict: this process holds another Spark.
        SparkUnreachable: nobody is there.
        SparkUnavailable: PySpark or Java is missing or of a wrong version.
        MissingExtraError: PySpark is not installed.
    """
    global _session, _address, _ours, _holders
    settings = settings or SparkSettings()
    with _lock:
        if _session is not None and _address is not None and not _alive(_session, _address):
            _forget()
        if _session is None:
            _session, _address, _ours = _found_or_made(settings)
        assert _address is not None
        if settings.master is not None and not _same(settings.address, _address):
            raise SparkConflict(
                f"master {settings.master!r} is asked for, and this process has a Spark session "
                f"on {_address.text!r}: a process holds one. Stop that one, name the same master "
                "everywhere, or leave it out"
            )
        _holders += 1
        return Lease(_session, _address)


def _found_or_made(settings: SparkSettings) -> "tuple[SparkSession, Address, bool]":
    if (found := _found()) is not None:
        return *found, False
    address = settings.address
    probe(address, settings.connect_timeout)
    prepare(java=not address.connect)
    session = _connected(settings, address) if address.connect else _started(settings, address)
    return session, address, True


def _found() -> "tuple[SparkSession, Address] | None":
    """Find a session that somebody else made in this process."""
    if sys.modules.get("pyspark") is None:
        return None
    if remote := sys.modules.get("pyspark.sql.connect.session"):
        session = remote.SparkSession.getActiveSession()
        if session is not None and not session.is_stopped:
            return session, parse(os.environ.get("SPARK_REMOTE") or _url_of(session))
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # There is no public way to ask for it without making one.
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return None
    return SparkSession(context), parse(str(context.master))


def _url_of(session: Any) -> str:  # noqa: ANN401 - a session of Spark Connect
    return f"sc://{session.client.host}"


def _started(settings: SparkSettings, address: Address) -> "SparkSession":
    from pyspark.sql import SparkSession

    options = dict(_OPTIONS)
    if address.local or address.loopback:
        # Or Spark looks up the name of the machine, and may be heard from outside.
        options |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if address.local:
        options["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    builder = SparkSession.builder.master(address.text).appName("dsp")
    for key, value in (options | dict(settings.options)).items():
        builder = builder.config(key, value)
    # Spark logs each failing query with its stack; here it goes to the dead letters.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # what the driver raises depends on what failed, with no base
        raise SparkUnreachable(f"no Spark session on {address.text}: {error}") from error
    if not address.local:
        for package in (str(executor_package()), *settings.packages):
            session.sparkContext.addPyFile(package)
    atexit.register(_stop_at_exit, session)
    return session


def _connected(settings: SparkSettings, address: Address) -> "SparkSession":
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # functions of pyspark.sql are its then
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as Remote

    session: Any = Remote.builder.remote(address.text).create()
    # The default tries for ten minutes; a batch that fails is tried again by the engine.
    session.client.set_retry_policies([DefaultPolicy(max_retries=3)])
    try:
        options = {k: v for k, v in _OPTIONS.items() if k == "spark.sql.session.timeZone"}
        for key, value in (options | dict(settings.options)).items():
            session.conf.set(key, value)
        for package in (str(executor_package()), *settings.packages):
            session.addArtifacts(package, pyfile=True)
    except Exception as error:  # grpc.RpcError and Spark's own have no base in common
        session.stop()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
        probe(address, settings.connect_timeout)  # it may have gone just now
        told = error.details() if hasattr(error, "details") else error
        raise SparkUnreachable(
            f"no Spark session on {address.text}: {told}. Is it a Spark Connect server?"
        ) from error
    return session  # type: ignore[no-any-return]


def _same(wanted: Address, held: Address) -> bool:
    return wanted == held or (bool(wanted.ends) and {*wanted.ends} == {*held.ends})


def _alive(session: Any, address: Address) -> bool:  # noqa: ANN401 - of either kind
    if address.connect:
        return not session.is_stopped
    context = session.sparkContext
    if context._jsc is None:
        return False
    try:
        return not context._jsc.sc().isStopped()
    except Exception:  # py4j raises what the socket raised: the driver is gone
        logger.warning("the Spark driver on %s is gone", address.text)
        return False


def _let_go(session: "SparkSession") -> None:
    global _holders
    if session is not _session:
        return  # it was lost meanwhile, and another one has taken its place
    _holders -= 1
    if not _holders:
        own = _ours
        _forget()
        if own:
            _stop(session)


def _forget() -> None:
    global _session, _address, _ours, _holders
    _session, _address, _ours, _holders = None, None, False, 0


def _stop(session: Any) -> None:  # noqa: ANN401 - of either kind
    atexit.unregister(_stop_at_exit)
    try:
        session.stop()
    except Exception as error:
        raise JobFailed(f"the Spark session does not stop: {error}") from error
    finally:
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


def _stop_at_exit(session: Any) -> None:  # noqa: ANN401
    session.stop()
