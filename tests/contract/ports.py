"""Ports for endpoints that must come back under the same address."""

import contextlib
import itertools
import os
import random
import socket

# Below the ports that the system gives to outgoing connections: one of those could take the port
# of an endpoint that a check is about to restart.
_LOWEST_PORT = 10_000
_PORTS = itertools.count(random.Random(os.getpid()).randrange(_LOWEST_PORT, 30_000))


def free_port() -> int:
    """Give a port of 127.0.0.1 that nobody listens on."""
    for number in itertools.islice(_PORTS, 1000):
        port = _LOWEST_PORT + number % 20_000
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port among a thousand")
