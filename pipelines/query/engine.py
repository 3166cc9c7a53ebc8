"""`grouplake sql`: DataFusion over the tables at the versions of one batch, with the views."""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from typing import Protocol

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from pipelines.query.statement import READING, is_reading
from pipelines.runtime.errors import RemovedState, UsageError
from pipelines.tables import definitions
from pipelines.tables.damage import damage_in, damaged_tables
from pipelines.tables.query_rows import rows_of, stream_of
from pipelines.tables.store import Batch, TableStore, gone, literal, timestamp_literal

#: Error of DataFusion for a table that was not provided, with its schema.
NO_TABLE = re.compile(r"table 'datafusion\.([^']+)\.([^'.]+)' not found")
#: Error of DataFusion for a file that the Delta log names but that was removed.
_MISSING_FILE = re.compile(r"Object at location .* not found")
#: The same error with the table and the file.
_MISSING_OF_TABLE = re.compile(r"Object at location \S*/([^/\s]+)/([^/\s]+) not found")

#: Names that an error suggests, and how similar they are at least.
_SUGGESTED, _LEAST_SIMILARITY = 3, 0.7

#: Histories that samples append to.
_SAMPLED_HISTORIES = frozenset(definitions.SAMPLED).intersection(definitions.APPENDED)

#: DataFusion's default schema, which has the plain names.
PUBLIC = "public"

#: Where to read: a batch id, a time, or either as text; None for the last complete batch.
AsOf = str | int | datetime | None


class Queries(Protocol):
    """Where tables and views are read: a snapshot, or a state of the dashboard."""

    def query(self, sql: str) -> pa.Table:
        """The rows of a reading statement."""


