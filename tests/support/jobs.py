"""Run the job in this process, on the test run's one Spark session."""

from collections.abc import Callable
from typing import Any

from first_use import without_recording

from coordinator_core.state.era import Era
from pipelines.job import job
from pipelines.job.run_options import RunOptions
from pipelines.runtime.configuration import load_configuration
from pipelines.source.address import parse_address

NOW_MS = 1_795_300_000_000


def run_options(source: str, tables: Any, *, era: str = "4", **changed: Any) -> RunOptions:
    """Options of a run with `available-now`."""
    configuration = load_configuration(None)
    options = {
        "address": parse_address(source),
        "tables": str(tables),
        "era": Era.named(era),
        "retention_ms": Era.named(era).default_retention_ms,
        "bulk_rows": configuration.job["bulk_rows"],
        "tasks": 2,
        # the session exists already: its jars are those of the fixture
        "spark": {**configuration.spark, "delta_jars": "provided"},
    }
    return RunOptions(**{**options, **changed})


def run_job(
    source: str, tables: Any, *, era: str = "4", clock_ms: Callable[[], int] = lambda: NOW_MS, **changed: Any
) -> list[str]:
    """Run with `available-now`; return the lines of progress."""
    lines: list[str] = []
    job.run(run_options(source, tables, era=era, **changed), lines.append, clock_ms)
    return without_recording(lines)
