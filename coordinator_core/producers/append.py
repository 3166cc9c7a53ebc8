"""Checks of the batches that one producer appends, and their effect on its state (`ProducerAppendInfo`)."""

from dataclasses import replace
from enum import Enum, auto
from typing import NamedTuple

from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import NO_PRODUCER_EPOCH
from coordinator_core.producers.entry import NONE, BatchMetadata, ProducerStateEntry, increment_sequence, is_next_sequence
from coordinator_core.producers.rules import ProducerError, ProducerRules
from coordinator_core.producers.verification import VerificationStateEntry

#: `TransactionVersion`: markers of older coordinators have no version and count as version 0.
TRANSACTION_VERSION_2 = 2
_HIGHEST_EPOCH = (1 << 15) - 1


class AppendOrigin(Enum):
    """Origin of an append, which decides about the checks: a client's batches get all, replayed ones none."""

    CLIENT = auto()
    COORDINATOR = auto()
    REPLICATION = auto()


class ProducerRejected(Exception):
    """The append is refused, and the state is unchanged; `error` is the answer to the producer."""

    def __init__(self, error: ProducerError, message: str) -> None:
        super().__init__(message)
        self.error = error


class DataBatch(NamedTuple):
    """A batch of data of a producer; `timestamp` is the greatest of its records in ms."""

    producer_id: int
    epoch: int
    first_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int
    transactional: bool

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record."""
        return increment_sequence(self.first_sequence, self.last_offset - self.base_offset)


class Marker(NamedTuple):
    """A transaction marker at `offset`, with the timestamp of its record in ms."""

    producer_id: int
    epoch: int
    control_type: ControlType
    coordinator_epoch: int
    offset: int
    timestamp: int
    transaction_version: int = 0


class CompletedTransaction(NamedTuple):
    """A transaction that a marker at `last_offset` ends."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerAppend:
    """Batches of one producer that are checked and not yet written.

    Each batch is checked against the state after the previous ones. `entry` is the state once they are written, and
    `started` has the first offsets of the transactions that they open.
    """

    def __init__(
        self,
        entry: ProducerStateEntry,
        origin: AppendOrigin,
        rules: ProducerRules,
        verification: VerificationStateEntry | None = None,
    ) -> None:
        self._before = entry
        self._origin = origin
        self._rules = rules
        self._verification = verification
        self.entry = entry
        self.started: list[int] = []

    def add(self, batch: DataBatch | Marker) -> CompletedTransaction | None:
        """Add a batch of data or a marker; return the transaction that it ends, if any. Raises ProducerRejected."""
        if isinstance(batch, Marker):
            return self.append_marker(batch)
        self.append_data(batch)
        return None

    def append_data(self, batch: DataBatch) -> None:
        """Add a batch of data. Raises ProducerRejected."""
        if batch.epoch < self.entry.epoch and self._origin is not AppendOrigin.REPLICATION:
            raise self._stale_epoch(batch.epoch, batch.base_offset)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(batch)
        if self.entry.in_transaction and not batch.transactional and self._origin is not AppendOrigin.REPLICATION:
            raise ProducerRejected(
                ProducerError.INVALID_TXN_STATE,
                f"producer {batch.producer_id}: the batch at offset {batch.base_offset} must be transactional, because a "
                f"transaction is open since offset {self.entry.current_txn_first_offset}",
            )
        delta = batch.last_offset - batch.base_offset
        metadata = BatchMetadata(batch.last_sequence, batch.last_offset, delta, batch.timestamp)
        self.entry = self.entry.with_batch(batch.epoch, metadata)
        if batch.transactional and not self.entry.in_transaction:
            self.entry = replace(self.entry, current_txn_first_offset=batch.base_offset)
            self.started.append(batch.base_offset)

    def append_marker(self, marker: Marker) -> CompletedTransaction | None:
        """Add a marker and return the transaction that it ends, None if none is open. Raises ProducerRejected."""
        if self._origin is not AppendOrigin.REPLICATION:
            self._check_marker(marker)
        before, first_offset = self.entry, self.entry.current_txn_first_offset
        if not before.in_transaction and self._rules.completes_empty:
            first_offset = marker.offset
            self.started.append(marker.offset)
        self.entry = before.with_marker(marker.epoch, marker.coordinator_epoch, marker.timestamp)
        if first_offset == NONE:
            return None
        is_aborted = marker.control_type == ControlType.ABORT
        return CompletedTransaction(marker.producer_id, first_offset, marker.offset, is_aborted)

    def _check_marker(self, marker: Marker) -> None:
        entry = self.entry
        strict = self._rules.strict_markers and marker.transaction_version >= TRANSACTION_VERSION_2
        # a coordinator repeats markers, for example after a failover (KAFKA-19999)
        is_repeated = marker.epoch == entry.epoch and (not entry.in_transaction or marker.epoch == _HIGHEST_EPOCH)
        if marker.epoch < entry.epoch or (strict and marker.epoch == entry.epoch and not is_repeated):
            raise self._stale_epoch(marker.epoch, marker.offset)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise ProducerRejected(
                ProducerError.TRANSACTION_COORDINATOR_FENCED,
                f"producer {marker.producer_id}: the marker at offset {marker.offset} has coordinator epoch "
                f"{marker.coordinator_epoch}, the newest one is {entry.coordinator_epoch}",
            )

    def _check_sequence(self, batch: DataBatch) -> None:
        first, entry, verification = batch.first_sequence, self.entry, self._verification
        # a verification of another epoch, which may be forged, does not concern this producer
        if verification is not None and verification.epoch == batch.epoch:
            is_new = self._rules.starts_at_zero and verification.supports_epoch_bump and not self._before.batches
            if (is_new and first != 0) or first > verification.lowest_sequence:
                raise self._out_of_order(batch, 0 if is_new else verification.lowest_sequence)
        if batch.epoch != entry.epoch:
            is_known = entry.epoch != NO_PRODUCER_EPOCH
            error = ProducerError.OUT_OF_ORDER_SEQUENCE_NUMBER if is_known else self._rules.unknown_producer
            if first != 0 and error is not None:
                raise self._out_of_order(batch, 0, error)
        elif self._before.epoch != NO_PRODUCER_EPOCH and not is_next_sequence(entry.last_sequence, first):
            error = ProducerError.OUT_OF_ORDER_SEQUENCE_NUMBER if entry.batches else self._rules.marker_only
            raise self._out_of_order(batch, increment_sequence(entry.last_sequence, 1), error)

    def _stale_epoch(self, epoch: int, offset: int) -> ProducerRejected:
        return ProducerRejected(
            ProducerError.INVALID_PRODUCER_EPOCH,
            f"producer {self.entry.producer_id}: epoch {epoch} at offset {offset} is stale, the newest one is {self.entry.epoch}",
        )

    def _out_of_order(
        self, batch: DataBatch, expected: int, error: ProducerError = ProducerError.OUT_OF_ORDER_SEQUENCE_NUMBER
    ) -> ProducerRejected:
        return ProducerRejected(
            error,
            f"producer {batch.producer_id}: the batch at offset {batch.base_offset} has sequence {batch.first_sequence} "
            f"and epoch {batch.epoch}, expected sequence {expected}",
        )
