"""Writer of micro-batches: delta-rs, in the driver, without a Spark job (docs/adr/0003)."""

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from pipelines.tables import definitions
from pipelines.tables.store import APP_ID, TableStore, is_in
from pipelines.writers.table_write import TableWrite, merge_conditions


class DeltaRsWriter:
    """Merges and appends Arrow rows."""

    def __init__(self, store: TableStore) -> None:
        self._store = store

    def write(self, write: TableWrite, batch_id: int) -> int:
        """Applies `write` once; see `Writer`."""
        table = self._store.table(write.table)
        applied = table.transaction_version(APP_ID)
        if not (applied is not None and applied >= batch_id) and write.rows.num_rows:
            properties = CommitProperties(app_transactions=[Transaction(APP_ID, batch_id)])
            if definitions.KEYS.get(write.table):
                _merge(table, write, properties)
            else:
                write_deltalake(table, write.rows, mode="append", commit_properties=properties)
        return self._store.table(write.table).version()


def _merge(table: DeltaTable, write: TableWrite, properties: CommitProperties) -> None:
    definition = definitions.table(write.table)
    columns = {name: f"s.{name}" for name in definition.schema.names}
    deleted, updated, inserted = merge_conditions(write.table)
    same = " AND ".join(f"t.{name} = s.{name}" for name in definition.key)
    # the literals let delta-rs leave out the files that cannot hold a match
    pruned = is_in(f"t.{definition.key[0]}", write.rows.column(definition.key[0]).unique().to_pylist())
    (
        table.merge(write.rows, f"{pruned} AND {same}", source_alias="s", target_alias="t", commit_properties=properties)
        .when_matched_delete(deleted)
        .when_matched_update(columns, predicate=updated)
        .when_not_matched_insert(columns, predicate=inserted)
        .execute()
    )
