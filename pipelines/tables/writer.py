"""The writer of the tables: a claim that fences every earlier writer, and commits that expect the versions it knows.

Delta has transactions on one table only. What orders writers is the log of `batches`: each claims the tables there with the
next generation, as a transactional producer gets its next epoch, and each `batches` row is a compare-and-swap on the version
that its writer has seen last. So of two writers one finishes no batch any more. What it may still write into other tables comes
to light at the next commit there, whose version is not the one expected, and is taken back (docs/adr/0009).
"""

from collections.abc import Callable

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from pipelines.errors import AnotherWriter, TablesError
from pipelines.failpoints import failpoint
from pipelines.tables import definitions
from pipelines.tables.store import APP_ID, Batch, TableStore, first_line

#: Application of the transactions on `batches` by which a writer claims the tables; their version is its generation.
WRITER_ID = "grouplake-writer"

#: A fenced writer gets at most one commit into a table before it finds out; more in a row come from something else.
_ATTEMPTS = 20


#: What a frequent commit leaves to `checkpoint_when_due` and to `maintain`: delta-rs' way of it lists the whole log each time.
WITHOUT_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

_CHECKPOINT_EVERY = 100


class CommitConflict(Exception):
    """Raised by a change that found its table at another version than it expected."""


#: Changes a table that is at the expected version, with a commit that bears the stamp; returns whether there was anything to do.
Change = Callable[[DeltaTable, str], bool]


def stamped(stamp: str) -> CommitProperties:
    """Properties of a commit that succeeds only as the next version of its table, and whose history says who made it."""
    return CommitProperties(custom_metadata={"userMetadata": stamp}, max_commit_retries=0)


def checkpoint_when_due(table: DeltaTable) -> None:
    """Writes a checkpoint at every hundredth version, as delta-rs does."""
    if table.version() % _CHECKPOINT_EVERY == 0:
        table.create_checkpoint()


def newest_claim(batches: DeltaTable) -> int:
    """Generation of the newest claim of the tables that table `batches` is one of; 0 where there is none."""
    return batches.transaction_version(WRITER_ID) or 0


