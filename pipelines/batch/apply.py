"""Application of a micro-batch to the tables: plan, write, and the `batches` row last."""

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from coordinator_core.state.era import Era
from pipelines.batch.bulk import bulk_offset_writes
from pipelines.batch.collect import collected
from pipelines.batch.context import BatchContext
from pipelines.batch.offsets_plan import history_rows, offset_rows, without_superseded
from pipelines.batch.plan import BatchPlan, plan_batch
from pipelines.batch.previous_batch import PreviousBatch
from pipelines.batch.small_files import COMPACT_EVERY, compact_appended
from pipelines.batch.topic_names import NameSource
from pipelines.errors import TablesError
from pipelines.failpoints import failpoint
from pipelines.phases import Phases
from pipelines.source.changes import Kind, of_kind, table_of
from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.writers.delta_rs import DeltaRsWriter
from pipelines.writers.delta_spark import DeltaSparkWriter
from pipelines.writers.table_write import TableWrite


@dataclass
class BatchApplier:
    """The function of `foreachBatch`, with its settings.

    `bulk_rows`: with more change rows than this, the commits remain in Spark and delta-spark writes them.
    `on_batch` is called for every complete batch.
    """

    store: TableStore
    era: Era
    retention_ms: int
    name_source: NameSource
    bulk_rows: int
    on_batch: Callable[[Batch], None] = lambda _batch: None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    #: The claim of the tables. Without one, the first batch that writes claims the tables.
    writer: TablesWriter | None = None
    #: Held while a batch is applied; other batches of the job, such as samples, hold it too.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, changed: DataFrame, _spark_batch_id: int) -> None:
        """Apply packed change rows exactly once, even if the stream repeats the batch."""
        with self.lock:
            self._apply_packed(changed)

    def claim(self) -> TablesWriter:
        """Return the claim of the tables, and make it if there is none yet."""
        if self.writer is None:
            self.writer = TablesWriter.claim(self.store)
        return self.writer

    def _apply_packed(self, changed: DataFrame) -> None:
        phases = Phases(self.clock())
        with phases.timed("read"):
            packed_rows = collected(changed)
            # unpacked rows take twice the memory: only rows that stay in the driver are unpacked
            fits = packed_rows is not None and _kept(table_of(of_kind(packed_rows, Kind.RANGE))) <= self.bulk_rows
            rows = table_of(packed_rows) if fits else None
        del packed_rows
        if rows is not None:
            self._apply_collected(rows, phases)
        else:
            self._apply_bulk(changed, phases)

    def apply_rows(self, rows: pa.Table) -> None:
        """Apply unpacked change rows that are already in the driver."""
        self._apply_collected(rows, Phases(self.clock()))

    def _apply_collected(self, rows: pa.Table, phases: Phases) -> None:
        ranges = of_kind(rows, Kind.RANGE)
        if not self._is_applied(ranges):
            self._apply(rows, None, ranges, phases)

    def _apply_bulk(self, changed: DataFrame, phases: Phases) -> None:
        changed = changed.persist()
        try:
            with phases.timed("read"):
                rows = table_of(changed.where(col("kind") != str(Kind.COMMIT)).toArrow())
            ranges = of_kind(rows, Kind.RANGE)
            if not self._is_applied(ranges):
                self._apply(rows, changed, ranges, phases)
        finally:
            changed.unpersist()

    def _is_applied(self, ranges: pa.Table) -> bool:
        """True if the tables contain the batch already: Spark repeats a batch if the job ended before its checkpoint.

        Raises:
            TablesError: the ranges do not start where the tables end.
        """
        if self.writer is not None:
            return self._is_within(ranges, self.writer.last)
        if self._is_within(ranges, self.store.last_batch()):
            return True
        return self._is_within(ranges, self.claim().last)

    def _is_within(self, ranges: pa.Table, last: Batch | None) -> bool:
        next_offsets = last.next_offsets if last else {}
        rows = ranges.select(["log_partition", "start_offset", "next_offset"]).to_pylist()
        if not rows or all(row["next_offset"] <= next_offsets.get(row["log_partition"], -1) for row in rows):
            return True
        for row in rows:
            expected = next_offsets.get(row["log_partition"])
            if expected is not None and row["start_offset"] not in (expected, None):
                raise TablesError(
                    f"partition {row['log_partition']}: the tables under {self.store.root} end before offset {expected}, "
                    f"but the stream continues at {row['start_offset']}; "
                    f"remove {self.store.root}/_checkpoint to continue from the tables"
                )
        return False

    def _apply(self, rows: pa.Table, bulk: DataFrame | None, ranges: pa.Table, phases: Phases) -> None:
        writer = self._claimed
        context = BatchContext(writer.begin(), self.era, self.retention_ms, PreviousBatch(self.store, writer.last))
        with phases.timed("plan"), _no_garbage_collection():
            plan = plan_batch(rows, context, self.name_source)
            if bulk is not None:
                offsets = bulk_offset_writes(bulk, plan, context, self.store)
            else:
                offsets = _offset_writes(rows, plan, context)
        for write in _in_order((*plan.writes, *offsets)):
            self._write(write, context, phases)
        if context.batch_id % COMPACT_EVERY == COMPACT_EVERY - 1:
            with phases.timed("compact"):
                compact_appended(writer)
        self._finish(ranges, phases)

    @property
    def _claimed(self) -> TablesWriter:
        assert self.writer is not None, "ranges are checked first"
        return self.writer

    def _write(self, write: TableWrite, context: BatchContext, phases: Phases) -> None:
        writer = self._claimed
        with phases.timed(f"write_{write.table}"):
            if isinstance(write.rows, DataFrame):
                DeltaSparkWriter(writer, write.rows.sparkSession).write(write)
            else:
                DeltaRsWriter(writer, context.previous.scanned_rows).write(write)
        failpoint(f"after:{write.table}")

    def _finish(self, ranges: pa.Table, phases: Phases) -> None:
        writer = self._claimed
        offsets = zip(ranges["log_partition"].to_pylist(), ranges["next_offset"].to_pylist(), strict=True)
        batch = writer.finish(
            phases,
            self.clock(),
            era=self.era.name,
            retention_ms=self.retention_ms,
            next_offsets={**(writer.last.next_offsets if writer.last else {}), **dict(offsets)},
            records_read=pc.sum(ranges["records_read"]).as_py() or 0,
            records_kept=_kept(ranges),
        )
        self.on_batch(batch)


def _kept(ranges: pa.Table) -> int:
    return pc.sum(ranges["commits"]).as_py() or 0


def _offset_writes(rows: pa.Table, plan: BatchPlan, context: BatchContext) -> tuple[TableWrite, ...]:
    commits = of_kind(rows, Kind.COMMIT)
    resolved = without_superseded(commits, plan.resolved)
    return (
        TableWrite("offsets", offset_rows(commits, plan.tombstones, resolved, context.batch_id)),
        TableWrite("offset_history", history_rows(commits, plan.tombstones, resolved, context)),
    )


def _in_order(writes: tuple[TableWrite, ...]) -> list[TableWrite]:
    return sorted(writes, key=lambda write: definitions.WRITE_ORDER.index(write.table))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector: a plan creates no cycles, and collection takes a sixth of the time of a first load."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
