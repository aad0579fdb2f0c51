"""Real Apache Kafka for tests: with nothing but Python on the machine.

The pytest plug-in of dsp has the fixture ``kafka_broker``, one broker for the whole test run: the
one that ``DSP_KAFKA_BOOTSTRAP`` names, else one that is started from Kafka's own jars. Override the
fixture ``kafka_options`` to give it more listeners or other settings. ``start_broker`` and
``start_cluster`` give brokers of your own, to stop, kill and restart.
"""

from dsp.cache import cache_folder
from dsp.testing.kafka.broker import KafkaBroker, start_broker, start_cluster
from dsp.testing.kafka.errors import KafkaStartError, KafkaUnavailable
from dsp.testing.kafka.find import ExternalBroker, find_broker
from dsp.testing.kafka.jars import KAFKA_VERSION
from dsp.testing.kafka.java import find_java
from dsp.testing.kafka.settings import BrokerOptions, Listener

__all__ = [
    "KafkaBroker",
    "start_broker",
    "start_cluster",
    "find_broker",
    "ExternalBroker",
    "BrokerOptions",
    "Listener",
    "KafkaUnavailable",
    "KafkaStartError",
    "KAFKA_VERSION",
    "cache_folder",
    "find_java",
]
