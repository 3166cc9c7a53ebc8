"""Hypothesis profiles and the one Spark session of a test run.

Profiles: `deterministic` for every run, `exhaustive` (HYPOTHESIS_PROFILE=exhaustive) for a longer search.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from failure_report import FailureReport
from file_schedule import DurationRecord, LongestFirst
from first_use import TOKEN_PROVIDER, prepare
from frozen_heap import FrozenHeap
from hypothesis import HealthCheck, settings
from library_leaks import LibraryLeaks
from one_core import OneCore
from run_progress import RunProgress

from pipelines.runtime.cache.kernels import use_kernel_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

settings.register_profile(
    "deterministic", derandomize=True, database=None, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("exhaustive", max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# must run before any test imports Numba
use_kernel_cache()
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--failures FILE` of `tools/gate.py`, and `--record-durations`."""
    parser.addoption("--failures", metavar="FILE", type=Path, help="write the failed tests to FILE, as JSON")
    parser.addoption("--record-durations", action="store_true", help="write tests/durations.json, by which files are ordered")


def pytest_configure(config: pytest.Config) -> None:
    """Report from the process that receives the reports of all workers, and leaks of libraries from every process."""
    config.pluginmanager.register(LibraryLeaks(Path(__file__).parents[1]))
    config.pluginmanager.register(FrozenHeap())
    if hasattr(config, "workerinput"):
        if hasattr(os, "sched_setaffinity"):
            config.pluginmanager.register(OneCore(int(config.workerinput["workerid"].removeprefix("gw"))))
        return
    file = config.getoption("--failures")
    if file is not None:
        config.pluginmanager.register(FailureReport(file))
    if config.getoption("--record-durations"):
        config.pluginmanager.register(DurationRecord())
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(RunProgress.of_a_run())


def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "LongestFirst | None":
    """Our order of files in place of `--dist loadfile`."""
    return LongestFirst(config, log) if config.getoption("dist") == "loadfile" else None


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
