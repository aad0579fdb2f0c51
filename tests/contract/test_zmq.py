"""The ZeroMQ mesh passes the contract: over TCP and ipc, with CURVE, and with sessions over it."""

import pytest

from dsp.testing.contract import TransportContract
from dsp.testing.contract.processes import ProcessContract
from dsp.testing.contract.sessions import SessionProcessContract
from tests.contract.sessions import Sessions
from tests.contract.zmq_contract import CurveHarness, ZmqHarness, ZmqIpcHarness


class TestZmqTcp(ZmqHarness, TransportContract):
    pass


class TestZmqIpc(ZmqIpcHarness, TransportContract):
    pass


class TestZmqCurve(CurveHarness, TransportContract):
    pass


class TestSessionOverZmq(Sessions, ZmqHarness, TransportContract):
    pass


class TestZmqProcesses(ZmqHarness, ProcessContract):
    # TCP probes a receiver that is stopped a few times a second, and then moves a little more.
    grace = 1.5


class TestZmqIpcProcesses(ZmqIpcHarness, ProcessContract):
    pass


class TestSessionOverZmqProcesses(Sessions, ZmqHarness, ProcessContract):
    grace = 1.5


class TestSessionOverZmqAccount(SessionProcessContract, Sessions, ZmqHarness):
    kills = 5
    stops = 2


class TestSessionOverIpcAccount(SessionProcessContract, Sessions, ZmqIpcHarness):
    kills = 2
    stops = 1


@pytest.mark.soak
class TestSessionOverZmqAccountForLong(SessionProcessContract, Sessions, ZmqHarness):
    kills = 50
    stops = 20
