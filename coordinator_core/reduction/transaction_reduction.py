"""Reduction of a range of `__transaction_state`: the last record per transactional id, with counts of the records before it.

Only the last record of an id decides its state, so the others are not decoded: their states are read in columns, from a fixed
position of the value. The survivors are applied by `TransactionMetadataCache`, which loads them as a coordinator of the era does.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator_core.codec.arrays import Bytes, Int8s, Int64s
from coordinator_core.codec.slices import binaries
from coordinator_core.codec.transactions import TRANSACTION_RECORD, decode_transaction
from coordinator_core.log.columns import IS_CONTROL, RecordColumns
from coordinator_core.log.damage import Damage
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.transaction_cache import LoggedTransaction, TransactionMetadataCache
from coordinator_core.state.transaction_state import TransactionState

Bools = NDArray[np.bool_]

#: Bytes of a key before the transactional id: record type and length.
_KEY_HEADER = 4
#: Position of the state in a value, in all versions: after version, producer id, epoch and timeout.
_STATE_AT = 16
#: In place of a state: a tombstone, and a record that cannot be read by its header.
_TOMBSTONE, _UNREADABLE = -1, -2


class Counts(NamedTuple):
    """Numbers of records: of all, and of those with the states Empty, CompleteCommit and CompleteAbort."""

    records: int
    initializations: int
    commits: int
    aborts: int


class ReducedTransaction(NamedTuple):
    """The last record of a transactional id in a range that a coordinator loads, and counts of the records up to it.

    `after` is None for a tombstone.
    """

    transactional_id: str
    after: LoggedTransaction | None
    log_offset: int
    record_timestamp: int
    counts: Counts


class UnreadRecord(NamedTuple):
    """A record that the era's coordinator does not load."""

    record: LogRecord
    reason: str


class TransactionReduction(NamedTuple):
    """Result for a range of one log partition."""

    partition: int
    records_read: int
    transactions: tuple[ReducedTransaction, ...]
    unread: tuple[UnreadRecord, ...]
    damages: tuple[Damage, ...]


class TransactionReducer:
    """Reduces the records of one log partition, piece by piece in log order.

    A record whose header cannot be read is reported as unread. The rest of a value is decoded only for the last record of an id
    in a piece; if it is damaged, the record before it counts.
    """

    def __init__(self, era: str, partition: int) -> None:
        """Raises ValueError for an era without transactions."""
        self._partition = partition
        self._cache = TransactionMetadataCache(era)
        self._reduced: dict[str, ReducedTransaction] = {}
        self._unread: list[UnreadRecord] = []
        self._damages: list[Damage] = []
        self._read = 0

    def add(self, columns: RecordColumns) -> None:
        """Reduce the next records."""
        self._damages += columns.damages
        self._read += len(columns)
        id_length = _id_lengths(columns)
        states = _states(columns, id_length, self._cache.loader.value_versions)
        for at in np.flatnonzero(states == _UNREADABLE).tolist():
            self._apply(columns, at, Counts(0, 0, 0, 0))
        readable: Int64s = np.flatnonzero(states != _UNREADABLE)
        ids = binaries(columns.buffer, columns.key_start[readable] + _KEY_HEADER, id_length[readable]).combine_chunks()
        encoded = ids.dictionary_encode()
        number: Int64s = encoded.indices.to_numpy().astype(np.int64)
        counts = _counts(number, states[readable], len(encoded.dictionary))
        last: Int64s = np.zeros(len(counts), np.int64)
        # of assignments to one index, the last one counts
        last[number] = readable
        failed = [index for index, at in enumerate(last.tolist()) if not self._apply(columns, at, counts[index])]
        if failed:
            self._apply_earlier(columns, readable, number, {index: counts[index] for index in failed})

    def finish(self) -> TransactionReduction:
        """The result for all records so far."""
        unread = tuple(sorted(self._unread, key=lambda each: each.record.offset))
        return TransactionReduction(self._partition, self._read, tuple(self._reduced.values()), unread, tuple(self._damages))

    def _apply_earlier(self, columns: RecordColumns, rows: Int64s, number: Int64s, counts: dict[int, Counts]) -> None:
        """For each id in `counts`, by its number, apply the newest record before its last one that has an effect."""
        order: Int64s = np.argsort(number, kind="stable")
        ends: Int64s = np.searchsorted(number[order], [index + 1 for index in counts])
        starts: Int64s = np.searchsorted(number[order], list(counts))
        for start, end, each in zip(starts.tolist(), ends.tolist(), counts.values(), strict=True):
            for at in rows[order[start : end - 1]][::-1].tolist():
                if self._apply(columns, at, each):
                    break

    def _apply(self, columns: RecordColumns, at: int, counts: Counts) -> bool:
        """Apply one record; False if it has no effect."""
        record = _record(columns, at, self._partition)
        change = self._cache.apply(record, None if record.is_control else decode_transaction(record.key, record.value))
        if isinstance(change, Anomaly):
            self._unread.append(UnreadRecord(record, change.detail))
            return False
        earlier = self._reduced.get(change.transactional_id)
        if earlier is not None:
            counts = Counts(*map(sum, zip(earlier.counts, counts, strict=True)))
        self._reduced[change.transactional_id] = ReducedTransaction(
            change.transactional_id, change.after, record.offset, record.timestamp, counts
        )
        return True


