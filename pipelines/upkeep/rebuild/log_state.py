"""The state at the positions of a batch, loaded from the logs in this process, without Spark."""

from collections.abc import Mapping
from uuid import UUID

import pyarrow as pa

from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.log.errors import LogError
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.batch.placement import StatedPartitions
from pipelines.runtime.errors import TablesError, UsageError
from pipelines.runtime.progress import Progress
from pipelines.source.address import SourceAddress, open_source, short_log_error
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.ranges import Offsets, ranges
from pipelines.source.transaction_log import TransactionRange, reduced, transaction_address
from pipelines.tables.store import OFFSETS_TOPIC_ID, TRANSACTIONS_TOPIC_ID, Batch, TableStore, query

#: Change rows in memory, above which they are applied; a log partition is applied as a whole.
_ROWS = 1_000_000

#: Topic id → its name, and where that was learned.
TopicNamesById = Mapping[UUID, tuple[str, str]]


class LogState:
    """Loads the state from a log; `kafka` are the options of the connection.

    `transactions` is the address of `__transaction_state`, or `source` for the topic beside the log; None: it is not loaded.
    """

    def __init__(
        self, address: SourceAddress, kafka: dict[str, str], progress: Progress, transactions: str | None = None
    ) -> None:
        if address.is_spark_kafka:
            raise UsageError(f"{address} cannot be read without Spark: use kafka:// for the same cluster")
        self._address, self._kafka, self._progress = address, kafka, progress
        self._transactions = transactions

    def load(self, folder: str, last: Batch, old: TableStore) -> TableStore:
        """Write tables below `folder` with the state of the log before the next offsets of `last`.

        Raises:
            TablesError: the log cannot be read, does not begin at its first record, or ends before the position.
        """
        try:
            return self.read(folder, last, old, _topic_names(old, last))
        except (LogError, ValueError) as error:
            raise TablesError(f"cannot rebuild from the log: {error}; without --source the old tables are copied") from error

    def read(self, folder: str, last: Batch, old: TableStore, names: TopicNamesById) -> TableStore:
        """As `load`, with names of topic ids.

        Raises:
            LogError: the log cannot be read.
            ValueError: it does not begin at its first record.
        """
        store = TableStore(folder)
        store.create()
        stated = StatedPartitions(last.log_partition_count, last.transaction_partition_count)
        applier = BatchApplier(
            store, Era.named(last.era), last.retention_ms, lambda: names, bulk_rows=10**18, stated_partitions=stated
        )
        self._load_offsets(applier, last, old)
        if self._transactions is not None and last.transaction_offsets is not None:
            self._load_transactions(applier, self._transactions, last.transaction_offsets, old)
        return store

    def _load_offsets(self, applier: BatchApplier, last: Batch, old: TableStore) -> None:
        topic_id = _topic_id(old, OFFSETS_TOPIC_ID)
        expect_whole_log(self._address, self._kafka, last.next_offsets, topic_id)
        options = SourceOptions(self._address, last.era, last.retention_ms, self._kafka, topic_id=topic_id)
        waiting: list[pa.RecordBatch] = []
        for part in ranges({}, last.next_offsets):
            waiting += read_ranges(options, [part])
            if sum(batch.num_rows for batch in waiting) >= _ROWS:
                applier.apply_rows(pa.Table.from_batches(waiting, SCHEMA))
                waiting = []
        if waiting:
            applier.apply_rows(pa.Table.from_batches(waiting, SCHEMA))
        self._progress(f"{self._address}: state loaded up to the position of batch {last.batch_id}")

    def _load_transactions(self, applier: BatchApplier, given: str, next_offsets: Offsets, old: TableStore) -> None:
        address = transaction_address(self._address, given, applier.era.name)
        topic_id = _topic_id(old, TRANSACTIONS_TOPIC_ID)
        expect_whole_log(address, self._kafka, next_offsets, topic_id)
        options = SourceOptions(address, applier.era.name, applier.retention_ms, self._kafka, topic_id=topic_id)
        applier.transactions = _RecordsBefore(options, next_offsets)
        applier.apply_transactions(required=True)
        self._progress(f"{address}: transactional ids loaded up to their position")


class _RecordsBefore:
    """Reads the records of `__transaction_state` before given offsets (`TransactionReader`)."""

    def __init__(self, options: SourceOptions, next_offsets: Offsets) -> None:
        self._options = options
        self._next_offsets = next_offsets

    def read(self, after: Offsets | None) -> TransactionRange | None:
        """All records before the offsets, unless they are in the tables."""
        return None if after else TransactionRange(self._next_offsets, reduced(self._options, ranges({}, self._next_offsets)))

    def read_if_reachable(self, after: Offsets | None) -> TransactionRange | None:
        """As `read`."""
        return self.read(after)


def expect_whole_log(address: SourceAddress, kafka: dict[str, str], next_offsets: Offsets, topic_id: UUID | None) -> None:
    """Raise LogError or ValueError unless the log has all records before these offsets."""
    source = open_source(address, kafka, topic_id)
    try:
        beginnings, ends = source.earliest_offsets(), source.end_offsets()
    finally:
        source.close()
    for partition, offset in next_offsets.items():
        if ends.get(partition, 0) < offset:
            raise short_log_error(address, partition, offset, ends.get(partition, 0))
        if beginnings.get(partition, 0) > 0:
            raise ValueError(
                f"{address}, partition {partition}: the log begins at offset {beginnings[partition]}, so that it lacks "
                "records of keys without later ones"
            )


def _topic_id(old: TableStore, of_topic: str) -> UUID | None:
    text = old.topic_id(of_topic)
    return uuid_from_text(text) if text else None


def _topic_names(old: TableStore, last: Batch) -> TopicNamesById:
    """Names that the old tables know: some were learned from a cluster that is not there any more."""
    if "topic_ids" not in last.versions:
        return {}
    rows = query(
        {"topic_ids": old.at("topic_ids", last.versions["topic_ids"])}, "SELECT topic_id, topic, learned_from FROM topic_ids"
    )
    return {uuid_from_text(row["topic_id"]): (row["topic"], row["learned_from"]) for row in rows.to_pylist() if row["topic"]}
