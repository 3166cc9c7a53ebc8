"""Load of a partition of `__transaction_state` from its beginning, as columns.

The result is that of `TransactionMetadataCache.apply` for every record. Most records are superseded by a later one of their id,
and are not decoded.
"""

from collections.abc import Iterable

import numpy as np

from coordinator_core.codec import decode_transaction
from coordinator_core.log.batch_kernels import IS_CONTROL
from coordinator_core.log.columns import RecordColumns, to_log_records
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.garbage_collection import no_garbage_collection
from coordinator_core.state.transaction_cache import TransactionMetadataCache


def load_transaction_columns(
    cache: TransactionMetadataCache, partition: int, pieces: Iterable[RecordColumns]
) -> tuple[Anomaly, ...]:
    """Load a whole log partition, in pieces in log order. Return the anomalies, except those of superseded records."""
    found: list[Anomaly] = []
    with no_garbage_collection():
        for columns in pieces:
            found += _load(cache, partition, columns)
    return tuple(found)


def _load(cache: TransactionMetadataCache, partition: int, columns: RecordColumns) -> list[Anomaly]:
    found = _apply(cache, partition, columns.take(_last_rows(columns)))
    # without a readable last record, the one before it counts
    return _apply(cache, partition, columns) if found else []


def _apply(cache: TransactionMetadataCache, partition: int, columns: RecordColumns) -> list[Anomaly]:
    found: list[Anomaly] = []
    for record in to_log_records(columns, partition):
        applied = cache.apply(record, None if record.is_control else decode_transaction(record.key, record.value))
        if isinstance(applied, Anomaly):
            found.append(applied)
    return found


def _last_rows(columns: RecordColumns) -> list[int]:
    """Return the last row of each key, and the rows of null keys and of control records, ascending."""
    data = columns.buffer.data
    without = (columns.key_length < 0) | ((columns.flags & IS_CONTROL) != 0)
    last = {
        bytes(data[start : start + length]): row
        for row, (start, length, alone) in enumerate(
            zip(columns.key_start.tolist(), columns.key_length.tolist(), without.tolist(), strict=True)
        )
        if not alone
    }
    return sorted({*last.values(), *np.flatnonzero(without).tolist()})
