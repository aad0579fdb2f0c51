"""Every error that dsp raises on purpose.

::

    DspError
      ConfigError (also ValueError)     names file, key and what is allowed
      MissingExtraError (also ImportError)   names the extra to install
      TransportError
        ConnectError*                   the endpoint could not be opened or reached
        PeerUnreachable*                a peer's fault, not ours
        WouldBlock*                     a bounded queue is full
        FrameTooLarge                   over ``Guarantees.max_frame_bytes``
        ClosedError                     we closed the transport ourselves
        BusyError                       a second receiver on one lane
      EndOfStream                       a clean end, not a fault
      CodecError                        undecodable bytes, unknown version
      ProtocolError
        LocalProtocolError              a call that the machine's state does not allow
        RemoteProtocolError             a message that a correct peer never sends
      MutexError
        LeaseLost*                      an entry is over before its holder left
      OverloadError*                    more work than a bounded structure may hold
      SimulationError                   a simulated program touched the real world
        StalledError                    a simulated program can never go on
      InvariantError                    a bug in dsp; never caught inside dsp

``retryable`` (marked * above) says whether the same call may succeed later. Time-outs are the
built-in ``TimeoutError``.
"""

from typing import ClassVar

__all__ = [
    "DspError",
    "ConfigError",
    "MissingExtraError",
    "TransportError",
    "ConnectError",
    "PeerUnreachable",
    "WouldBlock",
    "FrameTooLarge",
    "ClosedError",
    "BusyError",
    "EndOfStream",
    "CodecError",
    "ProtocolError",
    "LocalProtocolError",
    "RemoteProtocolError",
    "MutexError",
    "LeaseLost",
    "OverloadError",
    "SimulationError",
    "StalledError",
    "InvariantError",
]


class DspError(Exception):
    """Base of all errors of this library."""

    retryable: ClassVar[bool] = False


class ConfigError(DspError, ValueError):
    """A setting is wrong. The message has one line per fault: where, what, what is allowed."""


class MissingExtraError(DspError, ImportError):
    """An optional part is not installed.

    Args:
        extra: name of the extra, as in ``pip install 'dsp[extra]'``.
        needed_for: what the caller tried to use.
    """

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs the extra '{extra}': pip install 'dsp[{extra}]'")
        self.extra = extra


class TransportError(DspError):
    """Base of what a transport raises."""


class ConnectError(TransportError):
    """The endpoint could not be opened (address in use, bad host) or reached."""

    retryable = True


class PeerUnreachable(TransportError):
    """A frame cannot go to this peer, by no fault of ours."""

    retryable = True


class WouldBlock(TransportError):
    """``send_nowait`` found the bounded queue to the peer full."""

    retryable = True


class FrameTooLarge(TransportError):
    """A payload is over the transport's ``max_frame_bytes``."""


class ClosedError(TransportError):
    """This transport was closed, or never started, on our side."""


class BusyError(TransportError):
    """Another task already receives on this lane."""


class EndOfStream(DspError):
    """Nothing will come any more: the transport was closed and its inbox is empty."""


class CodecError(DspError):
    """Bytes that cannot be decoded: garbage, truncated, or of another version."""


class ProtocolError(DspError):
    """Base of violations of a protocol."""


class LocalProtocolError(ProtocolError):
    """A local call that the protocol's state does not allow."""


class RemoteProtocolError(ProtocolError):
    """A message that a correct peer never sends in this state."""


class MutexError(DspError):
    """Base of what goes wrong around mutual exclusion."""


class LeaseLost(MutexError):
    """An entry is over before its holder left: its number is superseded, and nothing accepts it.

    Args:
        number: the fencing number of the entry.
        highest: a number of the other group that was seen, 0 if none is known.
        reason: for people.
    """

    retryable = True

    def __init__(self, number: int, highest: int = 0, reason: str = "") -> None:
        seen = f", {highest} was seen" if highest else ""
        super().__init__(f"entry {number} is superseded{seen}" + (f": {reason}" if reason else ""))
        self.number = number
        self.highest = highest


class OverloadError(DspError):
    """A bounded structure would have to grow over its bound."""

    retryable = True


class SimulationError(DspError):
    """A program in a simulated world touched the real one (socket, thread, blocking sleep)."""


class StalledError(SimulationError):
    """Nothing is scheduled and nothing is ready: a simulated program would wait for ever."""


class InvariantError(DspError):
    """Something that must always hold does not: a bug in dsp, with the state that shows it."""
