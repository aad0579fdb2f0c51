"""One Spark for all of these tests, with all that any of them needs: Java starts once."""

import os

import pytest

from dsp.errors import MissingExtraError
from dsp.spark import SparkUnavailable
from dsp.spark.graph_topics import connector_jars
from dsp.spark.java import check_pyspark

# Each Java runs for a minute at most: what a second compiler makes of its code does not pay.
# Drivers that are started by tests take this from the environment.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

NO_CONNECTOR = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def spark_options(pytestconfig: pytest.Config) -> dict[str, str]:
    """With Spark's Kafka connector, if that can be had: Java loads jars when it starts."""
    try:
        check_pyspark()
        return {"spark.jars": ",".join(connector_jars())}
    except (MissingExtraError, SparkUnavailable) as error:
        pytestconfig.stash[NO_CONNECTOR] = str(error)
        return {}


@pytest.fixture
def spark_connector(spark_options: dict[str, str], pytestconfig: pytest.Config) -> None:
    """For tests that need the connector."""
    if (reason := pytestconfig.stash.get(NO_CONNECTOR, None)) is not None:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(f"CI=true, and there is no Kafka connector: {reason}", pytrace=False)
        pytest.skip(f"no Kafka connector of Spark: {reason}")
