"""Writer of bulk batches: delta-spark, by the executors (docs/adr/0003)."""

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from pipelines.tables import definitions
from pipelines.tables.store import APP_ID, TableStore
from pipelines.writers.table_write import DELETED, TableWrite, merge_conditions

_TRANSACTION = ("spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion")


class DeltaSparkWriter:
    """Merges and appends DataFrames, through the session that the batch's DataFrame belongs to."""

    def __init__(self, store: TableStore, spark: SparkSession) -> None:
        self._store = store
        self._spark = spark

    def write(self, write: TableWrite, batch_id: int) -> int:
        """Applies `write` once; see `Writer`."""
        # a statement of a session, not of a command: left behind it would silently skip the session's next write
        for key, value in zip(_TRANSACTION, (APP_ID, str(batch_id)), strict=True):
            self._spark.conf.set(key, value)
        try:
            self._write(write)
        finally:
            for key in _TRANSACTION:
                self._spark.conf.unset(key)
        return self._store.table(write.table).version()

    def _write(self, write: TableWrite) -> None:
        definition = definitions.table(write.table)
        if not definition.key:
            self._append(write.rows.select(definition.schema.names), write.table)
        elif self._is_empty(write.table):
            kept = write.rows.where(~col(DELETED)).select(definition.schema.names)
            self._append(kept.sortWithinPartitions(*definition.key), write.table)
        else:
            self._merge(write.rows, definition)

    def _is_empty(self, table: str) -> bool:
        return not self._store.table(table).file_uris()

    def _append(self, rows: DataFrame, table: str) -> None:
        rows.write.format("delta").mode("append").save(self._store.path(table))

    def _merge(self, rows: DataFrame, definition: definitions.TableDefinition) -> None:
        columns = {name: f"s.{name}" for name in definition.schema.names}
        deleted, updated, inserted = merge_conditions(definition.name)
        (
            DeltaTable.forPath(self._spark, self._store.path(definition.name))
            .alias("t")
            .merge(rows.alias("s"), " AND ".join(f"t.{name} = s.{name}" for name in definition.key))
            .whenMatchedDelete(deleted)
            .whenMatchedUpdate(updated, columns)
            .whenNotMatchedInsert(inserted, columns)
            .execute()
        )
