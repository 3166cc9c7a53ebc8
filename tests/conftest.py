"""Hypothesis profiles: `deterministic` for every run, `exhaustive` (HYPOTHESIS_PROFILE=exhaustive) to search further.

And the one Spark session of a run.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "deterministic", derandomize=True, database=None, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("exhaustive", max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_CORE = Path(__file__).parents[1] / "coordinator_core"


def _forget_stale_kernels() -> None:
    """Numba looks for changes only in the file of the compiled function, not in those of the functions that it calls."""
    newest = max(path.stat().st_mtime for path in _CORE.rglob("*_kernels.py"))
    for cached in _CORE.rglob("__pycache__/*.nb[ic]"):
        if cached.stat().st_mtime < newest:
            cached.unlink(missing_ok=True)


_forget_stale_kernels()
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))

#: The token provider that goes with Spark 4.2 is not in every repository; without Kerberos any version does.
TOKEN_PROVIDER = "4.0.0"


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session that every job of the run finds with getOrCreate."""
    from pipelines.configuration import load_configuration
    from pipelines.session import start_session
    from pipelines.source.spark_kafka import connector_jars

    settings = {**load_configuration(None).spark, "master": "local[2]", "driver_memory": "1500m"}
    session = start_session(settings, print, connector_jars(TOKEN_PROVIDER, print)).spark
    yield session
    session.stop()
