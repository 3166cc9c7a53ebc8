"""`grouplake maintain`: keeps the tables small and quick. Run it between runs of the job; it takes the same turns at the log."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore, timestamp_literal

#: History that ages; what is in quarantine stays until somebody has looked at it.
_AGING = ("offset_history", "group_history")


@dataclass(frozen=True)
class Maintenance:
    """How much to keep: history rows, versions for --as-of, and the file size that compaction aims at."""

    history_days: int
    vacuum_hours: int
    target_file_mb: int


def maintain(root: str, limits: Maintenance, now: datetime, progress: Callable[[str], None]) -> None:
    """Ages the history, compacts every table sorted by its key, writes checkpoints, and removes files nobody needs.

    The last batch's versions are made to point at the compacted tables, so that a reader finds them.
    """
    store = TableStore(root)
    batch = store.last_batch()
    batch_id = store.roll_back(batch)
    started_at = datetime.now(UTC)
    for name in definitions.WRITE_ORDER:
        table = store.table(name)
        if name in _AGING:
            table.delete(f"record_timestamp < {timestamp_literal(now - timedelta(days=limits.history_days))}")
        metrics = table.optimize.compact(target_size=limits.target_file_mb << 20)
        if batch is None or name != "batches":
            progress(f"{name}: {metrics['numFilesRemoved']} files → {metrics['numFilesAdded']}")
    if batch is not None:
        store.finish_batch(_after(batch, batch_id, store, started_at))
    for name in definitions.WRITE_ORDER:
        table = store.table(name)
        table.create_checkpoint()
        removed = table.vacuum(retention_hours=limits.vacuum_hours, dry_run=False, enforce_retention_duration=False)
        table.cleanup_metadata()
        progress(f"{name}: {len(removed)} unneeded files removed")


def _after(batch: Batch, batch_id: int, store: TableStore, started_at: datetime) -> Batch:
    """A batch that changes nothing and names the compacted versions."""
    return Batch(
        batch_id=batch_id,
        started_at=started_at,
        finished_at=datetime.now(UTC),
        generation=batch.generation,
        era=batch.era,
        retention_ms=batch.retention_ms,
        records_read=0,
        records_kept=0,
        next_offsets=batch.next_offsets,
        versions={name: store.table(name).version() for name in batch.versions},
        phase_ms={},
    )
