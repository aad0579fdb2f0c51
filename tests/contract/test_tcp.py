"""The example transport over TCP passes the contract, and is found where it is installed."""

import pytest

from dsp.testing.contract import TransportContract
from dsp.testing.contract.processes import ProcessContract
from tests.contract.tcp_package import TcpHarness

pytestmark = pytest.mark.usefixtures("tcp")


class TestTcp(TcpHarness, TransportContract):
    pass


class TestTcpProcesses(TcpHarness, ProcessContract):
    pass
