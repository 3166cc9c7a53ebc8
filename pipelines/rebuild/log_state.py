"""The state at a log position, loaded from the log in this process, without Spark."""

from uuid import UUID

import pyarrow as pa

from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.log.errors import LogError
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.errors import TablesError, UsageError
from pipelines.progress import Progress
from pipelines.source.address import SourceAddress, open_source, short_log_error
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.ranges import ranges
from pipelines.tables.store import Batch, TableStore, query

#: Change rows in memory, above which they are applied; a log partition is applied as a whole.
_ROWS = 1_000_000


class LogState:
    """Loads the state from a log; `kafka` are the options of the connection."""

    def __init__(self, address: SourceAddress, kafka: dict[str, str], progress: Progress) -> None:
        if address.is_spark_kafka:
            raise UsageError(f"{address} cannot be read without Spark: use kafka:// for the same cluster")
        self._address, self._kafka, self._progress = address, kafka, progress

    def load(self, folder: str, last: Batch, old: TableStore) -> TableStore:
        """Write tables below `folder` with the state of the log before the next offsets of `last`.

        Raises:
            TablesError: the log cannot be read, does not begin at its first record, or ends before the position.
        """
        store = TableStore(folder)
        store.create()
        names = _topic_names(old, last)
        applier = BatchApplier(store, Era.named(last.era), last.retention_ms, lambda: names, bulk_rows=10**18)
        waiting: list[pa.RecordBatch] = []
        try:
            self._expect_whole_log(last, _topic_id(old))
            options = SourceOptions(self._address, last.era, last.retention_ms, self._kafka, topic_id=_topic_id(old))
            for part in ranges({}, last.next_offsets):
                waiting += read_ranges(options, [part])
                if sum(batch.num_rows for batch in waiting) >= _ROWS:
                    applier.apply_rows(pa.Table.from_batches(waiting, SCHEMA))
                    waiting = []
        except (LogError, ValueError) as error:
            raise TablesError(f"cannot rebuild from the log: {error}; without --source the old tables are copied") from error
        if waiting:
            applier.apply_rows(pa.Table.from_batches(waiting, SCHEMA))
        self._progress(f"{self._address}: state loaded up to the position of batch {last.batch_id}")
        return store

    def _expect_whole_log(self, last: Batch, topic_id: UUID | None) -> None:
        source = open_source(self._address, self._kafka, topic_id)
        try:
            beginnings, ends = source.earliest_offsets(), source.end_offsets()
        finally:
            source.close()
        for partition, offset in last.next_offsets.items():
            if ends.get(partition, 0) < offset:
                raise short_log_error(self._address, partition, offset, ends.get(partition, 0))
            if beginnings.get(partition, 0) > 0:
                raise ValueError(
                    f"{self._address}, partition {partition}: the log begins at offset {beginnings[partition]}, so that it lacks "
                    "records of groups without later ones"
                )


def _topic_id(old: TableStore) -> UUID | None:
    text = old.topic_id()
    return uuid_from_text(text) if text else None


def _topic_names(old: TableStore, last: Batch) -> dict[UUID, tuple[str, str]]:
    """Names that the old tables know: some were learned from a cluster that is not there any more."""
    if "topic_ids" not in last.versions:
        return {}
    rows = query(
        {"topic_ids": old.at("topic_ids", last.versions["topic_ids"])}, "SELECT topic_id, topic, learned_from FROM topic_ids"
    )
    return {uuid_from_text(row["topic_id"]): (row["topic"], row["learned_from"]) for row in rows.to_pylist() if row["topic"]}
