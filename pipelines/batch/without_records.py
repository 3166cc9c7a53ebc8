"""Batches that read no records: rows of tables before and after, and the row of `batches`."""

from datetime import datetime

import pyarrow as pa

from pipelines.query.engine import Snapshot
from pipelines.runtime.phases import Phases
from pipelines.tables import definitions
from pipelines.tables.reached_position import ReachedPosition
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter
from pipelines.tables.writers.table_write import TableWrite


def nullable_schema(name: str) -> pa.Schema:
    """Columns of a table, all nullable as those of query results are."""
    return pa.schema([field.with_nullable(True) for field in definitions.table(name).schema])


def stored_rows(snapshot: Snapshot, name: str) -> pa.Table:
    """All rows of a table; none if the last batch was written before the table existed."""
    if name not in snapshot.batch.versions:
        return nullable_schema(name).empty_table()
    return snapshot.query(f"SELECT * FROM {name}").cast(nullable_schema(name))


def write_rows(writer: TablesWriter, name: str, rows: pa.Table, batch_id: int) -> None:
    """Write rows, which have all columns but `batch_id`, to a table.

    Raises:
        AnotherWriter: another job took over the tables.
    """
    schema = definitions.table(name).schema
    stamped = rows.append_column("batch_id", pa.repeat(pa.scalar(batch_id, pa.int64()), rows.num_rows))
    DeltaRsWriter(writer).write(TableWrite(name, stamped.select(schema.names).cast(schema)))


def write_empty_batch(writer: TablesWriter, last: Batch, now: datetime, reached: ReachedPosition | None = None) -> Batch:
    """Write a batch that changes no table, so that readers see that the job is up to date.

    Raises:
        AnotherWriter: another job took over the tables; the batch is not visible.
    """
    phases = Phases(now)
    with phases.timed("read"):
        writer.begin()
    return finish_batch(writer, last, phases, now, reached)


def finish_batch(
    writer: TablesWriter,
    last: Batch,
    phases: Phases,
    finished_at: datetime,
    reached: ReachedPosition | None = None,
    *,
    transaction_ms: int | None = None,
    status_settings: str | None = None,
) -> Batch:
    """Make the current batch visible, with era, retention and log position of the last one.

    `reached` is the time up to which the log is known to have no further records, if that is newer. `transaction_ms` is the age
    of a hanging transaction by the settings of the job, and `status_settings` are those of the status; None for those of the last
    batch.

    Raises:
        AnotherWriter: another job took over the tables; the batch is not visible.
    """
    return writer.finish(
        phases,
        finished_at,
        era=last.era,
        retention_ms=last.retention_ms,
        next_offsets=last.next_offsets,
        reached=reached,
        transaction_ms=transaction_ms,
        status_settings=status_settings,
    )
