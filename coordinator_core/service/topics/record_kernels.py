"""Compiled check of the uncompressed records of a produced batch."""

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes
from coordinator_core.codec.byte_kernels import read_varint
from coordinator_core.log.batch_kernels import read_record
from coordinator_core.log.record_batch import HEADER_SIZE

_NO_TIMESTAMP = -1
_LARGEST = np.iinfo(np.int64).max
_SMALLEST = np.iinfo(np.int64).min


@njit(cache=True)
def check_records(batch: Bytes, count: int, base_timestamp: int, needs_keys: bool) -> tuple[bool, int, int, int]:
    """Return whether the records are valid and have the offsets 0 to `count` - 1, and if `needs_keys`, keys.

    The numbers are the earliest and the latest timestamp without those of -1 (the earliest is the larger one if there is none),
    and the greatest of all, in ms.
    """
    earliest, latest, greatest = _LARGEST, _SMALLEST, _SMALLEST
    position, end = np.int64(HEADER_SIZE), len(batch)
    for number in range(count):
        length, position = read_varint(batch, position, end)
        if position < 0 or length < 0 or length > end - position:
            return False, earliest, latest, greatest
        timestamp_delta, offset_delta, _, key_length, _, _, problem = read_record(batch, position, position + length, count - 1)
        if problem != 0 or offset_delta != number or (needs_keys and key_length < 0):
            return False, earliest, latest, greatest
        timestamp = base_timestamp + timestamp_delta
        greatest = max(greatest, timestamp)
        if timestamp != _NO_TIMESTAMP:
            earliest, latest = min(earliest, timestamp), max(latest, timestamp)
        position += length
    return position == end, earliest, latest, greatest
