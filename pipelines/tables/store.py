"""The folder of tables: creating them, opening them at the versions of a batch, finding the last batch.

All access is through delta-rs, so that reading and checking need no JVM.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from pipelines.runtime.errors import ForeignFeature, GrouplakeError, RemovedState, ReplacedTables, TablesError, UsageError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.timestamps import to_us
from pipelines.tables import definitions
from pipelines.tables.containment import expect_own_files, expect_own_log, expect_readable_protocol
from pipelines.tables.damage import REMEDY, damage_in, damaged_tables, is_damaged_log
from pipelines.tables.foreign_commits.log import describe_foreign_feature
from pipelines.tables.layout import expect_readable, store_layout
from pipelines.tables.location import local_folder
from pipelines.tables.object_stores import reason_of
from pipelines.tables.pointer import Pointer
from pipelines.tables.query_rows import rows_of
from pipelines.tables.replaced_tables import describe_replaced_table

#: Application id of the transactions that write rows of `batches`; their version is the batch id.
APP_ID = "grouplake"

#: Properties of the table `batches`: the ids of the topics that the tables are made from, as Kafka prints them.
OFFSETS_TOPIC_ID, TRANSACTIONS_TOPIC_ID = "grouplake.topic_id", "grouplake.transaction_topic_id"

#: Most values in an IN predicate; for more values the predicate is their range.
MAX_LITERALS = 2_000


#: Default of `status.transaction_ms`, for batches of layouts before 1.3.
DEFAULT_TRANSACTION_MS = 900_000


@dataclass(frozen=True)
class Batch:
    """The `batches` row of a batch, with its next log offsets and its table versions."""

    batch_id: int
    started_at: datetime
    finished_at: datetime
    generation: int
    era: str
    retention_ms: int
    records_read: int
    records_kept: int
    next_offsets: Mapping[int, int]
    versions: Mapping[str, int]
    phase_ms: Mapping[str, int]
    written_by: str | None = None
    #: Position in `__transaction_state`; None if no batch has read it.
    transaction_offsets: Mapping[int, int] | None = None
    #: All records that were appended to the log before this time are in the tables; None if unknown.
    log_read_until: datetime | None = None
    #: Records that were left to read when the batch was read; None if unknown.
    records_behind: int | None = None
    #: Expected time between two batches of the job that wrote this one; None if unknown.
    interval_seconds: int | None = None
    #: Age above which an open transaction hangs: the setting of the job that wrote this batch.
    transaction_ms: int = DEFAULT_TRANSACTION_MS
    #: Partitions of `__consumer_offsets` by which groups are placed; None if unknown.
    log_partition_count: int | None = None
    #: Partitions of `__transaction_state` by which transactional ids are placed; None if unknown.
    transaction_partition_count: int | None = None
    #: Settings of the section `status` of the job that wrote this batch, as a JSON object; None if unknown.
    status_settings: str | None = None
    #: Folder of a rebuild whose tables the versions are of, empty before the first rebuild; None if unknown.
    rebuilt_in: str | None = field(default=None, compare=False)

    @property
    def complete_until(self) -> datetime:
        """Time of the state in the tables: `log_read_until`, or the end of a batch that does not have it."""
        return self.log_read_until or self.finished_at

    @property
    def has_transactions(self) -> bool:
        """True if the batch has the tables of transactions, which earlier layouts lack."""
        return self.versions.keys() >= set(definitions.FROM_TRANSACTIONS)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Batch":
        """Build a batch from a row of `batches`, which may have fewer or more columns in a folder of another layout."""
        maps = {name: dict(row[name]) for name in ("next_offsets", "versions", "phase_ms")}
        if row.get("transaction_offsets") is not None:
            maps["transaction_offsets"] = dict(row["transaction_offsets"])
        known = {field.name: row[field.name] for field in fields(cls) if field.name in row}
        if known.get("transaction_ms") is None:
            # a batch of an earlier layout
            known["transaction_ms"] = DEFAULT_TRANSACTION_MS
        return cls(**known | maps)


class TableStore:
    """The tables under one folder or object-store URI, `folder`; `root` is where `grouplake rebuild` has left them, if it has.

    With `any_layout`, also tables of layouts that this version cannot read.
    """

    def __init__(self, folder: str, *, any_layout: bool = False) -> None:
        self.folder = folder.rstrip("/") or "/"
        self._pointer = Pointer(self.folder)
        self.root = self._pointer.present
        self._any_layout = any_layout
        self._open: dict[str, DeltaTable] = {}

    def path(self, name: str) -> str:
        """Location of table `name`."""
        return f"{self.folder if name in definitions.ALERTS else self.root}/{name}"

    def uri(self, name: str) -> str:
        """Location of table `name` as a URI, which Spark does not look for in its default file system."""
        folder = local_folder(self.path(name))
        return self.path(name) if folder is None else folder.absolute().as_uri()

    def exists(self) -> bool:
        """True if the tables exist: `batches` is created last."""
        return self.has("batches")

    def has(self, name: str) -> bool:
        """True if table `name` exists. Raises UsageError if the store cannot be read."""
        try:
            return DeltaTable.is_deltatable(self.path(name))
        except (DeltaError, OSError) as error:
            raise UsageError(f"cannot read {self.path(name)}: {reason_of(error)}") from error

    def expect_writable(self) -> None:
        """Raise UsageError if the tables are in a local folder that this user cannot write into."""
        folder = self.path("batches")
        if "://" not in folder and not os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise UsageError(f"cannot write into {folder}: no permission, or a read-only file system")

    def create(self) -> None:
        """Create the missing tables."""
        for table in definitions.tables().values():
            if not self.has(table.name):
                try:
                    DeltaTable.create(
                        self.path(table.name),
                        schema=table.commented_schema,
                        description=table.description,
                        configuration=dict(table.properties),
                        mode="ignore",
                    )
                except (DeltaError, OSError) as error:
                    if not self.has(table.name):
                        raise UsageError(f"cannot create table {self.path(table.name)}: {reason_of(error)}") from error
                if table.name == "batches":
                    # as a property in the statement of creation, delta-rs rejects it
                    store_layout(self._created(table.name), self.root)
                failpoint(f"created:{table.name}")

    def _created(self, name: str) -> DeltaTable:
        try:
            return DeltaTable(self.path(name))
        except DeltaError as error:
            # as with the remains of a log whose entries were lost
            raise self._unreadable(name, error) from error

    def _unreadable(self, name: str, error: DeltaError, version: int | None = None) -> GrouplakeError:
        self._expect_present(name)
        line = describe_foreign_feature(self.path(name), version)
        if line is not None:
            return ForeignFeature(line)
        remedy = f"; {REMEDY}" if is_damaged_log(error) else ""
        return TablesError(f"cannot open table {name} under {self.root}: {reason_of(error)}{remedy}")

    def _expect_present(self, name: str) -> None:
        replaced = describe_replaced_table(self.path(name))
        if replaced is not None:
            raise ReplacedTables(replaced)

    def table(self, name: str, *, look_now: bool = False) -> DeltaTable:
        """Return table `name` at its newest version. With `batches`, tables that were rebuilt meanwhile are found.

        In an object store the pointer to them is read every few seconds only, unless `look_now` is set.

        Raises:
            ForeignFeature: another program has raised the protocol of the table to one that Grouplake cannot read.
            ReplacedTables: the table was rebuilt meanwhile; `batches` finds the new tables.
        """
        if name == "batches":
            self.follow(look_now=look_now)
        try:
            return self._newest(name)
        except ReplacedTables:
            if name != "batches" or not self.follow(look_now=True):
                raise
            return self._newest(name)

    def follow(self, *, look_now: bool = False) -> bool:
        """Follow the pointer to tables that were rebuilt, without opening them. Returns whether it has changed."""
        if not self._pointer.look(now=look_now):
            return False
        self.root = self._pointer.present
        self._open.clear()
        return True

    def _newest(self, name: str) -> DeltaTable:
        if name not in self._open or _is_removed(self._open[name]):
            self._open[name] = self._load(name)
        else:
            self._update(name)
        # the protocol may have been raised since the table was opened
        expect_readable_protocol(self.path(name), self._open[name])
        return self._open[name]

    def _update(self, name: str) -> None:
        """Bring an open table to its newest version."""
        if not _is_newest(self._open[name]):
            try:
                self._open[name].update_incremental()
            except DeltaError as error:
                raise self._unreadable(name, error) from error

    def at(self, name: str, version: int) -> DeltaTable:
        """Return table `name` at `version`, only to be read. Later versions may have a protocol that cannot be read.

        An open table is updated and used if that is its newest version: opening a table reads its log since the last
        checkpoint.
        """
        opened = self._open.get(name)
        if opened is None:
            return self._open.setdefault(name, self._load(name, version))
        if opened.version() < version and not _is_removed(opened):
            with suppress(ForeignFeature):
                self._update(name)
        if opened.version() != version:
            return self._load(name, version)
        expect_readable_protocol(self.path(name), opened)
        return opened

    def _load(self, name: str, version: int | None = None) -> DeltaTable:
        try:
            expect_own_log(self.path(name), version)
        except TablesError:
            self._expect_present(name)
            raise
        except UsageError as error:
            self._expect_present(name)
            line = describe_foreign_feature(self.path(name), version)
            if line is None:
                raise
            raise ForeignFeature(f"{line}; {error}") from error
        try:
            found = DeltaTable(self.path(name), version=version)
        except DeltaError as error:
            self._expect_present(name)
            if version is not None and self.table(name).version() >= version:
                raise RemovedState(gone(f"version {version} of table {name} under {self.root}")) from error
            if not isinstance(error, TableNotFoundError):
                raise self._unreadable(name, error, version) from error
            raise UsageError(f"no table {name} under {self.root}: is this a folder that `grouplake run` wrote?") from error
        except OSError as error:
            raise TablesError(f"cannot open table {name} under {self.root}: {reason_of(error)}") from error
        expect_own_files(self.path(name), found)
        if name == "batches" and not self._any_layout:
            expect_readable(found, self.root)
        return found

    def topic_id(self, kind: str = OFFSETS_TOPIC_ID) -> str | None:
        """Id of a topic that the tables are made from; None until a source reports one."""
        return self.table("batches").metadata().configuration.get(kind)

    def remember_topic_id(self, topic_id: str, kind: str = OFFSETS_TOPIC_ID) -> None:
        """Store the id of a topic; all batches must have the same."""
        if self.topic_id(kind) != topic_id:
            try:
                self.table("batches").alter.set_table_properties({kind: topic_id}, raise_if_not_exists=False)
            except DeltaError as error:
                raise TablesError(f"cannot store the topic id in {self.path('batches')}: {reason_of(error)}") from error

    def last_batch(self) -> Batch | None:
        """Return the newest complete batch, None before the first."""
        return self.last_batch_of(self.table("batches"))

    def last_batch_of(self, batches: DeltaTable) -> Batch | None:
        """Return the newest complete batch in the opened version of `batches`."""
        newest = batches.transaction_version(APP_ID)
        if newest is None:
            return None
        return next(iter(self._batches(batches, f"batch_id = {newest}")), None)

    def first_batch(self) -> Batch | None:
        """Return the oldest batch, None before the first."""
        return next(iter(self._batches(self.table("batches"), "TRUE ORDER BY batch_id LIMIT 1")), None)

    def batch_as_of(self, as_of: int | datetime) -> Batch:
        """Return the batch of that id, or the newest that was complete at that time.

        Raises:
            UsageError: no such batch.
        """
        condition = f"finished_at <= {timestamp_literal(as_of)}" if isinstance(as_of, datetime) else f"batch_id = {as_of}"
        found = self._batches(self.table("batches"), f"{condition} ORDER BY batch_id DESC LIMIT 1")
        if not found:
            raise UsageError(f"no batch as of {as_of} under {self.root}")
        return found[0]

    def expect_tables_of(self, batch: Batch) -> None:
        """Raise ReplacedTables if the tables were rebuilt since the batch was read: its versions are of other tables."""
        if batch.rebuilt_in not in (None, self._rebuilt_in):
            raise ReplacedTables(
                f"the tables under {self.folder} were rebuilt since batch {batch.batch_id} was read: open them again"
            )

    @property
    def _rebuilt_in(self) -> str:
        return self.root.removeprefix(self.folder).strip("/")

    def _batches(self, table: DeltaTable, condition: str) -> list[Batch]:
        try:
            rows = query({"batches": table}, f"SELECT * FROM batches WHERE {condition}")
            return [replace(Batch.from_row(row), rebuilt_in=self._rebuilt_in) for row in rows.to_pylist()]
        except Exception as error:  # DataFusion's errors reach Python as bare Exception
            damage = damage_in(error)
            if damage is not None:
                raise damaged_tables(damage, table.table_uri.rstrip("/").rpartition("/")[0]) from error
            raise TablesError(f"cannot read the table batches ({type(error).__name__}: {reason_of(error)})") from error


def _is_removed(table: DeltaTable) -> bool:
    """True if the local log of a table has no opened version any more: it was removed, or replaced by a shorter one."""
    folder = local_folder(table.table_uri)
    return folder is not None and not _log_entry(folder, table.version()).exists()


def _is_newest(table: DeltaTable) -> bool:
    """True if the local log of a table has the opened version and no next one.

    delta-rs lists the whole log for this: 20 ms after 10,000 commits, many times per batch. Log cleanup removes the oldest
    entries, so an existing entry without a next one is the last.
    """
    folder = local_folder(table.table_uri)
    if folder is None:
        return False
    return _log_entry(folder, table.version()).exists() and not _log_entry(folder, table.version() + 1).exists()


def _log_entry(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020}.json"


def query(tables: Mapping[str, DeltaTable], sql: str) -> pa.Table:
    """Return the rows that `sql` selects from `tables` (DataFusion, without a JVM)."""
    builder = QueryBuilder()
    for name, table in tables.items():
        builder.register(name, table)
    return rows_of(builder.execute(sql))


def literal(value: object) -> str:
    """Format `value` as an SQL literal."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def timestamp_literal(at: datetime) -> str:
    """Format a time (UTC if it has no zone) as a literal of the type of the tables' timestamp columns.

    DataFusion reads a TIMESTAMP literal as nanoseconds, with a range from 1677 to 2262, and casts the column in a comparison. A
    later time in the column, such as the expiry of a commit that never expires, would be an error.
    """
    return f"arrow_cast({to_us(at)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"


def is_in(column: str, values: Iterable[object]) -> str:
    """Build a predicate that file statistics can prune: the list of values, or their range if there are many."""
    distinct = sorted(set(values))  # type: ignore[type-var]  # of one column, so that they compare
    if not distinct:
        return "FALSE"
    if len(distinct) > MAX_LITERALS:
        return f"{column} BETWEEN {literal(distinct[0])} AND {literal(distinct[-1])}"
    return f"{column} IN ({', '.join(map(literal, distinct))})"


def gone(what: str) -> str:
    """Message for a state older than the retention of the tables."""
    return f"{what} can no longer be read: `grouplake maintain` has removed what is older than maintain.vacuum_hours"
