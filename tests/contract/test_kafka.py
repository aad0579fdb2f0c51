"""``kafka://`` passes the contract, on a real broker, plain and secured."""

from dsp.testing.contract import TransportContract
from dsp.testing.contract.processes import ProcessContract
from dsp.testing.contract.sessions import SessionProcessContract
from dsp.transport.base import Transport
from tests.contract.cutting import SessionCuts
from tests.contract.kafka_contract import KafkaHarness, SecuredKafkaHarness
from tests.contract.sessions import Sessions


class TestKafka(KafkaHarness, TransportContract):
    pass


class TestSessionOverKafka(Sessions, KafkaHarness, TransportContract):
    peers_at_once = 20  # TestKafka has more of them


class TestSessionOverKafkaProcesses(Sessions, KafkaHarness, ProcessContract):
    patience = 30.0
    kills = 2
    stops = 1


class TestSessionOverKafkaAccount(SessionProcessContract, Sessions, KafkaHarness):
    patience = 30.0
    kills = 2
    stops = 1


class TestKafkaCuts(SessionCuts, KafkaHarness):
    def dialled(self, a: Transport, b: Transport) -> list[int]:
        return [int(host.rpartition(":")[2]) for host in self.broker.bootstrap.split(",")]


class TestKafkaProcesses(KafkaHarness, ProcessContract):
    patience = 30.0


class TestSecuredKafka(SecuredKafkaHarness, TransportContract):
    pass


class TestSecuredKafkaProcesses(SecuredKafkaHarness, ProcessContract):
    kills = 1
    stops = 1
