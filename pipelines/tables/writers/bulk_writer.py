"""Writer of bulk batches: executors write the data files, the driver commits them (docs/adr/0037).

Spark's JVM does not touch the tables, so every table has one kind of commit, and an object store one set of credentials.
"""

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, filter, lit, size

from pipelines.tables import definitions
from pipelines.tables.sorted_files.change_files import has_change_data_feed
from pipelines.tables.sorted_files.file_ranges import file_runs, range_starts
from pipelines.tables.sorted_files.sorted_files import SortedFile, has_sorted_files, replace_files, sorted_files_of
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter
from pipelines.tables.writers.executor_tasks import FILES_DDL, TASK_ROWS, AppendTask, MergeTask, WrittenFiles
from pipelines.tables.writers.table_write import DELETED, TableWrite

_RANGE = "_range"


class BulkWriter:
    """Merges and appends DataFrames, in the session of the batch's DataFrame."""

    def __init__(self, tables: TablesWriter, spark: SparkSession) -> None:
        self._tables = tables
        self._spark = spark

    def write(self, write: TableWrite) -> int:
        """Apply `write`; see `Writer`."""
        if not has_sorted_files(self._tables.store.table(write.table)):
            # changed by another program: only delta-rs can merge it
            return DeltaRsWriter(self._tables).write(TableWrite(write.table, write.rows.toArrow()))
        return self._tables.commit(write.table, lambda table, stamp: self._change(table, write, stamp))

    def _change(self, table: DeltaTable, write: TableWrite, stamp: str) -> bool:
        definition = definitions.table(write.table)
        sorted_files = {sorted_file.path: sorted_file for sorted_file in sorted_files_of(table)}
        if not definition.key:
            files = self._appended(table, write.rows.select(definition.schema.names), definition, is_sorted=False)
        elif not sorted_files:
            kept = write.rows.where(~col(DELETED)).select(definition.schema.names)
            files = self._appended(table, kept.sortWithinPartitions(*definition.key), definition, is_sorted=True)
        else:
            files = self._merged(table, list(sorted_files.values()), write.rows, definition)
        if not files.added and not files.removed:
            return False
        replace_files(table, [sorted_files[path] for path in files.removed], files.added, stamp, changed=files.changed)
        return True

    def _appended(
        self, table: DeltaTable, rows: DataFrame, definition: definitions.TableDefinition, *, is_sorted: bool
    ) -> WrittenFiles:
        task = AppendTask(table.table_uri, definition.schema, is_sorted)
        return WrittenFiles.of(rows.mapInArrow(task, FILES_DDL).toArrow())

    def _merged(
        self, table: DeltaTable, sorted_files: list[SortedFile], rows: DataFrame, definition: definitions.TableDefinition
    ) -> WrittenFiles:
        runs = file_runs(sorted_files)
        tasks = max(self._spark.sparkContext.defaultParallelism, sum(run.rows for run in runs) // TASK_ROWS)
        starts = range_starts(runs, tasks)
        number = size(filter(lit(starts), lambda start: start <= col(definition.schema.names[0]))) if starts else lit(0)
        ranges = rows.withColumn(_RANGE, number).repartitionById(len(starts) + 1, col(_RANGE)).drop(_RANGE)
        task = MergeTask(table.table_uri, definition.schema, definition.key, runs, has_change_data_feed(table))
        return WrittenFiles.of(ranges.sortWithinPartitions(*definition.key).mapInArrow(task, FILES_DDL).toArrow())
