"""Data records of a log: those that a consumer with read_committed returns."""

from collections.abc import Iterable

import numpy as np

from coordinator_core.codec.arrays import Int64s
from coordinator_core.log.batch_rows import IS_CONTROL, IS_TRANSACTIONAL
from coordinator_core.log.columns import RecordColumns


def data_offsets(columns: RecordColumns, aborted: Iterable[tuple[int, int]]) -> Int64s:
    """Offsets of the records outside of control batches and aborted transactions, ascending.

    `aborted` has the producer id and the first offset of each aborted transaction that overlaps the records, as FetchResponse has
    them. Such a transaction ends with the producer's next marker.
    """
    offset, producer = columns.offset, columns.producer_id
    control = (columns.flags & IS_CONTROL) != 0
    transactional = (columns.flags & IS_TRANSACTIONAL) != 0
    data = ~control
    for producer_id, first_offset in aborted:
        of_producer = (producer == producer_id) & (offset >= first_offset)
        markers = offset[of_producer & control]
        end = markers[0] if len(markers) else np.iinfo(np.int64).max
        data &= ~(of_producer & transactional & (offset < end))
    found: Int64s = offset[data]
    return found