def _record(columns: RecordColumns, at: int, partition: int) -> LogRecord:
    """One row as a record."""
    return LogRecord(
        partition,
        int(columns.offset[at]),
        int(columns.timestamp[at]),
        _slice(columns.buffer, int(columns.key_start[at]), int(columns.key_length[at])),
        _slice(columns.buffer, int(columns.value_start[at]), int(columns.value_length[at])),
        is_control=bool(columns.flags[at] & IS_CONTROL),
    )


def _slice(buffer: Bytes, start: int, length: int) -> bytes | None:
    return None if length < 0 else buffer[start : start + length].tobytes()


def _id_lengths(columns: RecordColumns) -> Int64s:
    """Bytes of the transactional id in each key; -1 for a key that cannot be read."""
    long = columns.key_length >= _KEY_HEADER
    lengths: Int64s = np.full(len(columns), -1, np.int64)
    record_type = _int16(columns.buffer, columns.key_start, long)
    length = _int16(columns.buffer, columns.key_start + 2, long)
    is_key = long & (record_type == TRANSACTION_RECORD) & (length >= 0) & (length + _KEY_HEADER <= columns.key_length)
    lengths[is_key] = length[is_key]
    return lengths


def _states(columns: RecordColumns, id_length: Int64s, versions: range) -> Int8s:
    """State of each record by its header, or `_TOMBSTONE` or `_UNREADABLE`."""
    states: Int8s = np.full(len(columns), _UNREADABLE, np.int8)
    is_data = (id_length >= 0) & (columns.flags & IS_CONTROL == 0)
    long = is_data & (columns.value_length > _STATE_AT)
    version = _int16(columns.buffer, columns.value_start, long)
    state = _byte(columns.buffer, columns.value_start + _STATE_AT, long)
    is_value = long & (version >= versions.start) & (version < versions.stop) & (state < len(TransactionState))
    states[is_value] = state[is_value]
    states[is_data & (columns.value_length < 0)] = _TOMBSTONE
    return states


def _byte(buffer: Bytes, at: Int64s, chosen: Bools) -> Int64s:
    """Bytes at positions; 0 where not `chosen`."""
    found: Int64s = np.zeros(len(at), np.int64)
    found[chosen] = buffer[at[chosen]]
    return found


def _int16(buffer: Bytes, at: Int64s, chosen: Bools) -> Int64s:
    """Signed numbers of two bytes at positions; 0 where not `chosen`."""
    unsigned = (_byte(buffer, at, chosen) << 8) | _byte(buffer, at + 1, chosen)
    signed: Int64s = np.where(unsigned < 1 << 15, unsigned, unsigned - (1 << 16))
    return signed


def _counts(number: Int64s, states: Int8s, ids: int) -> list[Counts]:
    """Counts of the records of each id."""
    columns = [np.bincount(number, minlength=ids)]
    for state in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        columns.append(np.bincount(number[states == state], minlength=ids))
    return [Counts(*each) for each in np.column_stack(columns).tolist()]
