"""Verification of transactional batches: the leader asks the transaction coordinator before the first one (KIP-890)."""

from dataclasses import dataclass

#: Guard of a request for which no verification was needed; it never matches.
NO_GUARD = 0


@dataclass(slots=True)
class VerificationStateEntry:
    """A verification in progress or passed, until the transaction's first batch is written.

    `guard` identifies it, so that an answer to an earlier one does not count. `lowest_sequence` is that of the batches seen
    in `epoch`: greater ones wait until it is written. `supports_epoch_bump`: the client uses transaction version 2.
    """

    timestamp: int
    guard: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool

    def note(self, sequence: int, epoch: int) -> None:
        """Take a further batch that needs verification into account."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence


class Verifications:
    """The verification entries of a partition, by producer id."""

    def __init__(self) -> None:
        self._entries: dict[int, VerificationStateEntry] = {}
        self._guards = NO_GUARD

    def get(self, producer_id: int) -> VerificationStateEntry | None:
        """Return the entry of a producer."""
        return self._entries.get(producer_id)

    def get_or_create(
        self, producer_id: int, sequence: int, epoch: int, now_ms: int, *, supports_epoch_bump: bool = False
    ) -> VerificationStateEntry:
        """Return the producer's entry, created if missing, after taking the batch into account."""
        entry = self._entries.get(producer_id)
        if entry is None:
            self._guards += 1
            entry = VerificationStateEntry(now_ms, self._guards, sequence, epoch, supports_epoch_bump)
            self._entries[producer_id] = entry
        entry.note(sequence, epoch)
        return entry

    def remove(self, producer_id: int) -> None:
        """Forget the producer's entry."""
        self._entries.pop(producer_id, None)

    def matches(self, producer_id: int, guard: int) -> bool:
        """Whether the guard is that of the producer's entry."""
        entry = self._entries.get(producer_id)
        return entry is not None and guard == entry.guard

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove the entries that are at least `expiration_ms` old."""
        self._entries = {i: entry for i, entry in self._entries.items() if now_ms - entry.timestamp < expiration_ms}
