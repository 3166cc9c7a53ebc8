"""A partition of a topic and the transactional id that writes it, as brokers keep them: Kafka's rules in memory.

Which rule of Kafka each part stands for:

- `ModelledCoordinator.init_producer_id`: InitProducerId without an expected id (`TransactionCoordinator.handleInitProducerId`).
  The epoch rises. An ongoing transaction is aborted with a raised epoch; it and one whose markers are not written are answered
  CONCURRENT_TRANSACTIONS. A grant thus means that every earlier transaction is decided and marked.
- `add_partition`, `end`: another producer id is INVALID_PRODUCER_ID_MAPPING, another epoch PRODUCER_FENCED, a transaction without
  its markers CONCURRENT_TRANSACTIONS. EndTxn is answered once the decision is in the transaction log, before the markers; a
  repeated one is answered alike.
- `time_out`: `transaction.timeout.ms`, an abort with a raised epoch. `forget`: `transactional.id.expiration.ms`, the next
  InitProducerId begins with a new producer id.
- `ModelledPartition.produce`: a lower epoch is INVALID_PRODUCER_EPOCH, a repeated batch gets its old offset, a gap is
  OUT_OF_ORDER_SEQUENCE_NUMBER (`ProducerAppendInfo`). A batch that would begin a transaction is verified with the coordinator
  (KIP-890, since 3.6; not with `verifies=False`).
- `high_watermark`: what the followers have. Readers read up to it, and Produce with acks=all is answered behind it. `elect`: a
  follower becomes the leader, without the records above it.
- `last_stable_offset`: the first offset of an open transaction, at most the high watermark.
- `write_marker`: raises the epoch of the producer in the partition and ends its transaction there, with acks=all.
- `compact`: the newest committed record of each key stays, aborted ones go, those from the last stable offset on are not touched.
  Tombstones and markers stay (`delete.retention.ms` is a day).

Transactions of version 2 (an epoch for each transaction) are not modelled: librdkafka does not use them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple

from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import control_key
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch

NONE = ErrorCode.NONE
#: Batches of a producer whose sequence numbers a leader remembers (`NUM_BATCHES_TO_RETAIN`).
_REMEMBERED = 5


class Phase(Enum):
    """States of a transaction."""

    EMPTY = auto()
    ONGOING = auto()
    PREPARE_COMMIT = auto()
    PREPARE_ABORT = auto()
    COMPLETE_COMMIT = auto()
    COMPLETE_ABORT = auto()


_PREPARED = (Phase.PREPARE_COMMIT, Phase.PREPARE_ABORT)


class Queued(NamedTuple):
    """A record of a Produce request."""

    key: bytes | None
    value: bytes | None
    timestamp: int


class AbortedTransaction(NamedTuple):
    """An entry of the transaction index: the first offset, and that of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class _Remembered(NamedTuple):
    """A batch of a producer by its first sequence number."""

    epoch: int
    sequence: int
    size: int
    offset: int


@dataclass
class _Producer:
    """What a leader knows of a producer."""

    epoch: int
    batches: tuple[_Remembered, ...] = ()
    open_from: int | None = None


@dataclass
class ModelledPartition:
    """The log of the partition. `everything` has all records that were ever in it for good, also compacted ones."""

    verifies: bool = True
    records: list[LogRecord] = field(default_factory=list)
    everything: list[LogRecord] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    end: int = 0
    high_watermark: int = 0
    producers: dict[int, _Producer] = field(default_factory=dict)
    #: Of the last replicated state: what a new leader has.
    _replicated: dict[int, _Producer] = field(default_factory=dict)

    @property
    def last_stable_offset(self) -> int:
        return min([each.open_from for each in self.producers.values() if each.open_from is not None] + [self.high_watermark])

    def produce(
        self, producer: ProducerEpoch, sequence: int, records: Sequence[Queued], may_begin: ErrorCode
    ) -> tuple[ErrorCode, int]:
        """Append at the end, which is not replicated yet; `may_begin` is the coordinator's answer to the verification."""
        known = self.producers.get(producer.producer_id)
        if self.verifies and (known is None or known.open_from is None) and may_begin is not NONE:
            return may_begin, -1
        if known is not None and producer.producer_epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        batches = [] if known is None else [each for each in known.batches if each.epoch == producer.producer_epoch]
        same = next((each for each in batches if (each.sequence, each.size) == (sequence, len(records))), None)
        if same is not None:
            return NONE, same.offset
        if sequence != (batches[-1].sequence + batches[-1].size if batches else 0):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        base = self.end
        for offset, (key, value, timestamp) in enumerate(records, base):
            self.records.append(LogRecord(0, offset, timestamp, key, value, *producer, True, False, base))
        self.end += len(records)
        remembered = (*batches, _Remembered(producer.producer_epoch, sequence, len(records), base))[-_REMEMBERED:]
        open_from = base if known is None or known.open_from is None else known.open_from
        self.producers[producer.producer_id] = _Producer(producer.producer_epoch, remembered, open_from)
        return NONE, base

    def replicate(self) -> None:
        """The followers fetch everything."""
        self.everything += [record for record in self.records if record.offset >= self.high_watermark]
        self.high_watermark = self.end
        self._replicated = {number: replace(each) for number, each in self.producers.items()}

    def elect(self) -> None:
        """Let a follower lead, which has what was replicated."""
        self.records = [record for record in self.records if record.offset < self.high_watermark]
        self.end = self.high_watermark
        self.producers = {number: replace(each) for number, each in self._replicated.items()}

    def write_marker(self, producer: ProducerEpoch, kind: ControlType, now_ms: int) -> None:
        """Append the marker, with acks=all."""
        known = self.producers.setdefault(producer.producer_id, _Producer(producer.producer_epoch))
        if producer.producer_epoch < known.epoch:
            return
        if known.open_from is not None and kind is ControlType.ABORT:
            self.aborted.append(AbortedTransaction(producer.producer_id, known.open_from, self.end))
        self.records.append(LogRecord(0, self.end, now_ms, control_key(kind), None, *producer, True, True, self.end))
        self.end += 1
        if producer.producer_epoch > known.epoch:
            known.epoch, known.batches = producer.producer_epoch, ()
        known.open_from = None
        self.replicate()

    def committed(self, records: Sequence[LogRecord], end: int) -> list[LogRecord]:
        """Those that belong to committed transactions, and their markers, without what is above `end`."""
        kept: list[LogRecord] = []
        pending: dict[int, list[LogRecord]] = {}
        for record in records:
            if record.offset >= end:
                break
            if not record.is_control:
                pending.setdefault(record.producer_id, []).append(record)
                continue
            mine = pending.pop(record.producer_id, [])
            if record.key == control_key(ControlType.COMMIT):
                kept += mine
        return sorted(kept, key=lambda record: record.offset)

    def compact(self) -> None:
        """Let the cleaner run."""
        stable = self.last_stable_offset
        kept = self.committed(self.records, stable)
        newest = {record.key: record.offset for record in kept}
        stay = {record.offset for record in kept if newest[record.key] == record.offset}
        self.records = [
            record for record in self.records if record.offset >= stable or record.is_control or record.offset in stay
        ]


