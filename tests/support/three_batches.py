"""A small log in three batches, for tests that disturb the tables between the second and the third."""

from pathlib import Path

from created_tables import created_tables
from log_builder import Log, member
from table_logs import change_table

from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.tables.store import TableStore

ERA = Era.named("4")
CUTS = (3, 6, 9)


def _whole_log() -> Log:
    log = Log(partition=3)
    for number in range(6):
        log.commit(number % 2, number, group="ab"[number % 2])
    log.group([member()], group="c")
    log.commit(0, 9, group="a")
    log.offset_tombstone(1, group="b")
    return log


LOG = _whole_log()
#: The change rows of each batch.
RANGES = [change_table(LOG, ERA, start, end) for start, end in zip((0, *CUTS), CUTS, strict=False)]


def applier(root: Path) -> BatchApplier:
    """Return a job that writes the tables under `root`."""
    return BatchApplier(TableStore(str(root)), ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000)


def write_two_batches(root: Path) -> None:
    """Create the tables and write all batches but the last."""
    created_tables(root)
    writing = applier(root)
    for rows in RANGES[:2]:
        writing.apply_rows(rows)
