"""The broker that tests use: one that runs already, or one that is started for them."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dsp.testing.kafka.broker import KafkaBroker, start_broker
from dsp.testing.kafka.settings import BrokerOptions

__all__ = ["ExternalBroker", "find_broker"]

VARIABLE = "DSP_KAFKA_BOOTSTRAP"


@dataclass(frozen=True, slots=True)
class ExternalBroker:
    """A broker that runs already and is not ours to stop.

    Attributes:
        bootstrap: where clients find it: ``host:port,host:port``.
    """

    bootstrap: str


def _print(line: str) -> None:
    print(f"[kafka] {line}", file=sys.stderr, flush=True)


@contextmanager
def find_broker(
    options: BrokerOptions | None = None, *, say: Callable[[str], None] = _print
) -> Iterator[KafkaBroker | ExternalBroker]:
    """Give the broker of ``DSP_KAFKA_BOOTSTRAP``, else start one and end it afterwards.

    Args:
        options: how a broker is started; a broker that runs already is taken as it is.
        say: is told what takes time.

    Raises:
        KafkaUnavailable: none is named, and there is no Java or no Kafka to run.
        KafkaStartError: the broker does not come up.
    """
    if bootstrap := os.environ.get(VARIABLE):
        yield ExternalBroker(bootstrap)
        return
    with start_broker(options, say=say) as broker:
        yield broker
