"""The tables that a job would have written while a log grew: batches of records and samples of end offsets, without Spark."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa

from coordinator_core.health import EndOffsetSample, samples_table
from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.range_reduction import RangeReducer
from coordinator_core.state.era import Era
from coordinator_core.state.transaction_metadata import TransactionMetadata
from pipelines.batch.apply import BatchApplier
from pipelines.examples.history.written_transactions import WrittenTransactions
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.source.changes import SCHEMA
from pipelines.source.reduction_rows import change_rows
from pipelines.tables.store import TableStore

ERA = Era.named("4")
#: Broker's answers about partitions of a topic at a time.
Samples = Callable[[str, Iterable[int], int], Iterable[EndOffsetSample]]

_SAMPLE_AFTER_MS = 1_000


class TableHistory:
    """A job in the past: it reads `records` (by log partition, in order) and samples end offsets, at times that are given to it.

    `batch_ms`: duration of a batch by its times. `transactions`: transitions of transactional ids, in their order.
    """

    def __init__(
        self,
        root: str,
        records: Mapping[int, list[LogRecord]],
        samples: Samples,
        begins_at: int,
        *,
        batch_ms: int = 0,
        transactions: Sequence[TransactionMetadata] = (),
    ) -> None:
        self._records, self._samples = records, samples
        self._now = self._sampled_at = begins_at
        self._batch_ms = batch_ms
        self._next = dict.fromkeys(sorted(records), 0)
        store = TableStore(root)
        store.create()
        self._applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000, clock=self._clock)
        if transactions:
            self._applier.transactions = WrittenTransactions(transactions, ERA.name, lambda: self._now)
        self._sampling = LagSampling(self._answers, self._clock)

    def _clock(self) -> datetime:
        """The time; the job reads it when a batch starts and when it is complete."""
        now, self._now = self._now, self._now + self._batch_ms
        return datetime.fromtimestamp(now / 1000, UTC)

    @property
    def now_ms(self) -> int:
        """The time of the job."""
        return self._now

    def advance(self, until: int) -> None:
        """Write a batch with the records before a time, and a sample a second later."""
        self._now = until
        batches = [batch for partition in self._next for batch in self._changes(partition, until)]
        self._applier.apply_rows(pa.Table.from_batches(batches, SCHEMA))
        self._now = self._sampled_at = until + _SAMPLE_AFTER_MS
        self._sampling.sample(self._applier.claim())

    def _answers(self, wanted: Mapping[str, set[int]]) -> pa.Table:
        at, topics = self._sampled_at, sorted(wanted.items())
        return samples_table(each for topic, found in topics for each in self._samples(topic, sorted(found), at))

    def _changes(self, partition: int, until: int) -> Iterator[pa.RecordBatch]:
        start, records = self._next[partition], self._records[partition]
        end = start
        while end < len(records) and records[end].timestamp < until:
            end += 1
        self._next[partition] = end
        reducer = RangeReducer(ERA, partition)
        reducer.add(columns_of(records[start:end], next_offset=end))
        yield from change_rows(reducer.finish(), start, end, ERA, ERA.default_retention_ms)
