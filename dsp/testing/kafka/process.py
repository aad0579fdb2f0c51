"""A broker's process: started, tied to the life of its tests, and asked whether it is ready."""

import contextlib
import itertools
import os
import random
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from dsp.testing.kafka.errors import KafkaStartError

__all__ = ["BrokerProcess", "free_ports", "answers"]

_LOWEST_PORT = 10_000
_LOG_LINES = 40
_API_VERSIONS = 18
_PRODUCE = 0


class BrokerProcess:
    """A Java process that ends with the process that started it, whatever ends that one.

    Args:
        command: program and arguments.
        log: file that takes what it prints, after what is there.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        # If we die, even by SIGKILL, our end of the pipe closes and the guard ends the broker. A
        # death signal (prctl) would come when the *thread* ends that started it.
        self._guard = subprocess.Popen(
            ["sh", "-c", 'cat >/dev/null; kill -KILL "$1"', "guard", str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is for the tests
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Give the exit code, or None while it runs."""
        return self._process.poll()

    def end(self, *, kill: bool, patience: float) -> None:
        """End it (SIGTERM, or SIGKILL) and wait for that. Safe to repeat."""
        if self._process.poll() is None:
            if kill:
                self._process.kill()
            else:
                self._process.terminate()
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        # Only now: the id is ours for as long as we have not waited for it.
        self._guard.kill()
        self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()

    def wait_for_answer(self, port: int, patience: float) -> None:
        """Wait until the broker serves producers.

        Raises:
            KafkaStartError: it ended, or did not get there in time.
        """
        until = time.monotonic() + patience
        while not answers(port):
            if self._process.poll() is not None:
                raise KafkaStartError(
                    f"the broker ended with exit code {self._process.returncode}; its log ends:\n"
                    f"{tail(self._log)}"
                )
            if time.monotonic() > until:
                raise KafkaStartError(
                    f"no answer from the broker within {patience} s; its log ends:\n"
                    f"{tail(self._log)}"
                )
            time.sleep(0.05)


def answers(port: int) -> bool:
    """Tell whether a broker on a plain port of this machine serves producers."""
    # A controller answers too: ready means that requests to produce are among what is offered.
    request = struct.pack("!hhih", _API_VERSIONS, 0, 1, -1)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(struct.pack("!i", len(request)) + request)
            with connection.makefile("rb") as stream:
                (size,) = struct.unpack("!i", stream.read(4))
                answer = stream.read(size)
        _, error, count = struct.unpack_from("!ihi", answer)
    except (OSError, struct.error):
        return False
    keys = {struct.unpack_from("!h", answer, 10 + 6 * index)[0] for index in range(count)}
    return error == 0 and _PRODUCE in keys


def free_ports(count: int) -> list[int]:
    """Give ports of 127.0.0.1 that nobody listens on, below those of outgoing connections.

    One of those could take the port of a broker that is about to be restarted.
    """
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        highest = max(int(file.read().split()[0]), _LOWEST_PORT + 2000)
    start = random.Random(f"{os.getpid()} {time.time_ns()}").randrange(_LOWEST_PORT, highest)
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        for offset in itertools.count():
            port = _LOWEST_PORT + (start + offset - _LOWEST_PORT) % (highest - _LOWEST_PORT)
            if offset > highest - _LOWEST_PORT:
                raise KafkaStartError(f"no {count} free ports below {highest}")
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
            if len(found) == count:
                return found
    raise AssertionError("the loop ends by a return or an error")


def tail(log: Path) -> str:
    """Give the last lines of a log."""
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