class Snapshot:
    """All tables and views at the versions of one batch. Several threads may query it at the same time."""

    def __init__(
        self,
        store: TableStore,
        batch: Batch,
        retention_ms: int | None = None,
        *,
        builder: QueryBuilder | None = None,
        schema: str = PUBLIC,
    ) -> None:
        """`retention_ms` replaces the retention of the batch in the computation of expiry times.

        Snapshots of several folders share one `builder`, each with a `schema` of its own.
        """
        self.batch = batch
        self._store = store
        self._builder = builder or QueryBuilder()
        self._schema = schema
        self._provided: set[str] = set()
        # a thread must not find a name provided whose table is still being opened by another one
        self._providing = threading.RLock()
        # literals, because joins with `batches`, which may have thousands of files, would hold all offsets in memory
        self._of_batch = {
            "era": literal(batch.era),
            "retention_ms": literal(batch.retention_ms if retention_ms is None else retention_ms),
            "finished_at": timestamp_literal(batch.finished_at),
            "transaction_ms": literal(batch.transaction_ms),
            # views need only whether it is known
            "transaction_offsets": "NULL" if batch.transaction_offsets is None else literal("known"),
        }

    @classmethod
    def open(cls, root: str, as_of: AsOf = None) -> "Snapshot":
        """The tables under `root` at the last complete batch, or as of a batch id or an ISO 8601 time (UTC).

        Raises:
            UsageError: there are no tables, or no such batch.
        """
        store = TableStore(root)
        return cls(store, batch_at(store, as_of))

    @property
    def root(self) -> str:
        """The folder of the tables of the batch; that of rebuilt tables is below the one that was opened."""
        return self._store.root

    def location(self, name: str) -> str:
        """Location of a table, which a rebuild changes."""
        return self._store.path(name)

    def files(self, name: str) -> frozenset[str]:
        """Names of the data files of a table of the batch.

        Raises:
            ReplacedTables: the tables were rebuilt since the batch was read.
        """
        self._store.expect_tables_of(self.batch)
        uris = self._store.at(name, self.batch.versions[name]).file_uris()
        return frozenset(uri.rpartition("/")[2] for uri in uris)

    def read_by(self, sql: str) -> set[tuple[str, str | int]]:
        """What a statement reads, directly and through views: tables with their versions, and views with their text.

        Two snapshots for which this is equal have the same rows. The tables of alerts have no version here.
        """
        named = set(re.findall(r"\w+", sql))
        views = named.intersection(definitions.VIEWS)
        views.update(*map(definitions.views_of_view, views))
        tables = filter(self._has, named.union(*map(definitions.read_by_view, views)))
        texts: set[tuple[str, str | int]] = {(name, definitions.view_sql(name, self._of_batch)) for name in views}
        # the rows of `batches` until a batch have no version
        versions = self.batch.versions
        return texts.union((self.location(name), versions.get(name, self.batch.batch_id)) for name in tables)

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables that the batch has, and those of alerts if the folder has them.

        An earlier version of Grouplake wrote fewer of them.
        """
        return (*filter(self._has, definitions.WRITE_ORDER), *filter(self._store.has, definitions.ALERTS))

    def _has(self, name: str) -> bool:
        return name == "batches" or name in self.batch.versions

    @property
    def views(self) -> tuple[str, ...]:
        """The views whose tables the batch has."""
        absent = {name for name in definitions.WRITE_ORDER if not self._has(name)}
        return tuple(name for name in definitions.VIEWS if absent.isdisjoint(definitions.tables_of_view(name)))

    @property
    def batches(self) -> Mapping[str, Batch]:
        """The batch, under the empty name: the folder is not one of several clusters."""
        return {"": self.batch}

    def as_of(self, as_of: int | datetime) -> "Snapshot":
        """The same tables at a batch id, or at the newest batch that was complete at a time.

        Raises:
            UsageError: no such batch.
        """
        return Snapshot(self._store, self._store.batch_as_of(as_of))

    def alert_versions(self) -> tuple[int, ...]:
        """Versions of the tables that are not part of a batch, as far as they exist."""
        return tuple(self._store.table(name).version() for name in definitions.ALERTS if self._store.has(name))

    def reopened(self) -> "Snapshot":
        """The same batch, with the newest rows of the tables that are not part of a batch."""
        return Snapshot(TableStore(self._store.folder), self.batch)

    def newest(self) -> "Snapshot":
        """The same tables at the last complete batch."""
        return Snapshot(self._store, self._store.last_batch() or self.batch)

    def query(self, sql: str) -> pa.Table:
        """Return the rows of one reading statement.

        Raises:
            UsageError: not a reading statement, or DataFusion rejects it.
            DamagedTables: a file of the tables is damaged or missing.
            ReplacedTables: the tables were rebuilt since the batch was read.
        """
        expect_reading(sql)
        self._provide(sql)
        return self._read(sql)

    def _provide(self, sql: str) -> None:
        """Open the tables and create the views that `sql` names; opening all takes longer than most queries."""
        with self._providing:
            for name in re.findall(r"\w+", sql):
                self.provide(name)

    def provide(self, name: str) -> None:
        """Open the table or create the view of that name, if the batch has it."""
        if name in self._provided:
            return
        if name in definitions.VIEWS:
            self._provided.add(name)
            for read in definitions.read_by_view(name):
                self.provide(read)
            self._create_view(name, definitions.view_sql(name, self._of_batch))
        elif name == "batches":
            self._provided.add(name)
            # the row of a batch is in a later version of `batches` than the row can name
            batches = self._store.table("batches")
            self._store.expect_tables_of(self.batch)
            self._register("all_batches", batches)
            self._create_view("batches", f"SELECT * FROM all_batches WHERE batch_id <= {self.batch.batch_id}")
        elif name in definitions.ALERTS and self._store.has(name):
            self._provided.add(name)
            self._register(name, self._store.table(name))
        elif name in self.batch.versions:
            self._store.expect_tables_of(self.batch)
            self._provided.add(name)
            newest = self._store.table(name) if name in _SAMPLED_HISTORIES else None
            if newest is None or newest.version() == self.batch.versions[name]:
                self._register(name, self._store.at(name, self.batch.versions[name]))
            else:
                # earlier versions are kept for a short time only, and their rows are in the newest one, apart from thinned ones
                self._register(f"all_{name}", newest)
                self._create_view(name, f"SELECT * FROM all_{name} WHERE batch_id <= {self.batch.batch_id}")

    def _register(self, name: str, table: DeltaTable) -> None:
        self._builder.register(f"{quoted(self._schema)}.{name}", table)

    def _create_view(self, name: str, query: str) -> None:
        if self._schema == PUBLIC:
            self._read(f"CREATE VIEW {name} AS {query}")
            return
        # names in the query are resolved when the view is created
        self._read(f"SET datafusion.catalog.default_schema = {literal(self._schema)}")
        try:
            self._read(f"CREATE VIEW {name} AS {query}")
        finally:
            self._read(f"SET datafusion.catalog.default_schema = {literal(PUBLIC)}")

    def stream(self, sql: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Schema and rows of one reading statement, read as they are consumed. Both raise the errors of `query`."""
        expect_reading(sql)
        self._provide(sql)
        with self._usage_errors():
            schema, batches = stream_of(self._builder.execute(sql))
        return schema, self._batches(batches)

    def _batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self._usage_errors():
            yield from batches

    def _read(self, sql: str) -> pa.Table:
        with self._usage_errors():
            return rows_of(self._builder.execute(sql))

    @contextmanager
    def _usage_errors(self) -> Iterator[None]:
        """Raise DataFusion's errors as UsageError, or as DamagedTables if a file of the newest batch is damaged or missing."""
        try:
            yield
        except (MemoryError, pa.ArrowMemoryError):
            raise
        except Exception as error:  # DataFusion's errors reach Python as bare Exception
            damage = damage_in(error)
            if damage is not None and (not is_missing_file(error) or self._is_of_newest(error)):
                raise damaged_tables(damage, self._store.root) from error
            if is_missing_file(error):
                raise RemovedState(_replaced_table(error, self.batch) or gone(f"batch {self.batch.batch_id}")) from error
            absent = self._absent(str(error))
            if absent is not None:
                raise UsageError(absent) from error
            raise UsageError(f"query failed: {' '.join(str(error).split())}") from error

    def _is_of_newest(self, error: Exception) -> bool:
        """True if the newest batch has the missing file: maintenance keeps all of its files."""
        found, last = _MISSING_OF_TABLE.search(str(error)), self._store.last_batch()
        if found is None or last is None:
            return last is not None and last.batch_id == self.batch.batch_id
        table, file = found[1], found[2]
        version = last.versions.get(table)
        if version is None:
            return table == "batches"
        return any(uri.rpartition("/")[2] == file for uri in self._store.at(table, version).file_uris())

    def _absent(self, error: str) -> str | None:
        """Message for a name that the batch does not have: a table of a later version of Grouplake, or none at all."""
        found = NO_TABLE.search(error)
        if found is None or found[1] != self._schema:
            return None
        return self.missing(found[2]) or unknown_name(found[2], (*self.tables, *self.views))

    def missing(self, name: str) -> str | None:
        """Message for a table of Grouplake that the batch does not have; None if it has it, or for another name."""
        if name in definitions.ALERTS and not self._store.has(name):
            return f"no table {name} under {self._store.root}: `grouplake alerts` creates it"
        if name not in definitions.WRITE_ORDER or self._has(name):
            return None
        if not self.batch.versions:
            return (
                f"batch {self.batch.batch_id} was written before the tables under {self._store.root} were rebuilt: "
                "its tables are only in the folder that `grouplake rebuild` has replaced"
            )
        return (
            f"batch {self.batch.batch_id} under {self._store.root} has no table {name}: an earlier version of Grouplake "
            "wrote it; the next `grouplake run` adds the table"
        )


