"""Folders and job of a demo."""

import tempfile
from pathlib import Path
from typing import Any, TextIO

from coordinator_core.state.era import Era
from pipelines.job.run_options import RunOptions
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError
from pipelines.runtime.progress import Progress
from pipelines.source.address import parse_address
from pipelines.tables.store import TableStore

#: Trigger of a job that follows the log of a demo: a change is in the tables within a second.
TRIGGER = "500ms"


def new_folders(tables: str | None) -> tuple[Path, str]:
    """Make a temporary folder that is kept, and return it with the folder of the tables: `tables`, or else one in it.

    Raises UsageError if there are tables already.
    """
    if tables is not None and TableStore(tables).exists():
        raise UsageError(f"there are tables under {tables} already: name a new or empty folder")
    folder = Path(tempfile.mkdtemp(prefix="grouplake-demo-"))
    return folder, tables or str(folder / "tables")


def job_options(address: str, tables: str, era: str = "4", **changes: Any) -> RunOptions:
    """Options of a job with default configuration; `changes` are fields of the options."""
    configuration = load_configuration(None)
    rules = Era.named(era)
    return RunOptions(
        address=parse_address(address),
        tables=tables,
        era=rules,
        retention_ms=rules.default_retention_ms,
        bulk_rows=configuration.job["bulk_rows"],
        spark=configuration.spark,
        **changes,
    )


def job_progress(log: TextIO, progress: Progress) -> Progress:
    """Write the progress of the job to `log`, and pass on all lines but those of batches."""

    def report(line: str) -> None:
        log.write(f"{line}\n")
        if not line.startswith("batch "):
            progress(line)

    return report
