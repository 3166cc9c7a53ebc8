"""A coordinator's log in memory, which fails on demand."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from coordinator_core.log.columns import RecordColumns, columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.record_batch import control_key
from coordinator_core.producers.append import ProducerRejected
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.coordinator_checks import check_coordinator_batches
from coordinator_core.segment_log.errors import AppendFailed, PartitionFailed
from coordinator_core.segment_log.producer_replay import replay


class MemoryPartition:
    """Keeps what is appended; `appends` has the number of batches of each call.

    `refuses` and `broken` are errors that it raises instead of appending.
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.leader_epoch = 1
        self.records: list[LogRecord] = []
        self.producers = ProducerStateManager()
        self.appends: list[int] = []
        self.flushes = 0
        self.end_offset = 0
        self.refuses: str | None = None
        self.broken: str | None = None
        self.unreadable: str | None = None

    def read_columns(self) -> Iterator[RecordColumns]:
        if self.unreadable is not None:
            raise OSError(self.unreadable)
        return iter((columns_of(tuple(self.records), next_offset=self.end_offset),))

    def check_producers(self, batches: Sequence[AppendBatch], now_ms: int) -> dict[int, ProducerRejected]:
        return check_coordinator_batches(self.producers, batches, self.end_offset, now_ms)

    def append(self, batches: Sequence[AppendBatch], now_ms: int) -> list[int]:
        if self.broken is not None:
            raise PartitionFailed(self.broken)
        if self.refuses is not None:
            raise AppendFailed(self.refuses)
        self.appends.append(len(batches))
        return [self._append(batch, now_ms) for batch in batches]

    def _append(self, batch: AppendBatch, now_ms: int) -> int:
        base = self.end_offset
        producer, epoch = batch.producer or (-1, -1)
        produced = batch.of_producer(base, now_ms)
        if produced is not None:
            replay(self.producers, produced)
        if batch.control_type is not None:
            key = control_key(batch.control_type)
            self.records.append(LogRecord(self.partition, base, now_ms, key, None, producer, epoch, True, True, base))
        for offset, (key, value) in enumerate(batch.records, base):
            self.records.append(
                LogRecord(self.partition, offset, now_ms, key, value, producer, epoch, producer >= 0, False, base)
            )
        self.end_offset += batch.offset_count
        return base

    def flush(self) -> None:
        if self.broken is not None:
            raise PartitionFailed(self.broken)
        self.flushes += 1


class MemoryLog:
    """All partitions."""

    load_threads = 1
    append_threads = 0

    def __init__(self, partitions: int) -> None:
        self._partitions = [MemoryPartition(number) for number in range(partitions)]
        self.topic_id = UUID(int=1)

    @property
    def partitions(self) -> int:
        return len(self._partitions)

    @property
    def numbers(self) -> range:
        return range(len(self._partitions))

    @property
    def owned_at_start(self) -> range:
        return self.numbers

    def partition(self, number: int) -> MemoryPartition:
        return self._partitions[number]

    def flush(self, partitions: Sequence[int]) -> list[PartitionFailed | None]:
        return [self._flush(number) for number in partitions]

    def _flush(self, number: int) -> PartitionFailed | None:
        try:
            self._partitions[number].flush()
        except PartitionFailed as failure:
            return failure
        return None

    def clean(self, now_ms: int) -> None:
        """Do nothing: there is nothing to clean."""
