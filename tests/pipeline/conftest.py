"""One Spark session for the whole run."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipelines.configuration import load_configuration
from pipelines.session import start_session
from pipelines.source.spark_kafka import connector_jars

#: The token provider that goes with Spark 4.2 is not in every repository; without Kerberos any version does.
TOKEN_PROVIDER = "4.0.0"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that every job of the run finds with getOrCreate."""
    settings = {**load_configuration(None).spark, "master": "local[2]", "driver_memory": "1500m"}
    session = start_session(settings, print, connector_jars(TOKEN_PROVIDER, print))
    yield session
    session.stop()
