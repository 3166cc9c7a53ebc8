"""Application of a micro-batch of Spark: collected in the driver, or with the offsets left to the executors."""

from collections.abc import Sequence

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, col

from pipelines.batch.apply import BatchApplier, kept_rows
from pipelines.batch.bulk import bulk_commits, bulk_offset_writes
from pipelines.batch.context import BatchContext
from pipelines.batch.placement import PlacedChanges
from pipelines.batch.plan import BatchPlan
from pipelines.runtime.phases import Phases
from pipelines.source.changes import SCHEMA, ChangeKind, of_kind, table_of
from pipelines.tables.writers.bulk_writer import BulkWriter
from pipelines.tables.writers.table_write import TableWrite, Writer

#: Text in the error of Spark's scheduler for results that exceed the limit of the driver.
_TOO_LARGE = "spark.driver.maxResultSize"

#: The JVM builds each Arrow batch in memory. With its default of 10,000 packed rows, 1.3 GB, a heap of 1 GiB is too small.
_ROWS_PER_BATCH = ("spark.sql.execution.arrow.maxRecordsPerBatch", "64")


class SparkBatchApplier(BatchApplier):
    """The function of `foreachBatch`. With more than `bulk_rows` change rows the executors write the offsets."""

    #: The first batch of a run may have years of a log, so its rows are counted before they are collected. The following ones
    #: have what was appended since; collecting them uncounted saves a Spark job.
    _is_first_batch = True

    def __call__(self, changed: DataFrame, _spark_batch_id: int) -> None:
        """Apply packed change rows exactly once, even if the stream repeats the batch."""
        with self.lock:
            self.begin()
            phases = Phases(self.clock())
            if self._is_first_batch or not self._apply_collected(changed, phases):
                self._apply_counted(changed, phases)
            self._is_first_batch = False

    def _apply_collected(self, changed: DataFrame, phases: Phases) -> bool:
        """Apply a batch of few rows; False if it has too many."""
        with phases.timed("read"):
            packed_rows = collected_if_small(changed)
            # unpacked rows take twice the memory: only rows that stay in the driver are unpacked
            if packed_rows is None or not self._fits(table_of(of_kind(packed_rows, ChangeKind.RANGE))):
                return False
            rows = table_of(packed_rows)
        del packed_rows
        self.apply_rows(rows, phases)
        return True

    def _apply_counted(self, changed: DataFrame, phases: Phases) -> None:
        """Apply a batch of any size: its rows stay with the executors until they are counted."""
        # memory is for sorting
        changed = changed.persist(StorageLevel.DISK_ONLY)
        try:
            with phases.timed("read"):
                ranges = table_of(collected(changed.where(col("kind") == str(ChangeKind.RANGE))))
            if not (self._fits(ranges) and self._apply_collected(changed, phases)) and not self._is_applied(ranges):
                with phases.timed("read"):
                    rows = table_of(collected(changed.where(col("kind") != str(ChangeKind.COMMIT))))

                def commits_of(groups: Sequence[str]) -> pa.Table:
                    named = changed.sparkSession.createDataFrame(pa.table({"group_id": list(groups)}))
                    found = bulk_commits(changed).join(broadcast(named), "group_id", "left_semi")
                    return found.select(SCHEMA.names).toArrow().cast(SCHEMA)

                def offset_writes(plan: BatchPlan, placed: PlacedChanges, context: BatchContext) -> tuple[TableWrite, ...]:
                    return bulk_offset_writes(changed, plan, placed, context)

                self._apply(rows, ranges, phases, offset_writes, commits_of)
        finally:
            changed.unpersist()

    def _fits(self, ranges: pa.Table) -> bool:
        return kept_rows(ranges) <= self.bulk_rows

    def _writer_of(self, write: TableWrite, context: BatchContext) -> Writer:
        if isinstance(write.rows, DataFrame):
            return BulkWriter(self._claimed, write.rows.sparkSession)
        return super()._writer_of(write, context)


def collected(packed_rows: DataFrame) -> pa.Table:
    """Collect the rows with one Spark job."""
    name, value = _ROWS_PER_BATCH
    settings = packed_rows.sparkSession.conf
    before = settings.get(name)
    settings.set(name, value)
    try:
        return packed_rows.toArrow()
    finally:
        settings.set(name, str(before))


def collected_if_small(packed_rows: DataFrame) -> pa.Table | None:
    """Collect the rows with one Spark job; None if they exceed `spark.driver.maxResultSize`."""
    try:
        return collected(packed_rows)
    except (PySparkException, Py4JError) as error:
        if _TOO_LARGE in str(error):
            return None
        raise
