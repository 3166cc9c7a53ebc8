"""Compiled loops of a cleaning. They release the interpreter lock, so that appends do not wait for them."""

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Int32s, Int64s, Integer, UInt64s
from coordinator_core.codec.byte_kernels import copy_bytes, equal_bytes, hash_bytes

_LOW_32 = np.uint64(0xFFFFFFFF)
_HIGH_32 = np.uint64(0xFFFFFFFF00000000)


@njit(cache=True, nogil=True)
def _find(
    buffer: Bytes, start: Integer, length: Integer, value: Integer, arena: Bytes, starts: Int64s, table: UInt64s
) -> tuple[Integer, Integer]:
    """Return the number of a key, -1 for a new one, and its slot.

    A slot has the upper half of the hash in its upper half and the number plus one in its lower half.
    """
    mask = np.uint64(table.size - 1)
    tag = value & _HIGH_32
    slot = value & mask
    while table[slot] != 0:
        if table[slot] & _HIGH_32 == tag:
            key = np.int64(table[slot] & _LOW_32) - 1
            if starts[key + 1] - starts[key] == length and equal_bytes(arena, starts[key], buffer, start, length):
                return key, np.int64(slot)
        slot = (slot + np.uint64(1)) & mask
    return np.int64(-1), np.int64(slot)


@njit(cache=True, nogil=True)
def note_offsets(
    buffer: Bytes,
    key_start: Int64s,
    key_length: Int32s,
    offset: Int64s,
    first: Integer,
    arena: Bytes,
    starts: Int64s,
    offsets: Int64s,
    table: UInt64s,
    count: Integer,
    used: Integer,
) -> tuple[Integer, Integer, Integer]:
    """Store the offsets of the records from `first` on, as far as there is room.

    Returns the next record, the number of keys and the used bytes of the arena.
    """
    for i in range(first, offset.size):
        length = np.int64(key_length[i])
        if length < 0:
            continue
        if 2 * (count + 1) > table.size or count == offsets.size or used + length > arena.size:
            return i, count, used
        value = hash_bytes(buffer, key_start[i], length)
        key, slot = _find(buffer, key_start[i], length, value, arena, starts, table)
        if key < 0:
            key = count
            copy_bytes(buffer, key_start[i], arena, used, length)
            count += 1
            used += length
            starts[count] = used
            table[slot] = (value & _HIGH_32) | np.uint64(count)
        offsets[key] = offset[i]
    return offset.size, count, used


@njit(cache=True, nogil=True)
def last_offsets(
    buffer: Bytes,
    key_start: Int64s,
    key_length: Int32s,
    arena: Bytes,
    starts: Int64s,
    offsets: Int64s,
    table: UInt64s,
    found: Int64s,
) -> None:
    """Look up the stored offset of each key, -1 for none."""
    for i in range(key_start.size):
        found[i] = -1
        length = np.int64(key_length[i])
        if length >= 0:
            key, _ = _find(buffer, key_start[i], length, hash_bytes(buffer, key_start[i], length), arena, starts, table)
            if key >= 0:
                found[i] = offsets[key]


@njit(cache=True, nogil=True)
def rehash(arena: Bytes, starts: Int64s, count: Integer, table: UInt64s) -> None:
    """Insert all keys into a larger, empty table."""
    mask = np.uint64(table.size - 1)
    for key in range(count):
        value = hash_bytes(arena, starts[key], starts[key + 1] - starts[key])
        slot = value & mask
        while table[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = (value & _HIGH_32) | np.uint64(key + 1)
