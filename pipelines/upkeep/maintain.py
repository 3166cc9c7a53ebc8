"""Maintenance: compacts the tables and removes old history and files. Like the job, it is a writer of the tables."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from coordinator_core.health import DEFAULT_KEEP, KeepRule
from pipelines.batch.without_records import finish_batch
from pipelines.lag.settings import lag_keep
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.phases import Phases
from pipelines.tables import definitions
from pipelines.tables.delta_writes import compact, stamped
from pipelines.tables.row_removal import remove_older
from pipelines.tables.sorted_files.file_order import order_files
from pipelines.tables.sorted_files.sorted_files import has_sorted_files
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import Change, CommitConflict, TablesWriter
from pipelines.tables.writer_lock import writer_lock
from pipelines.upkeep.sample_retention import THINNED, thin_table

if TYPE_CHECKING:
    from pipelines.runtime.configuration import Configuration

#: Histories with an age limit. `quarantine` has none: an operator decides about its rows.
_AGING = ("offset_history", "group_history", "membership_history", "ownership_history", "transaction_history")

#: How long a table's log keeps the names of replaced files (`delta.deletedFileRetentionDuration`).
_DELETED_FILE_RETENTION_HOURS = 7 * 24

_STATE_AND_HISTORY = definitions.WRITE_ORDER[:-1]

#: Phase → its past participle, in names of failpoints.
_DONE = {"age": "aged", "thin": "thinned", "compact": "compacted"}


@dataclass(frozen=True)
class Maintenance:
    """Limits: age of history rows, age of versions for --as-of, target file size of compaction, distances of samples by age."""

    history_days: int
    vacuum_hours: int
    target_file_mb: int
    keep: tuple[KeepRule, ...] = DEFAULT_KEEP

    @classmethod
    def of(cls, configuration: "Configuration") -> "Maintenance":
        """The limits in the sections `maintain` and `lag`.

        Raises:
            UsageError: `lag.keep` is invalid.
        """
        section = configuration.maintain
        return cls(section["history_days"], section["vacuum_hours"], section["target_file_mb"], lag_keep(configuration.lag))


class TableStep(NamedTuple):
    """A change of one table in a maintenance batch, and the phase whose duration it adds to."""

    phase: str
    table: str
    change: Change


def maintain(root: str, limits: Maintenance, now: datetime, progress: Callable[[str], None]) -> None:
    """Delete old history, compact every table, write checkpoints, and remove unneeded files.

    A new row of `batches` names the versions of the compacted tables, which is how readers find them.

    Raises:
        UsageError: there are no tables, or they are not writable.
        AnotherWriter: a job is writing them.
    """
    TableStore(root).table("batches")
    with writer_lock(root, "grouplake maintain"):
        maintain_locked(root, limits, now, progress)


def maintain_locked(root: str, limits: Maintenance, now: datetime, progress: Callable[[str], None]) -> None:
    """The work of `maintain`, for a process that has the lock or needs none."""
    store = TableStore(root)
    store.expect_writable()
    writer = TablesWriter.claim(store)
    if writer.last is not None:
        progress(describe_maintenance(_compacted(writer, writer.last, limits, now, progress)))
    for name in definitions.WRITE_ORDER:
        tidy(writer, name, limits.vacuum_hours, progress)


def describe_maintenance(batch: Batch) -> str:
    """One line about a maintenance batch."""
    return f"batch {batch.batch_id}: maintenance, {(batch.finished_at - batch.started_at).total_seconds():.1f} s"


def steps(limits: Maintenance, now: datetime, progress: Callable[[str], None]) -> Iterator[TableStep]:
    """The changes of all tables but `batches`, in the order of a maintenance batch."""
    oldest, file_bytes = now - timedelta(days=limits.history_days), limits.target_file_mb << 20
    for name in _AGING:
        yield TableStep("age", name, partial(_age, name, oldest, file_bytes))
    for name in THINNED:
        yield TableStep("thin", name, partial(thin_table, name, limits.keep, now, file_bytes))
    for name in _STATE_AND_HISTORY:
        yield TableStep("compact", name, partial(_compact, name, limits, progress))


def compact_batches(
    writer: TablesWriter, last: Batch, limits: Maintenance, now: datetime, progress: Callable[[str], None]
) -> None:
    """Remove the oldest rows of `batches` and compact it. Readers and writers open its newest version, which needs no row.

    A row or claim that another commit adds meanwhile is kept.
    """
    table = writer.expect_claim()
    # the last batch stays, whatever its age
    oldest = min(_oldest_batch(limits, now), last.finished_at)
    # a conflict with such a commit: the next maintenance removes the rows
    with suppress(CommitConflict, CommitFailedError):
        remove_older(table, "batches", "finished_at", oldest, "", limits.target_file_mb << 20)
    _compact("batches", limits, progress, writer.expect_claim(), "")


def tidy(writer: TablesWriter, name: str, vacuum_hours: int, progress: Callable[[str], None]) -> int:
    """Write a checkpoint of a table; remove files and log entries that no version of the last `vacuum_hours` needs.

    Returns the number of removed files.
    """
    writer.store.table(name).create_checkpoint()
    failpoint(f"maintain:checkpoint:{name}")
    if name in definitions.SAMPLED:
        vacuum_hours = min(vacuum_hours, definitions.SAMPLED_HOURS)
    removed = writer.remove_unneeded_files(name, vacuum_hours, full=_may_list_files(vacuum_hours))
    failpoint(f"maintain:vacuumed:{name}")
    writer.store.table(name).cleanup_metadata()
    progress(f"{name}: {removed} unneeded files removed")
    return removed


def _compacted(writer: TablesWriter, last: Batch, limits: Maintenance, now: datetime, progress: Callable[[str], None]) -> Batch:
    """Write a maintenance batch: old history is deleted, other rows keep their content in new files."""
    writer.begin()
    phases = Phases(datetime.now(UTC))
    for step in steps(limits, now, progress):
        with phases.timed(step.phase):
            writer.commit(step.table, step.change)
        failpoint(f"maintain:{_DONE[step.phase]}:{step.table}")
    with phases.timed("compact"):
        compact_batches(writer, last, limits, now, progress)
    failpoint("maintain:compacted:batches")
    return finish_batch(writer, last, phases, datetime.now(UTC))


def _oldest_batch(limits: Maintenance, now: datetime) -> datetime:
    """Age limit of `batches`: histories and samples name batches, and `--as-of` needs the versions in their rows."""
    kept = max((rule.age_ms for rule in limits.keep), default=0)
    return now - max(timedelta(days=limits.history_days), timedelta(hours=limits.vacuum_hours), timedelta(milliseconds=kept))


def _age(name: str, oldest: datetime, file_bytes: int, table: DeltaTable, stamp: str) -> bool:
    return remove_older(table, name, "record_timestamp", oldest, stamp, file_bytes)


def _compact(name: str, limits: Maintenance, progress: Callable[[str], None], table: DeltaTable, stamp: str) -> bool:
    if name in definitions.KEYS and has_sorted_files(table):
        removed, added = order_files(table, name, stamp)
    else:
        removed, added = compact(table, limits.target_file_mb << 20, stamped(stamp))
    progress(f"{name}: {removed} files → {added}")
    return removed > 0


def _may_list_files(vacuum_hours: int) -> bool:
    """Whether files that no commit names, such as those of a killed job, can be removed.

    With 0 hours they look like files that another writer is about to commit. Beyond the retention of the log they
    look like files of an older version.
    """
    return 0 < vacuum_hours <= _DELETED_FILE_RETENTION_HOURS
