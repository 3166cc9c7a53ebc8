"""Compiled readers of big-endian integers, varints, UTF-8 and byte hashes, shared by the columnar kernels.

Positions are uint64 inside: numba then omits the test for negative indices, and LLVM can merge reads of adjacent bytes into one
word. These functions check no bounds unless documented; callers compare with the end of their slice first.
"""

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Int64s, Integer, Numbers

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0xC2B2AE3D27D4EB4F)
_HIGH_BITS = np.uint64(0x8080808080808080)


@njit(cache=True, inline="always")
def read_word(buffer: Bytes, position: Integer) -> Integer:
    """Read eight bytes at `position` as a big-endian uint64."""
    p = np.uint64(position)
    return (
        (np.uint64(buffer[p]) << np.uint64(56))
        | (np.uint64(buffer[p + np.uint64(1)]) << np.uint64(48))
        | (np.uint64(buffer[p + np.uint64(2)]) << np.uint64(40))
        | (np.uint64(buffer[p + np.uint64(3)]) << np.uint64(32))
        | (np.uint64(buffer[p + np.uint64(4)]) << np.uint64(24))
        | (np.uint64(buffer[p + np.uint64(5)]) << np.uint64(16))
        | (np.uint64(buffer[p + np.uint64(6)]) << np.uint64(8))
        | np.uint64(buffer[p + np.uint64(7)])
    )


@njit(cache=True, inline="always")
def read_int64(buffer: Bytes, position: Integer) -> Integer:
    """Read eight bytes at `position` as a big-endian two's complement integer."""
    return np.int64(read_word(buffer, position))


@njit(cache=True, inline="always")
def read_int32(buffer: Bytes, position: Integer) -> Integer:
    """Read four bytes at `position` as a big-endian two's complement integer."""
    p = np.uint64(position)
    word = (
        (np.uint32(buffer[p]) << np.uint32(24))
        | (np.uint32(buffer[p + np.uint64(1)]) << np.uint32(16))
        | (np.uint32(buffer[p + np.uint64(2)]) << np.uint32(8))
        | np.uint32(buffer[p + np.uint64(3)])
    )
    return np.int32(word)


@njit(cache=True, inline="always")
def read_int16(buffer: Bytes, position: Integer) -> Integer:
    """Read two bytes at `position` as a big-endian two's complement integer."""
    p = np.uint64(position)
    return np.int64(np.int16((np.uint16(buffer[p]) << np.uint16(8)) | np.uint16(buffer[p + np.uint64(1)])))


@njit(cache=True)
def read_unsigned_varint(buffer: Bytes, position: Integer, end: Integer) -> tuple[Integer, Integer]:
    """Read an unsigned varint of at most five bytes, truncated to 32 bits: (value, next position); position -1 if malformed."""
    value = np.int64(0)
    for k in range(min(end - position, 5)):
        byte = np.int64(buffer[np.uint64(position + k)])
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value & 0xFFFFFFFF, position + k + 1
    return np.int64(0), np.int64(-1)


@njit(cache=True)
def read_varint(buffer: Bytes, position: Integer, end: Integer) -> tuple[Integer, Integer]:
    """Read a zigzag varint of 32 bits: (value, next position); position -1 if truncated or too long."""
    if position < end and buffer[np.uint64(position)] < 0x80:
        short = np.int64(buffer[np.uint64(position)])
        return (short >> 1) ^ -(short & 1), position + 1
    raw, position = read_unsigned_varint(buffer, position, end)
    return (raw >> 1) ^ -(raw & 1), position


