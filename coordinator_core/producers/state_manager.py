"""The states of all producers of a partition, and its transactions (`ProducerStateManager`)."""

from collections.abc import Iterable, Mapping

from coordinator_core.log.record_batch import NO_PRODUCER_ID
from coordinator_core.producers.append import AppendOrigin, CompletedTransaction, ProducerAppend
from coordinator_core.producers.entry import NONE, ProducerStateEntry
from coordinator_core.producers.rules import RULES, ProducerRules
from coordinator_core.producers.verification import Verifications

#: Time after a transaction's timeout before it counts as late (`LATE_TRANSACTION_BUFFER_MS`).
LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000


class ProducerStateManager:
    """Producer id → entry, open transactions, and completed ones above the high watermark.

    One thread updates the states; another one may read `active_producers` and `first_undecided_offset` meanwhile.

    Attributes:
        rules: checks of the broker generation
        map_end_offset: offset up to which the states reflect the log
        verifications: verified transactions without data yet
        highest_producer_id: greatest id of all batches, those of expired producers included; -1 without one
    """

    def __init__(self, rules: ProducerRules = RULES["4"]) -> None:
        self.rules = rules
        self.map_end_offset = 0
        self.verifications = Verifications()
        self.highest_producer_id = NO_PRODUCER_ID
        self._entries: dict[int, ProducerStateEntry] = {}
        #: First offset of an open transaction → producer id.
        self._ongoing: dict[int, int] = {}
        #: First offset of a completed transaction → offset of its marker, until the high watermark has passed it.
        self._unreplicated: dict[int, int] = {}

    @property
    def entries(self) -> Mapping[int, ProducerStateEntry]:
        """Producer id → entry."""
        return self._entries

    def entry(self, producer_id: int) -> ProducerStateEntry:
        """Return the entry of a producer, an empty one if it is unknown."""
        return self._entries.get(producer_id) or ProducerStateEntry(producer_id)

    # ---- appends

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppend:
        """Begin the checks of a producer's batches; nothing changes before `update`."""
        return ProducerAppend(self.entry(producer_id), origin, self.rules, self.verifications.get(producer_id))

    def update(self, append: ProducerAppend, completed: Iterable[CompletedTransaction] = ()) -> None:
        """Apply checked batches that are in the log now, and the transactions that they complete."""
        producer_id = append.entry.producer_id
        if producer_id == NO_PRODUCER_ID:
            raise ValueError("a batch without producer id has no producer state")
        self._entries[producer_id] = append.entry
        if producer_id > self.highest_producer_id:
            self.highest_producer_id = producer_id
        for first_offset in append.started:
            self._ongoing[first_offset] = producer_id
        for transaction in completed:
            self.complete(transaction)

    def complete(self, transaction: CompletedTransaction) -> None:
        """Move an open transaction to the completed ones. Raises ValueError for one that is not open."""
        if self._ongoing.pop(transaction.first_offset, None) is None:
            raise ValueError(f"{transaction} was not started")
        self._unreplicated[transaction.first_offset] = transaction.last_offset

    # ---- transactions

    def last_stable_offset(self, completed: CompletedTransaction) -> int:
        """Return the last stable offset once this transaction is complete, for its row in the index.

        It is the first offset of another open transaction, otherwise the offset after the marker.
        """
        others = [first for first, producer_id in self._ongoing.items() if producer_id != completed.producer_id]
        return min(others, default=completed.last_offset + 1)

    def first_undecided_offset(self) -> int | None:
        """Return the first offset of the oldest open transaction, None if there is none."""
        return min(list(self._ongoing), default=None)

    def first_unstable_offset(self) -> int | None:
        """Return the first offset of the oldest transaction that is open or completed above the high watermark."""
        return min([*self._ongoing, *self._unreplicated], default=None)

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of the producer is open for a batch of this epoch."""
        entry = self.entry(producer_id)
        return entry.in_transaction and (entry.epoch == epoch or not self.rules.ongoing_needs_epoch)

    def has_late_transaction(self, now_ms: int, max_transaction_timeout_ms: int) -> bool:
        """Whether the oldest open transaction got its last batch longer ago than any transaction may take."""
        first_offset = self.first_undecided_offset()
        if first_offset is None:
            return False
        last = self.entry(self._ongoing[first_offset]).last_timestamp
        return last > 0 and now_ms - last > max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Forget the completed transactions whose markers are below the high watermark."""
        if self._unreplicated:
            self._unreplicated = {f: last for f, last in self._unreplicated.items() if last >= high_watermark}

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Forget the completed transactions before the new start of the log."""
        self.on_high_watermark_updated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    # ---- expiry and reload

    def active_producers(self, now_ms: int, expiration_ms: int) -> dict[int, ProducerStateEntry]:
        """Return the entries that are not expired."""
        return {i: entry for i, entry in list(self._entries.items()) if not entry.is_expired(now_ms, expiration_ms)}

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Remove the expired producers and verifications."""
        self._entries = self.active_producers(now_ms, expiration_ms)
        self.verifications.expire(now_ms, expiration_ms)

    def start_at(self, offset: int, entries: Iterable[ProducerStateEntry] = ()) -> None:
        """Replace all states by those of a snapshot, which covers the log up to `offset`."""
        self._entries = {entry.producer_id: entry for entry in entries}
        self.highest_producer_id = max(self.highest_producer_id, *self._entries, NO_PRODUCER_ID)
        self._ongoing = {
            entry.current_txn_first_offset: entry.producer_id
            for entry in self._entries.values()
            if entry.current_txn_first_offset != NONE
        }
        self._unreplicated = {}
        self.map_end_offset = offset
