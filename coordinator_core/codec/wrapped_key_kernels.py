"""Compiled loop that finds wrapped keys among the records of a chunk, by the rule of `wrapped_keys`."""

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Int32s, Int64s, Integer
from coordinator_core.codec.byte_kernels import read_int16
from coordinator_core.codec.wrapped_keys import HIGHEST_TYPE, SHORTEST, WRAPPER


def unwrap_keys(buffer: Bytes, key_start: Int64s, key_length: Int32s) -> tuple[Int64s, Int32s]:
    """Return start and length of each key without its wrapper: the given arrays if no key has one.

    The arrays are slices of `buffer`; length -1 is null. Never reads outside of a record's slice.
    """
    data = buffer.view()
    # always read-only: numba would compile the kernel once more for writable arrays
    data.setflags(write=False)
    wrappers: Int32s = np.zeros(key_start.size, np.int32)
    if not _find_wrappers(data, key_start, key_length, wrappers):
        return key_start, key_length
    return key_start + wrappers, key_length - wrappers


@njit(cache=True)
def _find_wrappers(buffer: Bytes, key_start: Int64s, key_length: Int32s, wrappers: Int32s) -> Integer:
    """Set the length of the wrapper of each wrapped key, and return the number of these keys."""
    found = 0
    for i in range(key_start.size):
        start, length = key_start[i], np.int64(key_length[i])
        # the greatest byte of the length is 0 in wrapped keys, and in few others
        if length < SHORTEST or start < 0 or start + length > buffer.size or buffer[start + 3] != 0:
            continue
        inside = np.int64(buffer[start]) | np.int64(buffer[start + 1]) << 8 | np.int64(buffer[start + 2]) << 16
        record_type = read_int16(buffer, start + WRAPPER)
        if inside == length - WRAPPER and record_type >= 0 and record_type <= HIGHEST_TYPE:
            wrappers[i] = WRAPPER
            found += 1
    return found
