"""Application of a micro-batch of Spark: collected in the driver, or with the offsets left to the executors."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from pipelines.batch.apply import BatchApplier, kept_rows
from pipelines.batch.bulk import bulk_offset_writes
from pipelines.batch.collect import collected
from pipelines.batch.context import BatchContext
from pipelines.phases import Phases
from pipelines.source.changes import Kind, of_kind, table_of
from pipelines.writers.bulk_writer import BulkWriter
from pipelines.writers.table_write import TableWrite, Writer


class SparkBatchApplier(BatchApplier):
    """The function of `foreachBatch`. With more than `bulk_rows` change rows the executors write the offsets."""

    def __call__(self, changed: DataFrame, _spark_batch_id: int) -> None:
        """Apply packed change rows exactly once, even if the stream repeats the batch."""
        with self.lock:
            self._apply_packed(changed)

    def _apply_packed(self, changed: DataFrame) -> None:
        phases = Phases(self.clock())
        with phases.timed("read"):
            packed_rows = collected(changed)
            # unpacked rows take twice the memory: only rows that stay in the driver are unpacked
            fits = packed_rows is not None and kept_rows(table_of(of_kind(packed_rows, Kind.RANGE))) <= self.bulk_rows
            rows = table_of(packed_rows) if fits else None
        del packed_rows
        if rows is not None:
            self.apply_rows(rows, phases)
        else:
            self._apply_bulk(changed, phases)

    def _apply_bulk(self, changed: DataFrame, phases: Phases) -> None:
        changed = changed.persist()
        try:
            with phases.timed("read"):
                rows = table_of(changed.where(col("kind") != str(Kind.COMMIT)).toArrow())
            ranges = of_kind(rows, Kind.RANGE)
            if not self._is_applied(ranges):
                self._apply(rows, ranges, phases, lambda plan, context: bulk_offset_writes(changed, plan, context))
        finally:
            changed.unpersist()

    def _writer_of(self, write: TableWrite, context: BatchContext) -> Writer:
        if isinstance(write.rows, DataFrame):
            return BulkWriter(self._claimed, write.rows.sparkSession)
        return super()._writer_of(write, context)
