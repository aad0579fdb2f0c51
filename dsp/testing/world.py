"""Whole applications in a simulated network and in virtual time.

A ``World`` owns an event loop whose time is virtual and a network whose every loss, delay and
duplicate follows from one seed. Hosts run ordinary asyncio code over ``sim://`` transports; the
test crashes, restarts, partitions and delays them. The same seed gives the same trace.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from types import TracebackType
from typing import Any, Self, TypeVar

from dsp.core.randomness import derive_random
from dsp.errors import SimulationError
from dsp.testing.host import CURRENT_HOST, Host, HostMain, Life
from dsp.transport.sim.conditions import LinkConditions, Rule
from dsp.transport.sim.network import SimNetwork
from dsp.transport.sim.trace import Trace
from dsp.transport.sim.virtual_time import VirtualTimeLoop

__all__ = ["World"]

T = TypeVar("T")

DEFAULT_LIMIT = 3600.0


class World:
    """A deterministic world of hosts.

    Use it as a context manager, or through the pytest fixture ``world``. Methods that take two
    places accept a host's name or several names: ``world.partition("a", ["b", "c"])``.

    Args:
        seed: decides everything that is random in the world.
        conditions: of every link that has none of its own.
    """

    def __init__(self, seed: int = 0, conditions: LinkConditions | None = None) -> None:
        self.seed = seed
        self.network = SimNetwork(seed, conditions)
        self.hosts: dict[str, Host] = {}
        self._loop = VirtualTimeLoop(after_step=self._after_step)
        self._loop.set_task_factory(self._make_task)
        self._loop.set_exception_handler(self._unhandled)
        self.network.serve(self._loop)
        self._lives: list[Life] = []
        self._failures: list[BaseException] = []
        self._oracles: list[Callable[[], None]] = []
        self._watchers: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._closed = False

    # -- time -----------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Virtual seconds since the world began."""
        return self._loop.time()

    @property
    def trace(self) -> Trace:
        """What happened on the network and to the hosts, in order."""
        return self.network.trace

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end while the world goes on around it.

        Raises:
            StalledError: nothing can ever happen again.
            SimulationError: the program touched the real world, or left tasks behind.
            Exception: what a host's main or an oracle raised, at the step where it did.
        """
        return self._loop.run_until_complete(main)

    def run_for(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.run(asyncio.sleep(seconds))

    def run_until(self, condition: Callable[[], bool], *, limit: float = DEFAULT_LIMIT) -> None:
        """Let the world run until a condition holds; it is looked at after every step.

        Raises:
            TimeoutError: it does not hold after ``limit`` virtual seconds.
        """
        self.run(self.until(condition, limit=limit))

    async def until(self, condition: Callable[[], bool], *, limit: float = DEFAULT_LIMIT) -> None:
        """Like ``run_until``, from a coroutine inside the world."""
        if condition():
            return
        reached = self._loop.create_future()
        watcher = (condition, reached)
        self._watchers.append(watcher)
        try:
            async with asyncio.timeout(limit):
                await reached
        except TimeoutError:
            raise TimeoutError(
                f"seed {self.seed}: the condition did not hold within {limit:g} virtual seconds "
                f"(now {self.now:.6f}). Hosts: {', '.join(map(repr, self.hosts.values()))}"
            ) from None
        finally:
            self._watchers.remove(watcher)

    def oracle(self, check: Callable[[], None]) -> None:
        """Call a function after every step; what it raises ends the run at that step."""
        self._oracles.append(check)

    def random(self, *labels: str | int) -> Random:
        """Give seeded randomness of its own to the part of a test that the labels name."""
        return derive_random(self.seed, "test", *labels)

    # -- hosts ----------------------------------------------------------------------------

    def add_host(self, name: str, main: HostMain) -> Host:
        """Add a host and start it.

        Args:
            name: unique; also the id of its endpoint.
            main: a coroutine function that takes the ``Host``; it is the process's main program
                and is called again at each restart.
        """
        if name in self.hosts:
            raise SimulationError(f"there is a host {name!r} already; restart it or take another")
        host = self.hosts[name] = Host(self, name, main)
        self._start(host)
        return host

    def crash(self, name: str, *, silent: bool = False) -> None:
        """End a host as a crash would: nothing it does from now on reaches anyone.

        Its endpoint is gone at once and its tasks are cancelled; their ``finally`` blocks run, but
        they cannot send. Peers get a ``PeerDown`` unless ``silent`` (as when power fails).
        """
        host = self._running(name)
        life = host._life
        assert life is not None
        life.ended = True
        life.main = None
        self.network.note("crash", f"{name} #{host.incarnation}{' silent' if silent else ''}")
        self.network.crash(host.name, silent=silent)
        for task in list(life.tasks):
            task.cancel(f"host {name} crashed")

    def restart(self, name: str) -> None:
        """Start a host that crashed or finished, as a new incarnation under the same name."""
        host = self._host(name)
        if host.running:
            raise SimulationError(f"host {name!r} is running; crash it first, or call bounce")
        self._start(host)

    def bounce(self, name: str) -> None:
        """Crash a host and start it again at once."""
        self.crash(name)
        self.restart(name)

    # -- links ----------------------------------------------------------------------------

    def partition(
        self, left: str | Iterable[str], right: str | Iterable[str], *, oneway: bool = False
    ) -> None:
        """Lose every frame from left to right, and back unless ``oneway``."""
        for source, destination in self._pairs(left, right):
            self.network.partition(source, destination, oneway=oneway)

    def repair(
        self, left: str | Iterable[str], right: str | Iterable[str], *, oneway: bool = False
    ) -> None:
        """Undo ``partition``."""
        for source, destination in self._pairs(left, right):
            self.network.repair(source, destination, oneway=oneway)

    def hold(
        self, left: str | Iterable[str], right: str | Iterable[str], *, oneway: bool = False
    ) -> None:
        """Stop frames from left to right on their way, and back unless ``oneway``; lose none."""
        for source, destination in self._pairs(left, right):
            self.network.hold(source, destination, oneway=oneway)

    def release(
        self, left: str | Iterable[str], right: str | Iterable[str], *, oneway: bool = False
    ) -> None:
        """Let go what ``hold`` stopped."""
        for source, destination in self._pairs(left, right):
            self.network.release(source, destination, oneway=oneway)

    def set_conditions(
        self,
        left: str | Iterable[str],
        right: str | Iterable[str],
        conditions: LinkConditions,
        *,
        oneway: bool = False,
    ) -> None:
        """Give links conditions of their own."""
        for source, destination in self._pairs(left, right):
            self.network.set_conditions(source, destination, conditions, oneway=oneway)

    @contextmanager
    def rule(self, rule: Rule) -> Iterator[None]:
        """Let a function decide about every frame while the context lasts."""
        with self.network.rule(rule):
            yield

    # -- the end --------------------------------------------------------------------------

    def close(self) -> None:
        """End every host and the loop.

        Raises:
            SimulationError: a task would not end when it was cancelled.
            Exception: a failure that no ``run`` call has raised yet.
        """
        if self._closed:
            return
        self._closed = True
        for life in self._lives:
            life.ended = True
        try:
            stubborn = self._cancel_everything()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
        if stubborn:
            names = ", ".join(sorted(task.get_name() for task in stubborn))
            self._failures.append(SimulationError(f"tasks that ignore being cancelled: {names}"))
        self._raise_failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is not None:
            self._failures.clear()  # the test's own failure comes first, and they are one story
        self.close()

    # -- inside ---------------------------------------------------------------------------

    def _start(self, host: Host) -> None:
        host.incarnation += 1
        host.result = None
        life = host._life = Life(host, host.incarnation)
        self._lives.append(life)
        self.network.note("start", f"{host.name} #{host.incarnation}")
        context = contextvars.Context()
        context.run(CURRENT_HOST.set, life)
        life.main = self._loop.create_task(
            host._main(host), name=f"{host.name}#{host.incarnation}", context=context
        )
        life.main.add_done_callback(lambda task: self._main_ended(life, task))

    def _main_ended(self, life: Life, task: "asyncio.Task[object]") -> None:
        crashed, life.ended = life.ended, True
        name = f"{life.host.name} #{life.incarnation}"
        if task.cancelled():
            if not crashed:
                self._failures.append(SimulationError(f"main of host {name} was cancelled"))
            return
        error = task.exception()
        if crashed:
            if error is not None:
                self.network.note("unwound", f"{name} {type(error).__name__}")
            return
        if error is not None:
            error.add_note(f"in host {name} at {self.now:.6f} s, seed {self.seed}")
            self._failures.append(error)
            return
        life.host.result = task.result()
        self.network.note("finish", name)
        left = [other.get_name() for other in life.tasks if other is not task]
        if left:
            self._failures.append(
                SimulationError(f"host {name} ended and left tasks running: {', '.join(left)}")
            )

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Any,  # noqa: ANN401 - what asyncio hands to a task factory
        **options: Any,  # noqa: ANN401
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
        context = options.get("context")
        life = context.get(CURRENT_HOST) if context is not None else CURRENT_HOST.get()
        if life is not None:
            life.adopt(task)
            if life.ended:
                task.cancel(f"host {life.host.name} is down")
        return task

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or SimulationError(context["message"])
        error.add_note(f"{context['message']}, at {self.now:.6f} s, seed {self.seed}")
        self._failures.append(error)

    def _after_step(self) -> None:
        if self._closed:
            return  # nothing may interrupt the unwinding; close() raises what is left
        self._raise_failure()
        for check in self._oracles:
            check()
        for condition, reached in self._watchers:
            if not reached.done() and condition():
                reached.set_result(None)

    def _raise_failure(self) -> None:
        if self._failures:
            raise self._failures.pop(0)

    def _cancel_everything(self) -> "set[asyncio.Task[Any]]":
        tasks = asyncio.all_tasks(self._loop)
        for task in sorted(tasks, key=lambda task: task.get_name()):
            task.cancel("the world ends")
        if not tasks:
            return set()
        return self._loop.run_until_complete(asyncio.wait(tasks, timeout=DEFAULT_LIMIT))[1]

    def _host(self, name: str) -> Host:
        if name not in self.hosts:
            raise SimulationError(f"no host {name!r}; there are {', '.join(self.hosts) or 'none'}")
        return self.hosts[name]

    def _running(self, name: str) -> Host:
        host = self._host(name)
        if not host.running:
            raise SimulationError(f"host {name!r} is not running")
        return host

    @staticmethod
    def _pairs(left: str | Iterable[str], right: str | Iterable[str]) -> Iterator[tuple[str, str]]:
        lefts = [left] if isinstance(left, str) else list(left)
        rights = [right] if isinstance(right, str) else list(right)
        for source in lefts:
            for destination in rights:
                if source != destination:
                    yield source, destination
