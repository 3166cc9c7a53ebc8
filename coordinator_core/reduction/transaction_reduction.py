"""Reduction of a range of `__transaction_state`: the last record per transactional id, with counts of the records up to it.

All records are decoded in columns; only those that a coordinator of the era does not load go through the scalar codec, which has
the reasons.
"""

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import ArrowColumn, Int64s, Numbers
from coordinator_core.codec.transaction_columns import STATE, TOMBSTONE, TransactionColumns, decode_transactions
from coordinator_core.codec.transactions import decode_transaction
from coordinator_core.log.columns import IS_CONTROL, RecordColumns, to_log_records
from coordinator_core.log.damage import Damage
from coordinator_core.reduction.reduced_transactions import (
    COUNTS,
    REDUCED_TRANSACTIONS,
    STATE_FIELDS,
    TransactionReduction,
    UnreadRecord,
)
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.transaction_cache import TransactionMetadataCache
from coordinator_core.state.transaction_metadata import TRANSACTION_VERSIONS
from coordinator_core.state.transaction_state import COMPLETE_ABORT, COMPLETE_COMMIT, EMPTY, TransactionState

_COUNTED_STATES = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)

#: Rows of pieces that wait for their reduction; more of them make the reductions rarer.
_MIN_WAITING = 65_536


class TransactionReducer:
    """Reduces the records of one log partition, piece by piece in log order."""

    def __init__(self, era: str, partition: int) -> None:
        """Raises ValueError for an era without transactions."""
        self._partition = partition
        #: Its rules and its reasons; it remains empty.
        self._cache = TransactionMetadataCache(era)
        self._reduced = REDUCED_TRANSACTIONS.empty_table()
        self._waiting: list[pa.Table] = []
        self._unread: list[UnreadRecord] = []
        self._damages: list[Damage] = []
        self._read = 0

    def add(self, columns: RecordColumns) -> None:
        """Reduce the next records."""
        self._damages += columns.damages
        self._read += len(columns)
        decoded = decode_transactions(
            columns.buffer,
            columns.key_start,
            columns.key_length,
            columns.value_start,
            columns.value_length,
            self._cache.loader.value_versions.stop,
        )
        is_loaded = _is_loaded(decoded) & (columns.flags & IS_CONTROL == 0)
        self._unread += self._unread_records(columns.take(np.flatnonzero(~is_loaded).tolist()))
        self._waiting.append(_reduced_piece(columns, decoded, np.flatnonzero(is_loaded)))
        if sum(map(len, self._waiting)) > max(_MIN_WAITING, len(self._reduced)):
            self._reduce_waiting()

    def finish(self) -> TransactionReduction:
        """The result for all records so far."""
        self._reduce_waiting()
        return TransactionReduction(self._partition, self._read, self._reduced, tuple(self._unread), tuple(self._damages))

    def _reduce_waiting(self) -> None:
        parts = [part for part in (self._reduced, *self._waiting) if len(part)]
        self._waiting = []
        if len(parts) < 2:
            # one part has an id once
            self._reduced = parts[0] if parts else self._reduced
            return
        rows = pa.concat_tables(parts)
        number, last = _last_per_id(rows["transactional_id"])
        counts = {name: np.bincount(number, rows[name].to_numpy(), len(last)).astype(np.int64) for name in COUNTS}
        kept = rows.drop_columns(list(COUNTS)).take(pa.array(last))
        self._reduced = _with_counts(kept, counts)

    def _unread_records(self, columns: RecordColumns) -> list[UnreadRecord]:
        found = []
        for record in to_log_records(columns, self._partition):
            anomaly = self._cache.apply(record, None if record.is_control else decode_transaction(record.key, record.value))
            assert isinstance(anomaly, Anomaly), f"{record} is loaded by the scalar codec only"
            found.append(UnreadRecord(record, anomaly))
        return found


def _last_per_id(ids: ArrowColumn) -> tuple[Int64s, Int64s]:
    """Return a number of each id, from 0 in the order of first rows, and for each number the last row with it."""
    encoded = ids.combine_chunks().dictionary_encode()
    number: Int64s = encoded.indices.to_numpy().astype(np.int64)
    last: Int64s = np.zeros(len(encoded.dictionary), np.int64)
    # of assignments to one index, the last one counts
    last[number] = np.arange(len(number))
    return number, last


def _is_loaded(decoded: TransactionColumns) -> Numbers:
    """True for each record that `loaded_metadata` accepts, and for each tombstone."""
    values = decoded.values
    state, version = values["state"], values["client_transaction_version"]
    is_valid = (state >= 0) & (state < len(TransactionState)) & ((state == EMPTY) | (values["topics"] >= 0))
    is_valid &= (version >= TRANSACTION_VERSIONS.start) & (version < TRANSACTION_VERSIONS.stop)
    is_loaded: Numbers = (decoded.status == TOMBSTONE) | ((decoded.status == STATE) & is_valid)
    return is_loaded


def _reduced_piece(columns: RecordColumns, decoded: TransactionColumns, rows: Int64s) -> pa.Table:
    """The last of the rows of each id."""
    number, chosen = decoded.last_rows(rows)
    # of rows that are not STATE, the bytes that were in their place
    states = np.where(decoded.status[rows] == STATE, decoded.values["state"][rows], -1)
    counts = [np.bincount(number, minlength=len(chosen))]
    counts += [np.bincount(number[states == state], minlength=len(chosen)) for state in _COUNTED_STATES]
    is_tombstone = decoded.status[chosen] == TOMBSTONE
    values = decoded.values[chosen]
    # the partitions of an Empty id are ignored
    values["topics"][values["state"] == EMPTY] = 0
    values["partitions"][values["state"] == EMPTY] = 0
    kept = pa.table(
        {
            "transactional_id": decoded.ids(chosen),
            **{name: pa.array(values[name], kind, mask=is_tombstone) for name, kind in STATE_FIELDS.items()},
            "partitions": decoded.partitions(values),
            "log_offset": columns.offset[chosen],
            "record_timestamp": columns.timestamp[chosen],
        }
    )
    return _with_counts(kept, dict(zip(COUNTS, counts, strict=True)))


def _with_counts(kept: pa.Table, counts: dict[str, Int64s]) -> pa.Table:
    for name in COUNTS:
        kept = kept.append_column(name, pa.array(counts[name], pa.int64()))
    return kept
