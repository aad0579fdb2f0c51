"""Ports for endpoints that must come back under the same address."""

import contextlib
import itertools
import os
import random
import socket

# Below the ports that the system gives to outgoing connections: one of those could take the port
# of an endpoint that a check is about to restart.
_LOWEST_PORT = 10_000
_PORTS_EACH = 2_500
_WORKERS = 8
# Workers of pytest-xdist, called gw0, gw1 and so on, have ports of their own: a port that one of
# them gave away and that nobody listens on yet looks free to the others.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
_NUMBERS = itertools.count(random.Random(os.getpid()).randrange(_PORTS_EACH))


def free_port() -> int:
    """Give a port of 127.0.0.1 that nobody listens on."""
    for number in itertools.islice(_NUMBERS, 1000):
        port = _LOWEST_PORT + _WORKER * _PORTS_EACH + number % _PORTS_EACH
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port among a thousand")
