"""A run whose log and tables were checked: what its three ways share (nothing new, in the driver, with Spark)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from pipelines.batch.apply import BatchApplier, TransactionReader
from pipelines.batch.placement import StatedPartitions
from pipelines.job.between_batches import BetweenBatches
from pipelines.job.position_commits import PositionCommits
from pipelines.job.run_options import RunOptions
from pipelines.job.stored_position import known_epochs
from pipelines.runtime.progress import Progress
from pipelines.runtime.stop_request import StopRequest
from pipelines.source.address import open_source
from pipelines.source.position import Position
from pipelines.tables.location import local_folder
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter

Applier = TypeVar("Applier", bound=BatchApplier)

#: The writer, if a claim was made, and the call that ends the run.
Outcome = tuple[TablesWriter | None, Callable[[], None]]


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """Arguments of `job.run`, and the state in which it found the log and the tables.

    Attributes:
        last: newest batch of the tables, None in new tables
        topic_id: id of the topic of the log, if known
        writer: claim of the tables; None while a lock excludes other jobs
        transactions: reader of `__transaction_state`, or polls of its coordinators; None if transactions are not read
        interval_seconds: expected time between two batches; 0 if none is expected
        alive: called about once a second while the run waits for records
        commits: the positions of batches as commits of a group; None without one
    """

    options: RunOptions
    store: TableStore
    last: Batch | None
    topic_id: str | None
    writer: TablesWriter | None
    progress: Progress
    clock_ms: Callable[[], int]
    stop: StopRequest | None
    on_ready: Callable[[], None] | None
    transactions: TransactionReader | None = None
    interval_seconds: int = 0
    alive: Callable[[], None] = lambda: None
    commits: PositionCommits | None = None

    @property
    def locked_folder(self) -> Path | None:
        """The folder of the tables, if a lock excludes other jobs."""
        return local_folder(self.store.root) if self.writer is None else None

    def position(self) -> Position | None:
        """The position at which the run found the tables, with the leader epochs that an earlier run has kept under the lock."""
        return None if self.last is None else self.position_of(self.last)

    def position_of(self, batch: Batch) -> Position:
        """The position of a batch, with the leader epochs that were kept under the lock."""
        folder, offsets = self.locked_folder, batch.next_offsets
        return Position(offsets, known_epochs(folder, offsets) if folder is not None else {})

    def parts(self, kind: type[Applier]) -> tuple[Applier, BetweenBatches]:
        """The part that applies batches and reports each of them, and samples and maintenance beside them."""
        applier = kind(
            store=self.store,
            era=self.options.era,
            retention_ms=self.options.retention_ms,
            name_source=lambda: names_of(self.options),
            bulk_rows=self.options.bulk_rows,
            writer=self.writer,
            transactions=self.transactions,
            interval_seconds=self.interval_seconds,
            stated_partitions=self._stated_partitions(),
            feed_tables=self.options.feed_tables,
            progress=self.progress,
        )
        # each poll of groups is one of transactions too
        of_log = self.transactions is not None and not self.options.address.is_polled
        transactions = applier.apply_transactions if of_log else None
        between = BetweenBatches(
            self.options, applier.lock, applier.claim, self.progress, self.clock_ms, transactions, self.alive
        )

        def applied(batch: Batch) -> None:
            self.progress(describe_batch(batch))
            between.batch_applied(batch)
            if self.commits is not None:
                self.commits.batch_applied(batch)

        applier.on_begin, applier.on_batch = between.batch_begins, applied
        return applier, between

    def _stated_partitions(self) -> StatedPartitions:
        """The numbers of log partitions by the options; polls have none."""
        if self.options.address.is_polled:
            return StatedPartitions()
        return StatedPartitions(self.options.offsets_partitions or None, self.options.transactions_partitions or None)

    def ready(self) -> None:
        """Report that the run has read the end of the log for the first time."""
        if self.on_ready is not None:
            self.on_ready()


def names_of(options: RunOptions) -> dict[UUID, tuple[str, str]]:
    """Names of topic ids that the source knows: id → name, and where it was learned."""
    if options.address.is_spark_kafka or options.address.is_polled:
        return {}
    source = open_source(options.address, options.kafka, seen_before=True)
    try:
        learned_from = "cluster" if options.address.scheme == "kafka" else "partition_metadata"
        return {uuid: (name, learned_from) for uuid, name in source.topic_ids().items()}
    finally:
        source.close()


def describe_batch(batch: Batch) -> str:
    """Progress line of a batch."""
    took = (batch.finished_at - batch.started_at).total_seconds()
    return f"batch {batch.batch_id}: {batch.records_read:,} records read, {batch.records_kept:,} kept, {took:.1f} s"
