"""Application of a batch to the tables: plan, write, and the `batches` row last.

A batch has new records of `__consumer_offsets`, and of `__transaction_state` if the job reads it (docs/adr/0041).
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.state.era import Era
from coordinator_core.state.garbage_collection import no_garbage_collection
from pipelines.batch.context import BatchContext
from pipelines.batch.moved_state import moved_group_writes, moved_transaction_writes
from pipelines.batch.offsets_plan import history_rows, offset_rows, without_superseded
from pipelines.batch.partition_notices import PartitionNotices, expect_partitions
from pipelines.batch.placement import (
    CommitRows,
    PlacedChanges,
    Placements,
    StatedPartitions,
    known_partitions,
    no_commits,
    place_groups,
    place_transactions,
    split_changes,
)
from pipelines.batch.plan import BatchPlan, plan_batch
from pipelines.batch.previous_batch import PreviousBatch
from pipelines.batch.small_files import COMPACT_EVERY, compact_appended
from pipelines.batch.topic_names import NameSource
from pipelines.batch.transactions_plan import plan_transactions
from pipelines.runtime.errors import TablesError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.phases import Phases
from pipelines.runtime.progress import Progress, no_progress
from pipelines.source.changes import SCHEMA, ChangeKind, of_kind
from pipelines.source.partition_sets import PartitionSets
from pipelines.source.ranges import Offsets
from pipelines.source.transaction_log import TransactionRange
from pipelines.tables import definitions
from pipelines.tables.change_data_feed import enable_feed
from pipelines.tables.reached_position import ReachedPosition
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter
from pipelines.tables.writers.table_write import TableWrite, Writer

#: The writes of offsets and their history, from the plan of the other tables.
OffsetWrites = Callable[[BatchPlan, PlacedChanges, BatchContext], tuple[TableWrite, ...]]


class TransactionReader(Protocol):
    """Reads new records of `__transaction_state`; see `TransactionLogReader`."""

    def read(self, after: Offsets | None) -> TransactionRange | None:
        """The records after a position, None if there are none."""
        ...

    def read_if_reachable(self, after: Offsets | None) -> TransactionRange | None:
        """As `read`; None while no broker answers."""
        ...


@dataclass
class BatchApplier:
    """Applies change rows that are in the driver.

    `bulk_rows`: with more change rows than this, `SparkBatchApplier` leaves the commits in Spark.
    `on_begin` is called when the end of the log that a batch reads up to has just been requested, with the last batch, the root
    of the tables, and the partitions that the batch may add, if they are known; `on_batch` for every complete batch. Both are
    called with the lock.
    """

    store: TableStore
    era: Era
    retention_ms: int
    name_source: NameSource
    bulk_rows: int
    on_begin: Callable[[Batch | None, str, PartitionSets | None], None] = lambda _last, _root, _new: None
    on_batch: Callable[[Batch], None] = lambda _batch: None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    #: The claim of the tables. Without one, the first batch that writes claims the tables.
    writer: TablesWriter | None = None
    #: Held while a batch is applied; other batches of the job, such as samples, hold it too.
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: Each batch also applies the new records of this log; None: transactions are not read.
    transactions: TransactionReader | None = None
    #: Expected time between two batches, as `TablesWriter` has it.
    interval_seconds: int | None = None
    #: For sources that do not know the numbers of partitions.
    stated_partitions: StatedPartitions = field(default_factory=StatedPartitions)
    #: The present number of partitions, for a source that reads those that the topic had when its stream began.
    current_partitions: Callable[[], int] | None = None
    #: Tables of state that get a change data feed after the first batch, which would be in it as a whole.
    feed_tables: frozenset[str] = frozenset()
    progress: Progress = no_progress
    _notices: PartitionNotices = field(default_factory=PartitionNotices)

    def claim(self) -> TablesWriter:
        """Return the claim of the tables, and make it if there is none yet."""
        if self.writer is None:
            self.writer = TablesWriter.claim(self.store, self.interval_seconds)
        return self.writer

    def begin(self, new: PartitionSets | None = None) -> None:
        """Report that the end of the log of the next batch has just been requested; `new` as `on_begin` has it."""
        self.on_begin(self.writer.last if self.writer else self.store.last_batch(), self.store.root, new)

    def apply_rows(self, rows: pa.Table, phases: Phases | None = None) -> None:
        """Apply change rows exactly once, even if the same ranges are applied again. `phases` has those of reading the rows."""
        ranges = of_kind(rows, ChangeKind.RANGE)
        if not self._is_applied(ranges):
            self._apply(rows, ranges, phases or Phases(self.clock()), _offset_writes)

    def apply_transactions(self, *, required: bool = False) -> None:
        """Apply new records of `__transaction_state` in a batch of their own, if there are any.

        `required` raises GrouplakeError if no broker answers; otherwise a later call reads them.
        """
        if self.transactions is None:
            return
        phases = Phases(self.clock())
        last = self.writer.last if self.writer else self.store.last_batch()
        found = self._new_transactions(last, phases, required=required)
        if found is None:
            return
        self.claim()
        placed = self._place(SCHEMA.empty_table(), no_commits, found)
        context = self._context(self._claimed)
        with phases.timed("plan"):
            writes = plan_transactions(found, placed.transactions, context)
        self._write(writes, context, phases)
        self._finish(of_kind(SCHEMA.empty_table(), ChangeKind.RANGE), phases, found, placed)

    def _is_applied(self, ranges: pa.Table) -> bool:
        """True if the tables contain the batch already: Spark repeats a batch if the job ended before its checkpoint.

        Raises:
            TablesError: the ranges do not start where the tables end.
        """
        if self.writer is not None:
            return self._is_within(ranges, self.writer.last)
        if self._is_within(ranges, self.store.last_batch()):
            return True
        return self._is_within(ranges, self.claim().last)

    def _is_within(self, ranges: pa.Table, last: Batch | None) -> bool:
        next_offsets = last.next_offsets if last else {}
        rows = ranges.select(["log_partition", "start_offset", "next_offset"]).to_pylist()
        if not rows or all(row["next_offset"] <= next_offsets.get(row["log_partition"], -1) for row in rows):
            return True
        for row in rows:
            expected = next_offsets.get(row["log_partition"])
            if expected is not None and row["start_offset"] not in (expected, None):
                raise TablesError(
                    f"partition {row['log_partition']}: the tables under {self.store.root} end before offset {expected}, "
                    f"but the stream continues at {row['start_offset']}; "
                    f"remove {self.store.root}/_checkpoint to continue from the tables"
                )
        return False

    def _apply(
        self,
        rows: pa.Table,
        ranges: pa.Table,
        phases: Phases,
        offset_writes: OffsetWrites,
        commits: CommitRows = no_commits,
    ) -> None:
        """Apply change rows. `commits` reads those that are not among them."""
        found = self._new_transactions(self._claimed.last, phases)
        placed = self._place(rows, commits, found)
        context = self._context(self._claimed)
        with phases.timed("plan"), no_garbage_collection():
            changes = split_changes(rows, placed.groups)
            plan = plan_batch(changes.speaking, context, self.name_source, changes.elsewhere)
            offsets = offset_writes(plan, changes, context)
            transactions = plan_transactions(found, placed.transactions, context) if found else ()
        self._write((*plan.writes, *offsets, *transactions), context, phases)
        self._finish(ranges, phases, found, placed)

    def _place(self, rows: pa.Table, commits: CommitRows, transactions: TransactionRange | None) -> Placements:
        """Find out which log partitions speak for the keys of a batch. A batch of its own removes the state of others."""
        last = self._claimed.last
        previous = PreviousBatch(self.store, last)
        stated, known = self.stated_partitions, known_partitions(rows)
        if known is not None and self.current_partitions is not None:
            # requested after the records were read: a broker that wrote one of them knew of no more partitions
            expect_partitions(OFFSETS_TOPIC, known, self.current_partitions())
        placed = Placements(place_groups(rows, commits, previous, known, stated.groups, self.era.partitioner))
        self._notices.report(OFFSETS_TOPIC, previous.log_partition_count, known, placed.groups, self.progress)
        if transactions is not None:
            known = transactions.partitions
            ids = place_transactions(transactions.reductions, previous, known, stated.transactions)
            self._notices.report(TRANSACTION_STATE_TOPIC, previous.transaction_partition_count, known, ids, self.progress)
            placed = replace(placed, transactions=ids)
        if last is not None and (placed.groups.moved or placed.transactions.moved):
            self._remove_moved(placed, last)
        return placed

    def _remove_moved(self, placed: Placements, last: Batch) -> None:
        phases = Phases(self.clock())
        context = self._context(self._claimed)
        with phases.timed("plan"):
            at = self.clock()
            groups = moved_group_writes(placed.groups.moved, at, context) if placed.groups.moved else ()
            ids = moved_transaction_writes(placed.transactions.moved, at, context) if placed.transactions.moved else ()
        self._write((*groups, *ids), context, phases)
        # no `on_batch`: a sample belongs to the batch whose end of the log was requested with it
        batch = self._claimed.finish(
            phases,
            self.clock(),
            era=self.era.name,
            retention_ms=self.retention_ms,
            next_offsets=last.next_offsets,
            log_partition_count=placed.groups.count,
            transaction_partition_count=placed.transactions.count,
        )
        self.progress(f"batch {batch.batch_id}: state in old log partitions removed")

    def _new_transactions(self, last: Batch | None, phases: Phases, *, required: bool = False) -> TransactionRange | None:
        if self.transactions is None:
            return None
        read = self.transactions.read if required else self.transactions.read_if_reachable
        with phases.timed("read_transactions"):
            return read(last.transaction_offsets if last else None)

    def _context(self, writer: TablesWriter) -> BatchContext:
        """Begin a batch."""
        return BatchContext(writer.begin(), self.era, self.retention_ms, PreviousBatch(self.store, writer.last))

    def _write(self, writes: tuple[TableWrite, ...], context: BatchContext, phases: Phases) -> None:
        if context.batch_id % COMPACT_EVERY == COMPACT_EVERY - 1:
            with phases.timed("compact"):
                compact_appended(self._claimed)
        for write in _in_order(writes):
            if write.table in self.feed_tables and self._claimed.last is not None:
                enable_feed(self._claimed, write.table)
            # the rows of a DataFrame are not counted before they are written
            rows = write.rows.num_rows if isinstance(write.rows, pa.Table) else None
            with phases.timed(f"write_{write.table}", rows):
                self._writer_of(write, context).write(write)
            failpoint(f"after:{write.table}")

    @property
    def _claimed(self) -> TablesWriter:
        assert self.writer is not None, "ranges are checked first"
        return self.writer

    def _writer_of(self, _write: TableWrite, context: BatchContext) -> Writer:
        return DeltaRsWriter(self._claimed, context.previous.scanned_rows)

    def _finish(self, ranges: pa.Table, phases: Phases, transactions: TransactionRange | None, placed: Placements) -> None:
        writer = self._claimed
        read, kept = (transactions.records_read, transactions.records_kept) if transactions else (0, 0)
        offsets = zip(ranges["log_partition"].to_pylist(), ranges["next_offset"].to_pylist(), strict=True)
        batch = writer.finish(
            phases,
            self.clock(),
            era=self.era.name,
            retention_ms=self.retention_ms,
            next_offsets={**(writer.last.next_offsets if writer.last else {}), **dict(offsets)},
            records_read=(pc.sum(ranges["records_read"]).as_py() or 0) + read,
            records_kept=kept_rows(ranges) + kept,
            transaction_offsets=transactions.next_offsets if transactions else None,
            reached=position_of(ranges) if ranges.num_rows else None,
            log_partition_count=placed.groups.count,
            transaction_partition_count=placed.transactions.count,
        )
        self.on_batch(batch)


def kept_rows(ranges: pa.Table) -> int:
    """Number of offsets that the ranges change."""
    return pc.sum(ranges["commits"]).as_py() or 0


def _offset_writes(plan: BatchPlan, changes: PlacedChanges, context: BatchContext) -> tuple[TableWrite, ...]:
    commits = of_kind(changes.speaking, ChangeKind.COMMIT)
    resolved = without_superseded(commits, plan.resolved)
    return (
        TableWrite("offsets", offset_rows(commits, plan.tombstones, resolved, context.batch_id)),
        TableWrite("offset_history", history_rows(commits, plan.tombstones, resolved, context, changes.elsewhere)),
    )


def _in_order(writes: tuple[TableWrite, ...]) -> list[TableWrite]:
    return sorted(writes, key=lambda write: definitions.WRITE_ORDER.index(write.table))


def position_of(ranges: pa.Table) -> ReachedPosition:
    """The position after the rows of kind `range` of a batch.

    At the end of the log it is the time at which that end was requested. Before the end, a partition with unread records is
    known up to its last record, and the least of these times counts.
    """
    if ranges["log_end"].null_count or ranges["asked_at"].null_count:
        return ReachedPosition()
    left = pc.subtract(ranges["log_end"], ranges["next_offset"])
    behind = pc.sum(left).as_py()
    if not behind:
        return ReachedPosition(pc.min(ranges["asked_at"]).as_py(), 0)
    unread = ranges["record_timestamp"].filter(pc.greater(left, 0))
    read_until: datetime | None = None if unread.null_count else pc.min(unread).as_py()
    return ReachedPosition(read_until, behind)
