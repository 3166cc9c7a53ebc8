"""`grouplake sql`: DataFusion over the tables at the versions of one batch, with the views."""

import re
from datetime import datetime

import pyarrow as pa
from deltalake import QueryBuilder

from pipelines.errors import UsageError
from pipelines.query.statement import READING, is_reading
from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore, gone, literal

#: Error of DataFusion for a table that was not provided.
_NO_TABLE = re.compile(r"table '(?:\w+\.)*(\w+)' not found")
#: Error of DataFusion for a file that the Delta log names but that was removed.
_MISSING_FILE = re.compile(r"Object at location .* not found")


class Snapshot:
    """All tables and views at the versions of one batch."""

    def __init__(self, store: TableStore, batch: Batch, retention_ms: int | None = None) -> None:
        """`retention_ms` replaces the retention of the batch in the computation of expiry times."""
        self.batch = batch
        self._store = store
        self._builder = QueryBuilder()
        self._provided: set[str] = set()
        # literals, because joins with `batches`, which may have thousands of files, would hold all offsets in memory
        self._of_batch = {
            "era": literal(batch.era),
            "retention_ms": literal(batch.retention_ms if retention_ms is None else retention_ms),
        }

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

    def as_of(self, as_of: int | datetime) -> "Snapshot":
        """The same tables at a batch id, or at the newest batch that was complete at a time.

        Raises:
            UsageError: no such batch.
        """
        return Snapshot(self._store, self._store.batch_as_of(as_of))

    def query(self, sql: str) -> pa.Table:
        """Return the rows of one reading statement.

        Raises:
            UsageError: not a reading statement, or DataFusion rejects it.
        """
        if not is_reading(sql):
            raise UsageError(
                f"only queries are allowed here: begin with one of {', '.join(READING)}, and use no statement that writes"
            )
        self._provide(sql)
        return self._read(sql)

    def _provide(self, sql: str) -> None:
        """Open the tables and create the views that `sql` names; opening all takes longer than most queries."""
        for name in re.findall(r"\w+", sql):
            if name in self._provided:
                continue
            if name in definitions.VIEWS:
                self._provided.add(name)
                view = definitions.view_sql(name, self._of_batch)
                self._provide(view)
                self._read(f"CREATE VIEW {name} AS {view}")
            elif name == "batches":
                self._provided.add(name)
                # the row of a batch is in a later version of `batches` than the row can name
                self._builder.register("all_batches", self._store.table("batches"))
                self._read(f"CREATE VIEW batches AS SELECT * FROM all_batches WHERE batch_id <= {self.batch.batch_id}")
            elif name in self.batch.versions:
                self._provided.add(name)
                self._builder.register(name, self._store.at(name, self.batch.versions[name]))

    def _read(self, sql: str) -> pa.Table:
        try:
            return pa.table(self._builder.execute(sql).read_all())
        except Exception as error:  # DataFusion's errors reach Python as bare Exception
            if _MISSING_FILE.search(str(error)):
                raise UsageError(gone(f"batch {self.batch.batch_id}")) from error
            absent = self._absent(str(error))
            if absent is not None:
                raise UsageError(absent) from error
            raise UsageError(f"query failed: {' '.join(str(error).split())}") from error

    def _absent(self, error: str) -> str | None:
        """Message for a table that the batch does not have, because an earlier version of Grouplake wrote it."""
        found = _NO_TABLE.search(error)
        if found is None or found[1] not in definitions.WRITE_ORDER:
            return None
        return (
            f"batch {self.batch.batch_id} under {self._store.root} has no table {found[1]}: an earlier version of Grouplake "
            "wrote it; the next `grouplake run` adds the table"
        )


def _parse_as_of(text: str) -> int | datetime:
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"invalid --as-of {text!r}: use a batch id or an ISO 8601 time") from error
