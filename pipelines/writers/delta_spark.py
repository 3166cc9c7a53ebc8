"""Writer of bulk batches: delta-spark, in the executors (docs/adr/0003)."""

import deltalake
from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col

from pipelines.tables import definitions
from pipelines.tables.leaves import LEAF_ROWS
from pipelines.tables.writer import CommitConflict, TablesWriter
from pipelines.writers.table_write import DELETED, TableWrite, merge_conditions

_STAMP = "spark.databricks.delta.commitInfo.userMetadata"


class DeltaSparkWriter:
    """Merges and appends DataFrames, in the session of the batch's DataFrame."""

    def __init__(self, tables: TablesWriter, spark: SparkSession) -> None:
        self._tables = tables
        self._spark = spark

    def write(self, write: TableWrite) -> int:
        """Apply `write`; see `Writer`."""
        return self._tables.commit(write.table, lambda table, stamp: self._change(table, write, stamp))

    def _change(self, table: deltalake.DeltaTable, write: TableWrite, stamp: str) -> bool:
        expected = table.version()
        is_empty = not table.file_uris()
        self._spark.conf.set(_STAMP, stamp)
        try:
            self._write(write, is_empty)
        except PySparkException as error:
            table.update_incremental()
            if table.version() != expected:
                raise CommitConflict(f"{write.table}: {error}") from error
            raise
        finally:
            # a setting of the session: if kept, it would appear in the history of other writes
            self._spark.conf.unset(_STAMP)
        table.update_incremental()
        if table.version() == expected:
            return False
        # Spark appends at any version; only the stamp distinguishes its commit from one of another writer
        if table.history(1)[0].get("userMetadata") != stamp:
            raise CommitConflict(f"{write.table}: version {table.version()} is not the one just written")
        return True

    def _write(self, write: TableWrite, is_empty: bool) -> None:
        definition = definitions.table(write.table)
        if not definition.key:
            self._append(write.rows.select(definition.schema.names), write.table)
        elif is_empty:
            kept = write.rows.where(~col(DELETED)).select(definition.schema.names)
            # small files with few groups each, because micro-batches replace whole files
            self._append(kept.sortWithinPartitions(*definition.key), write.table, maxRecordsPerFile=LEAF_ROWS)
        else:
            self._merge(write.rows, definition)

    def _append(self, rows: DataFrame, table: str, **options: int) -> None:
        rows.write.format("delta").mode("append").options(**options).save(self._tables.store.path(table))

    def _merge(self, rows: DataFrame, definition: definitions.TableDefinition) -> None:
        columns: dict[str, str | Column] = {name: f"s.{name}" for name in definition.schema.names}
        deleted, updated, inserted = merge_conditions(definition.name)
        (
            DeltaTable.forPath(self._spark, self._tables.store.path(definition.name))
            .alias("t")
            .merge(rows.alias("s"), " AND ".join(f"t.{name} = s.{name}" for name in definition.key))
            .whenMatchedDelete(deleted)
            .whenMatchedUpdate(updated, columns)
            .whenNotMatchedInsert(inserted, columns)
            .execute()
        )
