"""`grouplake maintain`: compacts the tables and removes old history and files. Like the job, it is a writer of the tables."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from deltalake import DeltaTable

from coordinator_core.health import DEFAULT_KEEP, KeepRule
from pipelines.batch.without_records import finish_batch
from pipelines.failpoints import failpoint
from pipelines.phases import Phases
from pipelines.tables import definitions
from pipelines.tables.leaf_order import order_leaves
from pipelines.tables.leaves import has_leaves
from pipelines.tables.store import Batch, TableStore, timestamp_literal
from pipelines.tables.writer import TablesWriter, stamped
from pipelines.tables.writer_lock import writer_lock
from pipelines.thinning import THINNED, thin_table

#: Histories with an age limit. `quarantine` has none: an operator decides about its rows.
_AGING = ("offset_history", "group_history", "membership_history", "ownership_history")

#: How long a table's log keeps the names of replaced files (`delta.deletedFileRetentionDuration`).
_DELETED_FILE_RETENTION_HOURS = 7 * 24

_STATE_AND_HISTORY = definitions.WRITE_ORDER[:-1]


@dataclass(frozen=True)
class Maintenance:
    """Limits: age of history rows, age of versions for --as-of, target file size of compaction, distances of samples by age."""

    history_days: int
    vacuum_hours: int
    target_file_mb: int
    keep: tuple[KeepRule, ...] = DEFAULT_KEEP


def maintain(root: str, limits: Maintenance, now: datetime, progress: Callable[[str], None]) -> None:
    """Delete old history, compact every table, write checkpoints, and remove unneeded files.

    A new row of `batches` names the versions of the compacted tables, which is how readers find them.

    Raises:
        UsageError: there are no tables, or they are not writable.
        AnotherWriter: a job is writing them.
    """
    store = TableStore(root)
    store.table("batches")
    with writer_lock(root, "grouplake maintain"):
        store.expect_writable()
        writer = TablesWriter.claim(store)
        if writer.last is not None:
            progress(describe_maintenance(_compacted(writer, writer.last, limits, now, progress)))
        for name in definitions.WRITE_ORDER:
            _tidy(writer, name, limits.vacuum_hours, progress)


def describe_maintenance(batch: Batch) -> str:
    """One line about a maintenance batch."""
    return f"batch {batch.batch_id}: maintenance, {(batch.finished_at - batch.started_at).total_seconds():.1f} s"


def _compacted(writer: TablesWriter, last: Batch, limits: Maintenance, now: datetime, progress: Callable[[str], None]) -> Batch:
    """Write a maintenance batch: old history is deleted, other rows keep their content in new files."""
    writer.begin()
    phases = Phases(datetime.now(UTC))
    oldest = timestamp_literal(now - timedelta(days=limits.history_days))
    for name in _AGING:
        with phases.timed("age"):
            writer.commit(name, partial(_age, oldest))
        failpoint(f"maintain:aged:{name}")
    for name in THINNED:
        with phases.timed("thin"):
            writer.commit(name, partial(thin_table, name, limits.keep, now, limits.target_file_mb << 20))
        failpoint(f"maintain:thinned:{name}")
    for name in _STATE_AND_HISTORY:
        with phases.timed("compact"):
            writer.commit(name, partial(_compact, name, limits, progress))
        failpoint(f"maintain:compacted:{name}")
    with phases.timed("compact"):
        # no writer restores an older version of `batches`, and a row or claim that is committed meanwhile is kept
        _compact("batches", limits, progress, writer.expect_claim(), "")
    failpoint("maintain:compacted:batches")
    return finish_batch(writer, last, phases, datetime.now(UTC))


def _age(oldest: str, table: DeltaTable, stamp: str) -> bool:
    metrics = table.delete(f"record_timestamp < {oldest}", commit_properties=stamped(stamp))
    return bool(metrics["num_removed_files"])


def _compact(name: str, limits: Maintenance, progress: Callable[[str], None], table: DeltaTable, stamp: str) -> bool:
    if name in definitions.KEYS and has_leaves(table):
        removed, added = order_leaves(table, name, stamp)
    else:
        metrics = table.optimize.compact(target_size=limits.target_file_mb << 20, commit_properties=stamped(stamp))
        removed, added = metrics["numFilesRemoved"], metrics["numFilesAdded"]
    progress(f"{name}: {removed} files → {added}")
    return removed > 0


def _tidy(writer: TablesWriter, name: str, vacuum_hours: int, progress: Callable[[str], None]) -> None:
    """Write a checkpoint of a table; remove files and log entries that no version of the last `vacuum_hours` needs."""
    table = writer.store.table(name)
    table.create_checkpoint()
    failpoint(f"maintain:checkpoint:{name}")
    writer.expect_claim()
    if name in definitions.SAMPLED:
        vacuum_hours = min(vacuum_hours, definitions.SAMPLED_HOURS)
    removed = table.vacuum(
        retention_hours=vacuum_hours, dry_run=False, enforce_retention_duration=False, full=_may_list_files(vacuum_hours)
    )
    failpoint(f"maintain:vacuumed:{name}")
    table.cleanup_metadata()
    progress(f"{name}: {len(removed)} unneeded files removed")


def _may_list_files(vacuum_hours: int) -> bool:
    """Whether files that no commit names, such as those of a killed job, can be removed.

    With 0 hours they look like files that another writer is about to commit. Beyond the retention of the log they
    look like files of an older version.
    """
    return 0 < vacuum_hours <= _DELETED_FILE_RETENTION_HOURS
