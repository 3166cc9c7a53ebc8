"""The writer of the tables: a claim that fences earlier writers, and commits that expect known table versions.

Delta has transactions on single tables only. The log of `batches` orders the writers: each claims the tables there with the next
writer epoch (`generation`), as a transactional producer gets its next epoch, and each `batches` row is a compare-and-swap on the
version that its writer has seen last. So only one of two writers can finish a batch. A fenced writer may still commit to other
tables; the next commit of the current writer there detects the unexpected version and rolls it back (docs/adr/0009). Commits of
other programs that are harmless stay; the others are rolled back with a line about each (docs/adr/0055).
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from pipelines.runtime.errors import AnotherWriter, RemovedState, ReplacedTables, TablesError, UsageError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.phases import Phases
from pipelines.runtime.progress import print_progress
from pipelines.runtime.version import build_version
from pipelines.tables import definitions
from pipelines.tables.delta_writes import checkpoint_when_due, stamped, write_rows
from pipelines.tables.foreign_commits.commit import STAMP
from pipelines.tables.foreign_commits.log import commits_after, ends_at, expect_writable_protocol, has_later_commit, state_of
from pipelines.tables.foreign_commits.rules import Review, reverted_lines, review
from pipelines.tables.layout import LAYOUT, expect_writable, layout_of, store_layout
from pipelines.tables.migration import add_missing_columns
from pipelines.tables.object_stores import reason_of
from pipelines.tables.reached_position import ReachedPosition
from pipelines.tables.replaced_tables import finish_blocking
from pipelines.tables.store import APP_ID, DEFAULT_TRANSACTION_MS, Batch, TableStore

#: Application id of the transactions on `batches` with which writers claim the tables; their version is the writer epoch.
WRITER_ID = "grouplake-writer"

#: A fenced writer makes at most one commit to a table before it stops; more in sequence are from another program.
_ATTEMPTS = 20


class CommitConflict(Exception):
    """Raised by a change whose table is not at the expected version."""


#: Changes a table at the expected version, in a commit with the stamp; returns False if the table did not need the change.
Change = Callable[[DeltaTable, str], bool]


def newest_claim(batches: DeltaTable) -> int:
    """Writer epoch of the newest claim in table `batches`; 0 without a claim."""
    return batches.transaction_version(WRITER_ID) or 0


class TablesWriter:
    """The right to write the tables of a store, from `claim` until another writer claims them.

    `last` is the last complete batch, `generation` the writer epoch. `interval_seconds` is the expected time between two batches
    of the job: 0 if none is expected, None for a writer that is not the job and keeps the expectation of the last batch.
    """

    def __init__(
        self,
        store: TableStore,
        generation: int,
        last: Batch | None,
        claimed_version: int,
        interval_seconds: int | None = None,
    ) -> None:
        self.store = store
        self.generation = generation
        self.last = last
        self.interval_seconds = interval_seconds
        self._batches_version = claimed_version
        #: Folder of the tables that were claimed: rebuilt ones have versions of their own.
        self._root = store.root
        #: Known versions of the tables: after the last batch, and in the current batch.
        self._left: dict[str, int] = {}
        self._versions: dict[str, int] = {}

    @classmethod
    def claim(
        cls, store: TableStore, interval_seconds: int | None = None, replaced: Mapping[str, int] | None = None
    ) -> "TablesWriter":
        """Take over the tables from the previous writer, and roll back the commits of a batch without a `batches` row.

        Tables and columns that are new in this version of Grouplake are created, and tables that a rebuild has replaced are
        blocked if they are not yet. `replaced` has the versions of tables that count instead of those in the last batch.

        Raises:
            ForeignFeature: another program has raised the protocol of a table.
            UsageError: a newer version of Grouplake wrote the tables.
            TablesError: the tables cannot be restored to the last batch.
        """
        generation, last, version = cls.fence(store)
        failpoint("claimed")
        finish_blocking(store.folder)
        if last is None or set(definitions.WRITE_ORDER[:-1]) - set(last.versions):
            store.create()
        writer = cls(store, generation, last, version + 1, interval_seconds)
        writer._roll_back(replaced or {})
        if layout_of(store.table("batches"), store.root) < LAYOUT:
            writer._migrate()
        return writer

    @staticmethod
    def fence(store: TableStore, *, any_layout: bool = False) -> tuple[int, Batch | None, int]:
        """Commit a claim, after which no earlier writer can finish a batch.

        Returns its writer epoch, the last batch, and the version of `batches` before the claim. Raises as `claim` does.
        """
        while True:
            batches = store.table("batches")
            expect_writable_protocol(store.path("batches"), batches)
            version, last = batches.version(), store.last_batch_of(batches)
            if not any_layout:
                expect_writable(batches, store.root)
                expect_known_tables(store, last)
            generation = max(newest_claim(batches), last.generation if last else 0) + 1
            properties = CommitProperties(app_transactions=[Transaction(WRITER_ID, generation)], max_commit_retries=0)
            try:
                batches.create_write_transaction([], "append", batches.schema(), commit_properties=properties)
                return generation, last, version
            except CommitFailedError as error:
                if store.table("batches").version() == version:
                    raise TablesError(f"cannot write {store.path('batches')}: {reason_of(error)}") from error

    def begin(self) -> int:
        """Begin a batch and return its id. `commit` rolls back the commits of a failed batch in the tables that it writes.

        Raises:
            ForeignFeature: another program has raised the protocol of a table. In an object store only `commit` looks for that.
        """
        self._versions = dict(self._left)
        for name, version in {**self._left, "batches": self._batches_version}.items():
            if has_later_commit(self.store.path(name), version):
                self._table(name)
        return self._batch_id

    @property
    def _batch_id(self) -> int:
        return self.last.batch_id + 1 if self.last else 0

    def version(self, name: str) -> int:
        """Known version of table `name`: of the current batch's last commit, or of the last batch."""
        return self._versions[name]

    def commit(self, name: str, change: Change) -> int:
        """Run `change` on table `name` and return the version of the table afterwards.

        Commits of other writers since this writer's last commit are rolled back first, except harmless ones of other programs.

        Raises:
            AnotherWriter: another job took over the tables.
            TablesError: the tables cannot be written.
        """
        for attempt in range(_ATTEMPTS):
            table = self._table(name)
            known = self._versions[name]
            if table.version() == known:
                try:
                    if not change(table, self._stamp(attempt)):
                        return known
                    if table.version() == known + 1:
                        self._versions[name] = known + 1
                        return known + 1
                except (CommitFailedError, CommitConflict) as error:
                    if self.store.table(name).version() == known:
                        raise TablesError(f"cannot write {self.store.path(name)}: {reason_of(error)}") from error
            self.expect_claim()
            self._settle(name)
        raise TablesError(f"another program keeps writing to {self.store.path(name)}: stop it and run again")

    def finish(
        self,
        phases: Phases,
        finished_at: datetime,
        *,
        era: str,
        retention_ms: int,
        next_offsets: Mapping[int, int],
        records_read: int = 0,
        records_kept: int = 0,
        transaction_offsets: Mapping[int, int] | None = None,
        reached: ReachedPosition | None = None,
        transaction_ms: int | None = None,
        log_partition_count: int | None = None,
        transaction_partition_count: int | None = None,
        status_settings: str | None = None,
        is_new_source: bool = False,
    ) -> Batch:
        """Write and return the row of `batches` that makes the current batch visible, with the known versions of the tables.

        Without `transaction_offsets`, the position in `__transaction_state` is that of the last batch. So are the position
        reached in the log, the age of a hanging transaction, the settings of the status, and the counts of log partitions.
        `is_new_source` if positions of the last batch are those of another source, so that only the age and the settings are.

        Raises:
            AnotherWriter: another job took over the tables; the batch is not visible.
        """
        last = self.last
        transaction_ms = transaction_ms or (last.transaction_ms if last else DEFAULT_TRANSACTION_MS)
        status_settings = status_settings or (last.status_settings if last else None)
        if is_new_source:
            last = None
        before = ReachedPosition() if last is None else ReachedPosition(last.log_read_until, last.records_behind)
        reached = before if reached is None else reached.after(before)
        batch = Batch(
            batch_id=self._batch_id,
            started_at=phases.started_at,
            finished_at=finished_at,
            generation=self.generation,
            era=era,
            retention_ms=retention_ms,
            records_read=records_read,
            records_kept=records_kept,
            next_offsets=next_offsets,
            versions=dict(self._versions),
            phase_ms=phases.ms,
            written_by=build_version(),
            transaction_offsets=transaction_offsets or (last.transaction_offsets if last else None),
            log_read_until=reached.read_until,
            records_behind=reached.records_behind,
            interval_seconds=self._interval_of_batch(),
            transaction_ms=transaction_ms,
            log_partition_count=log_partition_count or (last.log_partition_count if last else None),
            transaction_partition_count=transaction_partition_count or (last.transaction_partition_count if last else None),
            status_settings=status_settings,
        )
        failpoint("before:batches")
        try:
            self._append_row(batch)
        except BaseException as error:
            phases.failed(error)
            raise
        self.last = batch
        self._left = dict(self._versions)
        phases.finished(batch.batch_id, records_read, records_kept)
        failpoint("after:batches")
        return batch

    def _append_row(self, batch: Batch) -> None:
        """Append the row of a batch to `batches`, unless a commit whose response was lost has done so.

        Raises as `finish` does.
        """
        properties = CommitProperties(app_transactions=[Transaction(APP_ID, batch.batch_id)], max_commit_retries=0)
        for _ in range(_ATTEMPTS):
            # the log that has the claim of a rebuild may have been moved since the last look at the pointer
            table = self.store.table("batches", look_now=True)
            if table.version() == self._batches_version and self.store.root == self._root:
                try:
                    write_rows(table, _as_table(batch), "append", properties)
                    self._batches_version += 1
                    checkpoint_when_due(table)
                    return
                except CommitFailedError as error:
                    if self.store.table("batches").version() == self._batches_version:
                        raise TablesError(f"cannot write {self.store.path('batches')}: {reason_of(error)}") from error
            table = self.expect_claim()
            self._batches_version = table.version()
            if table.transaction_version(APP_ID) == batch.batch_id:
                return
        raise TablesError(f"another program keeps writing to {self.store.path('batches')}: stop it and run again")

    def _interval_of_batch(self) -> int | None:
        if self.interval_seconds is None:
            return self.last.interval_seconds if self.last else None
        return self.interval_seconds or None

    def remove_sampled_files(self) -> None:
        """Remove the files of the tables of samples that no version of the last SAMPLED_HOURS has; between two batches.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        for name in definitions.SAMPLED:
            self.remove_unneeded_files(name, definitions.SAMPLED_HOURS)

    def remove_unneeded_files(self, name: str, hours: int, *, full: bool = False) -> int:
        """Remove the files of a table that no version of the last `hours` has; between two batches. Returns their number.

        `full` also removes old files that no commit names.

        Raises:
            AnotherWriter: another job took over the tables.
            TablesError: the files cannot be removed.
        """
        self.expect_claim()
        table = self.store.table(name)
        known = self._left.get(name, table.version())
        if table.version() != known:
            # a late write of another job, which the next commit rolls back
            return 0
        try:
            removed = table.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=full)
        except DeltaError as error:
            raise TablesError(f"cannot remove files of {self.store.path(name)}: {reason_of(error)}") from error
        # a vacuum commits versions without changes
        if name in self._left and self._has_files_of(name, self.store.table(name), known):
            self._left[name] = self.store.table(name).version()
        return len(removed)

    def expect_claim(self) -> DeltaTable:
        """Return table `batches` after checking that this writer's claim is the newest.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        table = self.store.table("batches")
        held = table.transaction_version(WRITER_ID)
        if held != self.generation:
            raise AnotherWriter(
                f"another job took over the tables under {self.store.root} (writer epoch {held}, ours is {self.generation})"
            )
        return table

    def _table(self, name: str) -> DeltaTable:
        """Table `name` at its newest version.

        Raises:
            ForeignFeature: it cannot be read or written any more.
            AnotherWriter: the tables were rebuilt.
        """
        try:
            table = self.store.table(name)
        except ReplacedTables:
            self.expect_claim()
            raise
        if self.store.root != self._root:
            self.expect_claim()
        expect_writable_protocol(self.store.path(name), table)
        return table

    def _roll_back(self, replaced: Mapping[str, int]) -> None:
        """Restore every table to its version in the last batch, or to a later one with harmless commits of other programs.

        `replaced` has versions that count instead of those in the last batch.
        """
        # this version of Grouplake names no version that it cannot write; opening all tables takes most of the time of a claim
        is_known = not replaced and (self.last is None or self.last.written_by == build_version())
        for name in definitions.WRITE_ORDER[:-1]:
            named = replaced.get(name) or (self.last.versions.get(name, 0) if self.last else 0)
            self._versions[name] = named
            if is_known and ends_at(self.store.path(name), named):
                continue
            table = self._table(name)
            if table.version() < named:
                raise TablesError(
                    f"table {name} under {self.store.root} ends at version {table.version()}, before version {named} that "
                    "the last batch names: it was restored or replaced alone; restore all tables of the folder together"
                )
            while self.store.table(name).version() != self._versions[name]:
                if not self._settle(name):
                    self.expect_claim()
                    failpoint(f"rolled_back:{name}")
        self._left = dict(self._versions)

    def _migrate(self) -> None:
        """Bring the tables to the present layout, and write a row of `batches` with their versions.

        A later rollback restores the columns of the version that it restores, so no batch may begin before that row.
        """
        phases = Phases(datetime.now(UTC))
        with phases.timed("migrate"):
            changed = add_missing_columns(self.store, self._stamp())
        self.expect_claim()
        for name in self._left.keys() & set(changed):
            self._left[name] = self.store.table(name).version()
        last = self.last
        if last is not None:
            self.begin()
            self.finish(phases, datetime.now(UTC), era=last.era, retention_ms=last.retention_ms, next_offsets=last.next_offsets)
        # last: a migration that is interrupted before is repeated
        store_layout(self.store.table("batches"), self.store.root)

    def _has_files_of(self, name: str, table: DeltaTable, version: int) -> bool:
        """True if a table has the files of `version`: vacuum commits versions without changes."""
        return table.version() == version or set(table.file_uris()) == set(self.store.at(name, version).file_uris())

    def _settle(self, name: str) -> bool:
        """Accept the commits to table `name` since the known version that are harmless, and roll back the others.

        Returns True if nothing had to be rolled back. Another commit may be faster: then the known version stays.
        """
        table = self.store.table(name)
        newest = table.version()
        found = self._review(name, newest)
        if found.kept_version == newest or self._is_unchanged(name, table, found.kept_version):
            self._versions[name] = newest
            return True
        try:
            # also the protocol, which another program may have raised
            table.restore(found.kept_version, protocol_downgrade_allowed=True, commit_properties=stamped(self._stamp()))
        except CommitFailedError:
            return False
        except DeltaError as error:
            kept, path = found.kept_version, self.store.path(name)
            raise TablesError(f"cannot restore version {kept} of {path}: {reason_of(error)}") from error
        self._versions[name] = table.version()
        for line in reverted_lines(name, self.store.root, found):
            print_progress(line)
        return False

    def _review(self, name: str, newest: int) -> Review:
        """Review the commits to table `name` since the known version. Without that version all of them are rolled back."""
        known = self._versions[name]
        try:
            before = state_of(self.store.at(name, known))
        except (TablesError, RemovedState):
            return Review(known)
        is_append_only = name in definitions.APPENDED
        return review(commits_after(self.store.path(name), known, newest), before, known, is_append_only=is_append_only)

    def _is_unchanged(self, name: str, table: DeltaTable, version: int) -> bool:
        """True if a table is as it was at `version`: an interrupted rollback, and vacuum, commit versions without changes."""
        return self._has_files_of(name, table, version) and state_of(table) == state_of(self.store.at(name, version))

    def _stamp(self, attempt: int = 0) -> str:
        again = f", attempt {attempt + 1}" if attempt else ""
        return f"{STAMP} {self.generation}, batch {self._batch_id}{again}"


def expect_known_tables(store: TableStore, last: Batch | None) -> None:
    """Raise UsageError if the last batch has a table that this version of Grouplake does not know."""
    unknown = sorted(set(last.versions) - set(definitions.WRITE_ORDER)) if last else []
    if unknown:
        raise UsageError(
            f"the tables under {store.root} have {', '.join(unknown)}, written by a newer version of Grouplake: use that version"
        )


def _as_table(batch: Batch) -> pa.Table:
    schema = definitions.table("batches").schema
    row = {name: getattr(batch, name) for name in schema.names}
    maps = {name: list(row[name].items()) for name in ("next_offsets", "versions", "phase_ms")}
    if batch.transaction_offsets is not None:
        maps["transaction_offsets"] = list(batch.transaction_offsets.items())
    return pa.Table.from_pylist([{**row, **maps}], schema)
