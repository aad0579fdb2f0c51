"""Fixtures for all tests: the broker that they share has listeners of every kind."""

import pytest

from dsp.testing.kafka import BrokerOptions
from tests.kafka_security import Secrets, make_secrets, secured_options


@pytest.fixture(scope="session")
def kafka_secrets(tmp_path_factory: pytest.TempPathFactory) -> Secrets:
    """Certificates and passwords, made for this run."""
    return make_secrets(tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="session")
def kafka_options(kafka_secrets: Secrets) -> BrokerOptions:
    """Start the shared broker with them."""
    return secured_options(kafka_secrets)
