"""No transport is registered without its contract: the test classes are named here, one by one."""

import importlib
from collections.abc import Iterable, Mapping

import pytest

from dsp.testing.contract import TransportContract
from dsp.testing.contract.processes import ProcessContract
from dsp.transport.registry import known_schemes

CONTRACTS = {
    "sim": "tests.contract.test_sim:TestSim",
    "zmq": "tests.contract.test_zmq:TestZmqTcp",
    "zmq+tcp": "tests.contract.test_zmq:TestZmqTcp",
    "zmq+ipc": "tests.contract.test_zmq:TestZmqIpc",
    "grpc": "tests.contract.test_grpc:TestGrpc",
    "grpcs": "tests.contract.test_grpc:TestGrpcs",
    "kafka": "tests.contract.test_kafka:TestKafka",
    "tcp": "tests.contract.test_tcp:TestTcp",
}

PROCESS_CONTRACTS = {
    "zmq": "tests.contract.test_zmq:TestZmqProcesses",
    "zmq+tcp": "tests.contract.test_zmq:TestZmqProcesses",
    "zmq+ipc": "tests.contract.test_zmq:TestZmqIpcProcesses",
    "grpc": "tests.contract.test_grpc:TestGrpcProcesses",
    "grpcs": "tests.contract.test_grpc:TestGrpcsProcesses",
    "kafka": "tests.contract.test_kafka:TestKafkaProcesses",
    "tcp": "tests.contract.test_tcp:TestTcpProcesses",
}

ONE_PROCESS_ONLY = {"sim"}
"""Transports whose endpoints cannot be in different processes."""


def faults(
    schemes: Iterable[str], contracts: Mapping[str, str], processes: Mapping[str, str]
) -> list[str]:
    """Say what is missing for these schemes."""
    found: list[str] = []
    for scheme in schemes:
        found += _faults(scheme, contracts.get(scheme), TransportContract)
        if scheme not in ONE_PROCESS_ONLY:
            found += _faults(scheme, processes.get(scheme), ProcessContract)
    return found


def _faults(scheme: str, target: str | None, base: type) -> list[str]:
    if target is None:
        return [f"{scheme}:// has no test class that derives from {base.__name__}"]
    module_name, _, class_name = target.partition(":")
    cls = getattr(importlib.import_module(module_name), class_name, None)
    if not (isinstance(cls, type) and issubclass(cls, base)):
        return [f"{scheme}:// is to be tested by {target}, which is no {base.__name__}"]
    if not class_name.startswith("Test") or not module_name.rpartition(".")[2].startswith("test_"):
        return [f"{scheme}:// is to be tested by {target}, which pytest does not collect"]
    own = [name for name in vars(cls) if name.startswith("test_") and hasattr(base, name)]
    return [f"{scheme}://: {target} replaces {name} of the contract" for name in own]


@pytest.mark.usefixtures("tcp")
def test_every_registered_transport_has_a_contract() -> None:
    assert set(known_schemes()) >= {"sim", "kafka", "tcp"}
    assert faults(known_schemes(), CONTRACTS, PROCESS_CONTRACTS) == []


def test_a_missing_contract_is_found() -> None:
    """The check above fails when it must."""
    schemes = ["sim", "tcp", "udp"]
    assert faults(schemes, CONTRACTS, PROCESS_CONTRACTS) == [
        "udp:// has no test class that derives from TransportContract",
        "udp:// has no test class that derives from ProcessContract",
    ]
    assert faults(["tcp"], CONTRACTS, {}) != []
    assert faults(["sim"], {"sim": "tests.contract.test_tcp:TestNothing"}, {}) != []
    assert faults(["sim"], {"sim": "tests.contract.sim_contract:SimContract"}, {}) != []
    assert faults(["sim"], {"sim": PROCESS_CONTRACTS["tcp"]}, {}) != []
