"""A change of the source, from the log of a cluster to polls or back: one batch, in which the state is that of the new source.

The state by the new source is made first, in tables of its own, as a new folder would have it. The batch replaces the tables of
state by it, and adds to the histories what differs (docs/adr/0072). An interrupted change has changed nothing.
"""

from collections.abc import Callable
from datetime import datetime
from tempfile import TemporaryDirectory

import pyarrow as pa

from coordinator_core.state.era import Era
from pipelines.batch.changed_source import ChangedSource
from pipelines.batch.context import BatchContext
from pipelines.batch.previous_batch import PreviousBatch
from pipelines.batch.without_records import stored_rows
from pipelines.job.new_source_state import NewState, first_poll, log_state
from pipelines.job.probed_logs import ProbedLogs
from pipelines.job.run_options import RunOptions
from pipelines.job.stored_position import known_epochs, replace_checkpoint
from pipelines.query.engine import Snapshot
from pipelines.query.poll_times import is_polled
from pipelines.runtime.errors import TablesError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.phases import Phases
from pipelines.runtime.progress import Progress
from pipelines.runtime.timestamps import at_ms, to_ms
from pipelines.source.position import Position
from pipelines.tables.location import local_folder
from pipelines.tables.reached_position import ReachedPosition
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite, source_schema
from pipelines.upkeep.rebuild.copies import copy_table
from pipelines.upkeep.rebuild.rebuild import FROM_LOG, FROM_TRANSACTION_LOG

#: Tables whose rows are those of the new source. Names of topic ids are kept: they are of the cluster.
_BY_SOURCE = (*FROM_LOG, FROM_TRANSACTION_LOG)


def change_source(
    options: RunOptions,
    store: TableStore,
    logs: ProbedLogs,
    probed_at: datetime,
    progress: Progress,
    clock_ms: Callable[[], int],
) -> None:
    """Replace the state in the tables by that of the source in `options`.

    `logs` are those of the new source, whose ends were requested after `probed_at`.

    Raises:
        GrouplakeError: the new source does not answer, or not about all groups of the tables. The tables are unchanged.
        AnotherWriter: another job took over the tables.
    """
    writer = TablesWriter.claim(store)
    last = writer.last
    assert last is not None, "tables without a batch have no source"
    phases = Phases(at_ms(clock_ms()))
    with TemporaryDirectory(prefix="grouplake-source-") as folder:
        with phases.timed("read"):
            if options.address.is_polled:
                state = first_poll(folder, options, store, last, progress, clock_ms)
            else:
                state = log_state(folder, options, store, last, logs, to_ms(probed_at))
        failpoint("source_change:read")
        _forget_position(store, last, state)
        batch = _replaced_state(writer, last, state, phases, clock_ms)
        failpoint("source_change:done")
    progress(
        f"batch {batch.batch_id}: the source is {options.address} now; "
        f"{batch.records_kept:,} committed offsets differ from the last batch"
    )


def _forget_position(store: TableStore, last: Batch, state: NewState) -> None:
    """Remove the checkpoint of Spark and the kept position: a stream would continue at a position of the old source.

    Leader epochs of the old position are kept until the next batch: a change that is killed has not cost their check.
    """
    folder = local_folder(store.root)
    if folder is not None:
        before = Position(last.next_offsets, known_epochs(folder, last.next_offsets))
        try:
            replace_checkpoint(folder, before, Position(state.batch.next_offsets))
        except OSError as error:
            raise TablesError(str(error)) from error


def _replaced_state(writer: TablesWriter, last: Batch, state: NewState, phases: Phases, clock_ms: Callable[[], int]) -> Batch:
    """Write the batch of the change."""
    store = writer.store
    context = BatchContext(writer.begin(), Era.named(last.era), last.retention_ms, PreviousBatch(store, last))
    before, after = Snapshot(store, last), Snapshot(state.store, state.batch)
    detail = "polls → log" if is_polled(last) else "log → polls"
    with phases.timed("plan"):
        names = stored_rows(after, "topic_ids").drop_columns("batch_id")
        changed = ChangedSource(before, after, detail, state.asked_at_ms)
        writes = (
            TableWrite("topic_ids", _merged("topic_ids", names, context.batch_id)),
            TableWrite("offset_history", differing := changed.offset_rows(context)),
            *changed.other_writes(context),
        )
    for name in _BY_SOURCE:
        with phases.timed(f"write_{name}"):
            copy_table(state.store, name, state.batch.versions.get(name, 0), writer, context.batch_id, "overwrite")
        failpoint(f"source_change:{name}")
    for write in writes:
        with phases.timed(f"write_{write.table}"):
            DeltaRsWriter(writer).write(write)
        failpoint(f"source_change:{write.table}")
    return writer.finish(
        phases,
        at_ms(clock_ms()),
        era=last.era,
        retention_ms=last.retention_ms,
        next_offsets=state.batch.next_offsets,
        records_read=state.batch.records_read,
        records_kept=differing.num_rows,
        transaction_offsets=state.batch.transaction_offsets,
        reached=ReachedPosition(at_ms(state.asked_at_ms), 0),
        is_new_source=True,
    )


def _merged(table: str, rows: pa.Table, batch_id: int) -> pa.Table:
    """Source rows of a merge of a table without log offsets."""
    count = rows.num_rows
    given = {name: rows[name] for name in rows.schema.names} | {
        "batch_id": pa.repeat(pa.scalar(batch_id, pa.int64()), count),
        EFFECTIVE_OFFSET: pa.repeat(pa.scalar(0, pa.int64()), count),
        DELETED: pa.repeat(pa.scalar(False), count),
    }
    schema = source_schema(table)
    return pa.table([given[name] for name in schema.names], names=schema.names).cast(schema)
