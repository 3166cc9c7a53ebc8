"""A log of `__transaction_state` in memory, for a job in the past."""

from collections.abc import Callable, Iterator, Sequence

from coordinator_core.codec.transactions import encode_transaction
from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.partitioner import partition_for
from coordinator_core.reduction.reduced_transactions import TransactionReduction
from coordinator_core.reduction.transaction_reduction import TransactionReducer
from coordinator_core.state.transaction_metadata import TransactionMetadata, transaction_record
from pipelines.source.ranges import Offsets
from pipelines.source.transaction_log import TransactionRange

_PARTITIONS = 50
_VALUE_VERSION = 1


class WrittenTransactions:
    """The records of transitions, in their order, as far as they are written at the time of `now_ms`.

    A record has the time of its transition, and its id the log partition of brokers.
    """

    def __init__(self, transitions: Sequence[TransactionMetadata], era: str, now_ms: Callable[[], int]) -> None:
        self._era, self._now_ms = era, now_ms
        self._logs: dict[int, list[LogRecord]] = {}
        for metadata in transitions:
            partition = partition_for(metadata.transactional_id, _PARTITIONS)
            log = self._logs.setdefault(partition, [])
            key, value = encode_transaction(transaction_record(metadata, _VALUE_VERSION))
            log.append(LogRecord(partition, len(log), metadata.last_update_ms, key, value, batch_offset=len(log)))

    def read(self, after: Offsets | None) -> TransactionRange | None:
        """The records after a position; None if there are none."""
        ends = {partition: sum(r.timestamp < self._now_ms() for r in log) for partition, log in sorted(self._logs.items())}
        reductions = tuple(self._reductions(after or {}, ends))
        return TransactionRange(ends, reductions) if reductions else None

    #: There are no brokers that cannot be reached.
    read_if_reachable = read

    def _reductions(self, after: Offsets, ends: Offsets) -> Iterator[TransactionReduction]:
        for partition, end in ends.items():
            records = self._logs[partition][after.get(partition, 0) : end]
            if records:
                reducer = TransactionReducer(self._era, partition)
                reducer.add(columns_of(records, next_offset=end))
                yield reducer.finish()
