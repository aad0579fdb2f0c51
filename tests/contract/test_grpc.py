"""gRPC passes the contract, in plaintext and over mutual TLS."""

from dsp.testing.contract import TransportContract
from dsp.testing.contract.processes import ProcessContract
from dsp.testing.contract.sessions import SessionProcessContract
from dsp.transport.base import Transport
from tests.contract.cutting import SessionCuts
from tests.contract.grpc_harness import GrpcHarness, GrpcsHarness, host_and_port
from tests.contract.sessions import Sessions


class TestGrpc(GrpcHarness, TransportContract):
    pass


class TestGrpcProcesses(GrpcHarness, ProcessContract):
    pass


class TestSessionOverGrpc(Sessions, GrpcHarness, TransportContract):
    cancel_steps = range(0, 50, 2)


class TestSessionOverGrpcProcesses(Sessions, GrpcHarness, ProcessContract):
    pass


class TestSessionOverGrpcAccount(SessionProcessContract, Sessions, GrpcHarness):
    kills = 3
    stops = 1


class TestGrpcCuts(SessionCuts, GrpcHarness):
    def dialled(self, a: Transport, b: Transport) -> list[int]:
        return [host_and_port(end)[1] for end in (a, b)]


class TestGrpcsCuts(TestGrpcCuts, GrpcsHarness):
    cuts = 3


class TestGrpcs(GrpcsHarness, TransportContract):
    peers_at_once = 30  # TestGrpc has more of them


class TestGrpcsProcesses(GrpcsHarness, ProcessContract):
    pass
