"""Hypothesis profiles and the one Spark session of a test run.

Profiles: `deterministic` for every run, `exhaustive` (HYPOTHESIS_PROFILE=exhaustive) for a longer search.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from failure_report import FailureReport
from first_use import TOKEN_PROVIDER, prepare
from hypothesis import HealthCheck, settings

from pipelines.runtime.cache.kernels import use_kernel_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "deterministic", derandomize=True, database=None, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("exhaustive", max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# must run before any test imports Numba
use_kernel_cache()
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--failures FILE` of `tools/gate.py`."""
    parser.addoption("--failures", metavar="FILE", type=Path, help="write the failed tests to FILE, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Report failures from the process that receives the reports of all workers."""
    file = config.getoption("--failures")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureReport(file))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make what the selected tests need, outside of any test's time limit. `tools/prepare.py` has done it for the gate."""
    if not session.config.option.collectonly:
        prepare({mark.name for item in session.items for mark in item.iter_markers()})


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session that every job of the run finds with getOrCreate."""
    from pipelines.job.spark.session import start_session
    from pipelines.job.spark.spark_kafka import connector_jars
    from pipelines.runtime.configuration import load_configuration

    settings = {**load_configuration(None).spark, "master": "local[2]", "driver_memory": "1500m"}
    session = start_session(settings, print, connector_jars(TOKEN_PROVIDER, print)).spark
    yield session
    session.stop()
