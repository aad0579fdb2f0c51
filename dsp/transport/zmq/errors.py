"""From libzmq's errors to ours."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import zmq

from dsp.errors import ConnectError

__all__ = ["map_errors"]

_REMEDIES: Final[dict[int | None, str]] = {
    errno.EADDRINUSE: "it is in use: end the other process, or choose another port (0: any)",
    errno.EADDRNOTAVAIL: "it is not an address of this machine; 0.0.0.0 stands for all of them",
    errno.ENODEV: "it is not an address of this machine; 0.0.0.0 stands for all of them",
    errno.EACCES: "permission denied: choose a port above 1023, or a directory of this user",
    errno.ENOENT: "its directory does not exist: make it first",
    errno.ENOTDIR: "its directory does not exist: make it first",
    errno.EMFILE: "too many open files or sockets: raise the limit of the process (ulimit -n)",
}


@contextmanager
def map_errors(doing: str) -> Iterator[None]:
    """Turn what libzmq and the operating system raise into ``ConnectError``.

    Args:
        doing: what is tried, with the address; begins the message.
    """
    try:
        yield
    except (zmq.ZMQError, OSError, UnicodeError) as error:
        if isinstance(error, TimeoutError):
            remedy = "no answer within the connect_timeout"
        else:
            remedy = _REMEDIES.get(getattr(error, "errno", None), str(error))
        raise ConnectError(f"{doing}: {remedy}") from error
