"""The state of one producer (`ProducerStateEntry`): its epoch, its newest batches and its open transaction."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from coordinator_core.log.record_batch import NO_PRODUCER_EPOCH, NO_SEQUENCE

#: Value of a field without an offset or a timestamp.
NONE = -1
#: Batches that a leader remembers to recognize duplicates (`NUM_BATCHES_TO_RETAIN`).
REMEMBERED_BATCHES = 5
_HIGHEST_SEQUENCE = (1 << 31) - 1


def increment_sequence(sequence: int, by: int) -> int:
    """Return the sequence number `by` numbers after this one; after 2147483647 comes 0 (`DefaultRecordBatch`)."""
    return (sequence + by) & _HIGHEST_SEQUENCE


def decrement_sequence(sequence: int, by: int) -> int:
    """Return the sequence number `by` numbers before this one."""
    return (sequence - by) & _HIGHEST_SEQUENCE


def is_next_sequence(last: int, sequence: int) -> bool:
    """Whether `sequence` follows `last`, the last number of the previous batch or -1."""
    return sequence == (0 if last == _HIGHEST_SEQUENCE else last + 1)


class BatchMetadata(NamedTuple):
    """A remembered batch of data; the timestamp is its greatest, in ms."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return decrement_sequence(self.last_sequence, self.offset_delta)


@dataclass(frozen=True, slots=True)
class ProducerStateEntry:
    """The state of a producer; an entry is replaced, never changed.

    `batches` are the newest ones of the epoch, oldest first. `last_timestamp` is that of the last batch or marker in ms,
    `current_txn_first_offset` is -1 without an open transaction, `coordinator_epoch` is -1 before the first marker.
    """

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NONE
    last_timestamp: int = NONE
    current_txn_first_offset: int = NONE
    batches: tuple[BatchMetadata, ...] = ()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.current_txn_first_offset != NONE

    @property
    def first_sequence(self) -> int:
        """First sequence number of the oldest remembered batch, -1 for none."""
        return self.batches[0].first_sequence if self.batches else NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """Last sequence number of the newest batch, -1 for none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """Last offset of the newest batch, -1 for none."""
        return self.batches[-1].last_offset if self.batches else NONE

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether no transaction is open and the last batch or marker is at least `expiration_ms` old."""
        return not self.in_transaction and now_ms - self.last_timestamp >= expiration_ms

    def find_duplicate(self, epoch: int, first_sequence: int, last_sequence: int, remembered: int) -> BatchMetadata | None:
        """Return the batch with exactly these sequence numbers among the newest `remembered` ones."""
        if epoch != self.epoch:
            return None
        wanted = (first_sequence, last_sequence)
        newest = self.batches[-remembered:]
        return next((batch for batch in newest if (batch.first_sequence, batch.last_sequence) == wanted), None)

    def with_batch(self, epoch: int, batch: BatchMetadata) -> "ProducerStateEntry":
        """Return the entry after a batch of data; a different epoch forgets the older batches."""
        kept = self.batches if epoch == self.epoch else ()
        batches = (*kept, batch)[-REMEMBERED_BATCHES:]
        return replace(self, epoch=epoch, last_timestamp=batch.timestamp, batches=batches)

    def with_marker(self, epoch: int, coordinator_epoch: int, timestamp: int) -> "ProducerStateEntry":
        """Return the entry after a transaction marker."""
        return ProducerStateEntry(
            self.producer_id, epoch, coordinator_epoch, timestamp, NONE, self.batches if epoch == self.epoch else ()
        )