@dataclass
class ModelledCoordinator:
    """The transaction coordinator of one transactional id, whose transactions have the one partition."""

    partition: ModelledPartition
    producer: ProducerEpoch | None = None
    phase: Phase = Phase.EMPTY
    #: Producers in the order in which they were granted.
    grants: list[ProducerEpoch] = field(default_factory=list)
    #: Producers of transactions that were decided to be committed, with the number of grants before.
    commits: list[tuple[ProducerEpoch, int]] = field(default_factory=list)
    _next_id: int = 1000

    def init_producer_id(self) -> tuple[ErrorCode, ProducerEpoch | None]:
        if self.phase in _PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS, None
        if self.phase is Phase.ONGOING:
            self.time_out()
            return ErrorCode.CONCURRENT_TRANSACTIONS, None
        if self.producer is None:
            self.producer = ProducerEpoch(self._next_id, 0)
            self._next_id += 1
        else:
            self.producer = ProducerEpoch(self.producer.producer_id, self.producer.producer_epoch + 1)
        self.phase = Phase.EMPTY
        self.grants.append(self.producer)
        return NONE, self.producer

    def add_partition(self, producer: ProducerEpoch) -> ErrorCode:
        error = self._check(producer)
        if error is not NONE:
            return error
        if self.phase in _PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        self.phase = Phase.ONGOING
        return NONE

    def produce(self, producer: ProducerEpoch, sequence: int, records: Sequence[Queued]) -> tuple[ErrorCode, int]:
        """Produce, at the leader of the partition, which asks this coordinator."""
        return self.partition.produce(producer, sequence, records, self._verify(producer))

    def end(self, producer: ProducerEpoch, kind: ControlType) -> ErrorCode:
        error = self._check(producer)
        if error is not NONE:
            return error
        complete = Phase.COMPLETE_COMMIT if kind is ControlType.COMMIT else Phase.COMPLETE_ABORT
        if self.phase is Phase.ONGOING:
            if kind is ControlType.COMMIT:
                self.commits.append((producer, len(self.grants)))
            self.phase = Phase.PREPARE_COMMIT if kind is ControlType.COMMIT else Phase.PREPARE_ABORT
            return NONE
        if self.phase in _PREPARED:
            same = (self.phase is Phase.PREPARE_COMMIT) == (kind is ControlType.COMMIT)
            return ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE
        return NONE if self.phase is complete else ErrorCode.INVALID_TXN_STATE

    def write_markers(self, now_ms: int) -> None:
        """Complete a decided transaction."""
        if self.phase in _PREPARED and self.producer is not None:
            kind = ControlType.COMMIT if self.phase is Phase.PREPARE_COMMIT else ControlType.ABORT
            self.partition.write_marker(self.producer, kind, now_ms)
            self.phase = Phase.COMPLETE_COMMIT if kind is ControlType.COMMIT else Phase.COMPLETE_ABORT

    def time_out(self) -> None:
        """Abort an ongoing transaction with a raised epoch."""
        if self.phase is Phase.ONGOING and self.producer is not None:
            self.producer = ProducerEpoch(self.producer.producer_id, self.producer.producer_epoch + 1)
            self.phase = Phase.PREPARE_ABORT

    def forget(self) -> None:
        """Remove the transactional id, unless a transaction is under way."""
        if self.phase not in (Phase.ONGOING, *_PREPARED):
            self.producer, self.phase = None, Phase.EMPTY

    def _check(self, producer: ProducerEpoch) -> ErrorCode:
        if self.producer is None or producer.producer_id != self.producer.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return NONE if producer == self.producer else ErrorCode.PRODUCER_FENCED

    def _verify(self, producer: ProducerEpoch) -> ErrorCode:
        """The answer to a leader, in the form that it passes on to the producer."""
        error = self._check(producer)
        if error is NONE:
            return NONE if self.phase is Phase.ONGOING else ErrorCode.TRANSACTION_ABORTABLE
        return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error
