"""Compiled search in the bytes of a segment: the whole batches of a fetch, and the first batch with a timestamp."""

from numba import njit

from coordinator_core.codec.arrays import Bytes
from coordinator_core.codec.byte_kernels import read_int32, read_int64
from coordinator_core.log.record_batch import HEADER_SIZE, LOG_OVERHEAD

_LAST_OFFSET_DELTA_AT = 23
_MAX_TIMESTAMP_AT = 35


@njit(cache=True)
def whole_batches(data: Bytes, start_offset: int, end_offset: int, most_bytes: int) -> tuple[int, int, int]:
    """Return start and end of the batches from the one with `start_offset` on, and the offset after them.

    They begin before `end_offset` and have at most `most_bytes` together, except for a larger first one. Start and end are
    equal if there is none; the end is then the number of bytes to skip, or -1 minus the size of a first batch that `data` does
    not hold completely.
    """
    position = 0
    start = -1
    next_offset = start_offset
    while position + HEADER_SIZE <= len(data):
        base_offset = read_int64(data, position)
        end = position + LOG_OVERHEAD + read_int32(data, position + 8)
        last_offset = base_offset + read_int32(data, position + _LAST_OFFSET_DELTA_AT)
        if base_offset >= end_offset:
            break
        if last_offset >= start_offset:
            if start < 0:
                if end > len(data):
                    return position, position, -1 - (end - position)
                start = position
            elif end > len(data) or end - start > most_bytes:
                break
            next_offset = last_offset + 1
        elif end > len(data):
            return end, end, start_offset
        position = end
    if start < 0:
        return position, position, start_offset
    return start, position, next_offset


@njit(cache=True)
def first_with_timestamp(data: Bytes, timestamp: int) -> tuple[int, int]:
    """Return start and end of the first whole batch with a record of this timestamp or later; equal if there is none."""
    position = 0
    while position + HEADER_SIZE <= len(data):
        end = position + LOG_OVERHEAD + read_int32(data, position + 8)
        if end > len(data):
            break
        if read_int64(data, position + _MAX_TIMESTAMP_AT) >= timestamp:
            return position, end
        position = end
    return position, position
