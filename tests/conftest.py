"""For all tests: a broker that has listeners of every kind, and examples without a time limit."""

import pytest
from hypothesis import HealthCheck, settings

from dsp.testing.kafka import BrokerOptions
from tests.kafka_security import Secrets, make_secrets, secured_options

# How long an example takes depends on what else the machine does.
settings.register_profile("dsp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dsp")


@pytest.fixture(scope="session")
def kafka_secrets(tmp_path_factory: pytest.TempPathFactory) -> Secrets:
    """Certificates and passwords, made for this run."""
    return make_secrets(tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="session")
def kafka_options(kafka_secrets: Secrets) -> BrokerOptions:
    """Start the shared broker with them."""
    return secured_options(kafka_secrets)
