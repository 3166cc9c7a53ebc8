"""`grouplake sql`: DataFusion over the tables at the versions of one batch, with the views."""

import re
from datetime import datetime

import pyarrow as pa
from deltalake import QueryBuilder

from pipelines.errors import UsageError
from pipelines.query.statement import READING, is_reading
from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore


class Snapshot:
    """All tables and views as one batch left them."""

    def __init__(self, store: TableStore, batch: Batch, retention_ms: int | None = None) -> None:
        """`retention_ms` asks for the expiry times of another retention than the batch was written with."""
        self.batch = batch
        self._builder = QueryBuilder()
        for name in definitions.WRITE_ORDER:
            if name in batch.versions:
                self._builder.register(name, store.at(name, batch.versions[name]))
        # the row of a batch is in a later version of `batches` than any that it could name
        self._builder.register("all_batches", store.table("batches"))
        self._read(f"CREATE VIEW batches AS SELECT * FROM all_batches WHERE batch_id <= {batch.batch_id}")
        for name in definitions.VIEWS:
            sql = definitions.view_sql(name)
            if retention_ms is not None:
                sql = sql.replace("batch.retention_ms", str(retention_ms))
            self._read(f"CREATE VIEW {name} AS {sql}")

    @classmethod
    def open(cls, root: str, as_of: str | None = None) -> "Snapshot":
        """The tables under `root` at the last complete batch, or as of a batch id or an ISO 8601 time (UTC).

        Raises:
            UsageError: there are no tables, or no such batch.
        """
        store = TableStore(root)
        if as_of is None:
            batch = store.last_batch()
            if batch is None:
                raise UsageError(f"the tables under {root} have no complete batch yet")
            return cls(store, batch)
        return cls(store, store.batch_as_of(_parse_as_of(as_of)))

    def query(self, sql: str) -> pa.Table:
        """Rows of one reading statement.

        Raises:
            UsageError: it is not one, or DataFusion refuses it.
        """
        if not is_reading(sql):
            raise UsageError(f"only queries are allowed here ({', '.join(READING)} …), nothing that runs or writes")
        return self._read(sql)

    def _read(self, sql: str) -> pa.Table:
        try:
            return pa.table(self._builder.execute(sql).read_all())
        except Exception as error:  # DataFusion's errors reach Python as bare Exception
            raise UsageError(f"query failed: {' '.join(str(error).split())}") from error


def _parse_as_of(text: str) -> int | datetime:
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--as-of takes a batch id or an ISO 8601 time, not {text!r}") from error
