"""``kafka://`` passes the contract, on a real broker, plain and secured."""

from dsp.testing.contract import TransportContract
from dsp.testing.contract.processes import ProcessContract
from tests.contract.kafka_contract import KafkaHarness, SecuredKafkaHarness
from tests.contract.sessions import Sessions


class TestKafka(KafkaHarness, TransportContract):
    pass


class TestSessionOverKafka(Sessions, KafkaHarness, TransportContract):
    pass


class TestSessionOverKafkaProcesses(Sessions, KafkaHarness, ProcessContract):
    patience = 30.0
    kills = 2
    stops = 1


class TestKafkaProcesses(KafkaHarness, ProcessContract):
    patience = 30.0


class TestSecuredKafka(SecuredKafkaHarness, TransportContract):
    pass


class TestSecuredKafkaProcesses(SecuredKafkaHarness, ProcessContract):
    kills = 1
    stops = 1