def unknown_name(name: str, names: Iterable[str]) -> str:
    """Message for a name that is no table or view, with the nearest of `names`."""
    nearest = get_close_matches(name.lower(), names, _SUGGESTED, _LEAST_SIMILARITY)
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else "`grouplake sql --help` lists them"
    return f"no table or view {name!r}: {hint}"


def is_missing_file(error: Exception) -> bool:
    """True for the error of a query whose batch is older than the retention of the tables."""
    return _MISSING_FILE.search(str(error)) is not None


def _replaced_table(error: Exception, batch: Batch) -> str | None:
    """Message for a missing file of a table that every sample replaces."""
    found = _MISSING_OF_TABLE.search(str(error))
    if found is None or found[1] not in definitions.REPLACED:
        return None
    return (
        f"table {found[1]} of batch {batch.batch_id} can no longer be read: its files are removed {definitions.SAMPLED_HOURS} h "
        "after the next sample; read lag_history instead, or use `grouplake lag --as-of`"
    )


def expect_reading(sql: str) -> None:
    """Raise UsageError for a statement that does more than read."""
    if not is_reading(sql):
        raise UsageError(
            f"only queries are allowed here: begin with one of {', '.join(READING)}, and use no statement that writes"
        )


def batch_at(store: TableStore, as_of: AsOf) -> Batch:
    """The last complete batch, or the one of an id or a time (see `parse_as_of`).

    Raises:
        UsageError: there are no tables, no such batch, or a time in the future.
    """
    if as_of is not None:
        wanted = parse_as_of(as_of)
        expect_past(wanted, store)
        return store.batch_as_of(wanted)
    batch = store.last_batch()
    if batch is None:
        raise UsageError(f"the tables under {store.root} have no complete batch yet")
    return batch


def expect_past(wanted: int | datetime, store: TableStore, option: str = "--as-of") -> None:
    """Raise UsageError for a time in the future, of which nothing is known. A batch may be newer than this machine's clock."""
    if not isinstance(wanted, datetime):
        return
    at = wanted if wanted.tzinfo is not None else wanted.replace(tzinfo=UTC)
    now = datetime.now(UTC)
    if at <= now:
        return
    newest = store.last_batch()
    if newest is None or at > newest.finished_at:
        raise UsageError(f"{option} {at.isoformat()} is in the future: use a time until now, {now:%Y-%m-%dT%H:%M:%SZ}")


def parse_as_of(as_of: str | int | datetime, option: str = "--as-of") -> int | datetime:
    """A batch id, or a time, which may be an ISO 8601 text. Raises UsageError for another text."""
    if not isinstance(as_of, str):
        return as_of
    if re.fullmatch(r"[0-9]{1,18}", as_of):
        return int(as_of)
    try:
        return datetime.fromisoformat(as_of)
    except ValueError as error:
        raise UsageError(f"invalid {option} {as_of!r}: use a batch id or an ISO 8601 time") from error


def quoted(name: str) -> str:
    """`name` as a quoted SQL name."""
    return '"' + name.replace('"', '""') + '"'
