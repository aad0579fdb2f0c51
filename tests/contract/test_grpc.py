"""gRPC passes the contract, in plaintext and over mutual TLS."""

from dsp.testing.contract import TransportContract
from dsp.testing.contract.processes import ProcessContract
from tests.contract.grpc_harness import GrpcHarness, GrpcsHarness
from tests.contract.sessions import Sessions


class TestGrpc(GrpcHarness, TransportContract):
    pass


class TestGrpcProcesses(GrpcHarness, ProcessContract):
    pass


class TestSessionOverGrpc(Sessions, GrpcHarness, TransportContract):
    pass


class TestSessionOverGrpcProcesses(Sessions, GrpcHarness, ProcessContract):
    pass


class TestGrpcs(GrpcsHarness, TransportContract):
    pass


class TestGrpcsProcesses(GrpcsHarness, ProcessContract):
    pass