class TablesWriter:
    """The right to write the tables of a store, from `claim` until another writer claims them.

    `last` is the last complete batch, `generation` the number of the claim.
    """

    def __init__(self, store: TableStore, generation: int, last: Batch | None, claimed_version: int) -> None:
        self.store = store
        self.generation = generation
        self.last = last
        self._batches_version = claimed_version
        #: Versions of the tables that this writer knows: as the last batch left them, and as the batch in the making has.
        self._left: dict[str, int] = {}
        self._versions: dict[str, int] = {}

    @classmethod
    def claim(cls, store: TableStore) -> "TablesWriter":
        """Takes the tables over from whoever wrote them, and takes back what a batch wrote that never got its `batches` row.

        Raises:
            TablesError: they cannot be brought back to the last batch.
        """
        while True:
            batches = store.table("batches")
            version, last = batches.version(), store.last_batch_of(batches)
            generation = max(newest_claim(batches), last.generation if last else 0) + 1
            properties = CommitProperties(app_transactions=[Transaction(WRITER_ID, generation)], max_commit_retries=0)
            try:
                batches.create_write_transaction([], "append", batches.schema(), commit_properties=properties)
                break
            except CommitFailedError as error:
                if store.table("batches").version() == version:
                    raise TablesError(f"cannot write {store.path('batches')}: {first_line(error)}") from error
        failpoint("claimed")
        writer = cls(store, generation, last, version + 1)
        writer._roll_back()
        return writer

    def begin(self) -> int:
        """Begins a batch and returns its id. What one that failed before has written is taken back where it is in the way."""
        self._versions = dict(self._left)
        return self._batch_id

    @property
    def _batch_id(self) -> int:
        return self.last.batch_id + 1 if self.last else 0

    def version(self, name: str) -> int:
        """The version of table `name` that this writer knows: what it wrote last, or what the last batch left."""
        return self._versions[name]

    def commit(self, name: str, change: Change) -> int:
        """Runs `change` on table `name` and returns the version that it leaves.

        Whatever got in between since this writer's last commit is taken back first.

        Raises:
            AnotherWriter: the tables belong to a later writer.
            TablesError: they cannot be written.
        """
        for attempt in range(_ATTEMPTS):
            table = self.store.table(name)
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
                        raise TablesError(f"cannot write {self.store.path(name)}: {first_line(error)}") from error
            self.expect_claim()
            self._take_back(name)
        raise TablesError(f"something else than Grouplake keeps writing {self.store.path(name)}")

    def finish(self, batch: Batch) -> Batch:
        """Writes the row that makes `batch` visible.

        Raises:
            AnotherWriter: the tables belong to a later writer, and the batch is not visible.
        """
        failpoint("before:batches")
        properties = CommitProperties(app_transactions=[Transaction(APP_ID, batch.batch_id)], max_commit_retries=0)
        for _ in range(_ATTEMPTS):
            table = self.store.table("batches")
            if table.version() == self._batches_version:
                try:
                    rows = _as_table(batch)
                    write_deltalake(
                        table, rows, mode="append", commit_properties=properties, post_commithook_properties=WITHOUT_HOOKS
                    )
                    self._batches_version += 1
                    checkpoint_when_due(table)
                    break
                except CommitFailedError as error:
                    if self.store.table("batches").version() == self._batches_version:
                        raise TablesError(f"cannot write {self.store.path('batches')}: {first_line(error)}") from error
            table = self.expect_claim()
            self._batches_version = table.version()
            if table.transaction_version(APP_ID) == batch.batch_id:
                # it was ours, and only the answer was lost
                break
        else:
            raise TablesError(f"something else than Grouplake keeps writing {self.store.path('batches')}")
        self.last = batch
        self._left = dict(self._versions)
        failpoint("after:batches")
        return batch

    def expect_claim(self) -> DeltaTable:
        """Table `batches`, in which this writer's claim is the last one.

        Raises:
            AnotherWriter: it is not.
        """
        table = self.store.table("batches")
        held = table.transaction_version(WRITER_ID)
        if held != self.generation:
            raise AnotherWriter(
                f"another job took over the tables under {self.store.root} (generation {held}, ours is {self.generation})"
            )
        return table

    def _roll_back(self) -> None:
        """Brings every table to what the last batch named."""
        for name in definitions.WRITE_ORDER[:-1]:
            table = self.store.table(name)
            named = self.last.versions.get(name, 0) if self.last else 0
            if table.version() < named:
                raise TablesError(
                    f"table {name} under {self.store.root} ends at version {table.version()}, before version {named} that "
                    "the last batch names: it was restored or replaced alone; restore all tables of the folder together"
                )
            self._versions[name] = named
            while not self._has_files_of(name, table, named):
                self._take_back(name)
                self.expect_claim()
                failpoint(f"rolled_back:{name}")
                table, named = self.store.table(name), self._versions[name]
            self._versions[name] = table.version()
        self._left = dict(self._versions)

    def _has_files_of(self, name: str, table: DeltaTable, version: int) -> bool:
        """Whether a table is as it was at `version`: the removal of unneeded files leaves versions that change nothing."""
        return table.version() == version or set(table.file_uris()) == set(self.store.at(name, version).file_uris())

    def _take_back(self, name: str) -> None:
        """Restores table `name` to the version this writer knows, unless somebody is quicker."""
        table = self.store.table(name)
        known = self._versions[name]
        try:
            table.restore(known, commit_properties=stamped(self._stamp()))
        except CommitFailedError:
            return
        except DeltaError as error:
            raise TablesError(f"cannot restore version {known} of {self.store.path(name)}: {first_line(error)}") from error
        self._versions[name] = table.version()

    def _stamp(self, attempt: int = 0) -> str:
        again = f", attempt {attempt + 1}" if attempt else ""
        return f"grouplake generation {self.generation}, batch {self._batch_id}{again}"


def _as_table(batch: Batch) -> pa.Table:
    schema = definitions.table("batches").schema
    row = {name: getattr(batch, name) for name in schema.names}
    maps = {name: list(row[name].items()) for name in ("next_offsets", "versions", "phase_ms")}
    return pa.Table.from_pylist([{**row, **maps}], schema)
