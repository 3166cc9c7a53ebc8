"""State of the producers of a partition (`ProducerStateManager`): open transactions, and the newest batch of each producer."""

from dataclasses import dataclass

from coordinator_core.log.record_batch import NO_PRODUCER_ID

#: `last_data_offset` of a producer whose epoch has no data yet.
NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class LastBatch:
    """The newest batch of a producer: last offset of the data in its newest epoch, and time of its last write in ms."""

    last_data_offset: int
    epoch: int
    timestamp: int


class ProducerStates:
    """Producer states, updated by `note` with every batch in log order; another thread may read them meanwhile."""

    def __init__(self) -> None:
        self._first_of_open: dict[int, int] = {}
        self._last: dict[int, LastBatch] = {}

    def note(
        self,
        producer_id: int,
        epoch: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        *,
        transactional: bool,
        control: bool,
    ) -> None:
        """Update the states with the next batch; a batch without producer changes nothing."""
        if producer_id == NO_PRODUCER_ID:
            return
        known = self._last.get(producer_id)
        if control:
            self._first_of_open.pop(producer_id, None)
            last_offset = known.last_data_offset if known is not None and known.epoch == epoch else NO_OFFSET
        elif transactional:
            self._first_of_open.setdefault(producer_id, first_offset)
        self._last[producer_id] = LastBatch(last_offset, epoch, timestamp)

    def first_unstable_offset(self, end_offset: int) -> int:
        """Return the first offset of the oldest open transaction, `end_offset` if there is none (`lastStableOffset`)."""
        return min(list(self._first_of_open.values()), default=end_offset)

    def active(self, now_ms: int, expiration_ms: int) -> dict[int, LastBatch]:
        """Return the active producers: with an open transaction, or with a write less than `expiration_ms` ago."""
        is_open = dict(self._first_of_open)
        last = dict(self._last)
        return {i: batch for i, batch in last.items() if i in is_open or now_ms - batch.timestamp < expiration_ms}