@njit(cache=True)
def read_varlong(buffer: Bytes, position: Integer, end: Integer) -> tuple[Integer, Integer]:
    """Read a zigzag varint of 64 bits: (value, next position); position -1 if truncated or too long."""
    if position < end and buffer[np.uint64(position)] < 0x80:
        short = np.int64(buffer[np.uint64(position)])
        return (short >> 1) ^ -(short & 1), position + 1
    raw = np.uint64(0)
    for k in range(min(end - position, 10)):
        byte = np.uint64(buffer[np.uint64(position + k)])
        raw |= (byte & np.uint64(0x7F)) << np.uint64(7 * k)
        if byte < np.uint64(0x80):
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), position + k + 1
    return np.int64(0), np.int64(-1)


@njit(cache=True)
def _lead_of_utf8(lead: Integer) -> tuple[Integer, Integer, Integer]:
    """Classify the first byte of a non-ASCII character: number of following bytes, and bounds of the second; 0 if invalid."""
    if 0xC2 <= lead <= 0xDF:
        return 1, 0x80, 0xBF
    if 0xE0 <= lead <= 0xEF:
        return 2, 0xA0 if lead == 0xE0 else 0x80, 0x9F if lead == 0xED else 0xBF
    if 0xF0 <= lead <= 0xF4:
        return 3, 0x90 if lead == 0xF0 else 0x80, 0x8F if lead == 0xF4 else 0xBF
    return 0, 0, 0


@njit(cache=True)
def is_utf8(buffer: Bytes, start: Integer, length: Integer) -> bool:
    """Whether the slice is well-formed UTF-8 for Python's strict decoder: no overlong forms, no surrogates."""
    position = start
    end = start + length
    while end - position >= 8 and (read_word(buffer, position) & _HIGH_BITS) == 0:
        position += 8
    while position < end:
        lead = np.int64(buffer[position])
        if lead < 0x80:
            position += 1
            continue
        following, lowest, highest = _lead_of_utf8(lead)
        if following == 0 or end - position <= following:
            return False
        if not lowest <= buffer[position + 1] <= highest:
            return False
        for k in range(2, following + 1):
            if (buffer[position + k] & 0xC0) != 0x80:
                return False
        position += following + 1
    return True


@njit(cache=True)
def hash_bytes(buffer: Bytes, start: Integer, length: Integer) -> Integer:
    """Return a 64-bit hash of the slice, eight bytes per step."""
    value = _SEED ^ np.uint64(length)
    position = start
    end = start + length
    while end - position >= 8:
        value = (value ^ read_word(buffer, position)) * _MULTIPLIER
        value ^= value >> np.uint64(29)
        position += 8
    tail = np.uint64(0)
    while position < end:
        tail = (tail << np.uint64(8)) | np.uint64(buffer[np.uint64(position)])
        position += 1
    value = (value ^ tail) * _MULTIPLIER
    value ^= value >> np.uint64(32)
    value *= _SEED
    return value ^ (value >> np.uint64(29))


@njit(cache=True)
def equal_bytes(left: Bytes, left_start: Integer, right: Bytes, right_start: Integer, length: Integer) -> bool:
    """Whether two slices of the same length have the same bytes."""
    k = 0
    while length - k >= 8:
        if read_word(left, left_start + k) != read_word(right, right_start + k):
            return False
        k += 8
    while k < length:
        if left[np.uint64(left_start + k)] != right[np.uint64(right_start + k)]:
            return False
        k += 1
    return True


@njit(cache=True)
def copy_bytes(source: Bytes, source_start: Integer, target: Bytes, target_start: Integer, length: Integer) -> None:
    """Copy a slice; source and target must not overlap."""
    for k in range(length):
        target[np.uint64(target_start + k)] = source[np.uint64(source_start + k)]


@njit(cache=True, nogil=True)
def gather_bytes(buffer: Bytes, starts: Int64s, lengths: Numbers, target: Bytes) -> None:
    """Copy slices one after the other into `target`, without the interpreter lock; negative lengths copy nothing."""
    position = np.int64(0)
    for i in range(starts.size):
        length = np.int64(max(lengths[i], 0))
        copy_bytes(buffer, starts[i], target, position, length)
        position += length
