"""Compiled loops of the columnar codec: keys into a dictionary, values into columns.

The layout is that of `schemas/records/offset_commit`. The scalar codec is the specification: records that these loops cannot
decode with certainty are marked `OTHER` and left to it. No loop reads outside of the slice of its record.
"""

from typing import Any

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Int32s, Int64s, Integer, Structs, UInt64s
from coordinator_core.codec.byte_kernels import (
    copy_bytes,
    equal_bytes,
    hash_bytes,
    is_utf8,
    read_int16,
    read_int32,
    read_int64,
    read_unsigned_varint,
)

OTHER = 0
COMMIT = 1
TOMBSTONE = 2

#: Two strings of at most 32,767 bytes with their lengths, and the partition.
LONGEST_KEY = 2 * (2 + 32_767) + 4
#: An entry is `start << LENGTH_BITS | length` of its bytes in the arena.
LENGTH_BITS = 17
LENGTH_MASK = (1 << LENGTH_BITS) - 1

_LOW_32 = np.uint64(0xFFFFFFFF)
_HIGH_32 = np.uint64(0xFFFFFFFF00000000)
_LONGEST_STRING = 0x7FFF
_AHEAD = 32
_TOPIC_ID_TAG = 0
_MAX_INT32 = 0x7FFFFFFF

#: A decoded value; `metadata_start` and `metadata_length` name a slice of the buffer.
VALUE = np.dtype(
    [
        ("offset", np.int64),
        ("commit_timestamp", np.int64),
        ("expire_timestamp", np.int64),
        ("topic_id_high", np.int64),
        ("topic_id_low", np.int64),
        ("metadata_start", np.int64),
        ("leader_epoch", np.int32),
        ("metadata_length", np.int16),
        ("version", np.int8),
    ],
    align=True,
)


@njit(cache=True)
def _key_body_length(buffer: Bytes, start: Integer, length: Integer) -> Integer:
    """Return the length of group, topic and partition in an offset commit key; -1 for any other key."""
    if length < 10 or start < 0 or start + length > buffer.size:
        return -1
    record_type = read_int16(buffer, start)
    if record_type != 0 and record_type != 1:
        return -1
    group = read_int16(buffer, start + 2)
    if group < 0 or 10 + group > length:
        return -1
    topic = read_int16(buffer, start + 4 + group)
    if topic < 0 or 10 + group + topic > length:
        return -1
    return np.int64(8 + group + topic)


@njit(cache=True)
def _has_utf8_names(buffer: Bytes, body: Integer) -> bool:
    group = read_int16(buffer, body)
    topic = read_int16(buffer, body + 2 + group)
    return bool(is_utf8(buffer, body + 2, group) and is_utf8(buffer, body + 4 + group, topic))


@njit(cache=True)
def hash_keys(buffer: Bytes, key_start: Int64s, key_length: Int32s, body_length: Int32s, hashes: UInt64s) -> None:
    """Compute length and hash of each offset commit key after its type; length -1 for any other key."""
    for i in range(key_start.size):
        length = _key_body_length(buffer, key_start[i], key_length[i])
        body_length[i] = length
        # no conditional expression: with uint64 and int64 branches its type is float64 in numba
        hashes[i] = 0
        if length >= 0:
            hashes[i] = hash_bytes(buffer, key_start[i] + 2, length)


@njit(cache=True)
def _read_ahead(hashes: UInt64s, first: Integer, arena: Bytes, entries: Int64s, table: UInt64s) -> Integer:
    """Read the slots, entries and arena bytes of the next keys in advance, so that their cache misses overlap.

    Returns a value computed from them, because the compiler would remove unused reads.
    """
    mask = np.uint64(table.size - 1)
    touched = np.int64(0)
    for i in range(first, min(first + _AHEAD, hashes.size)):
        candidate = table[hashes[i] & mask] & _LOW_32
        if candidate != 0:
            touched ^= np.int64(arena[np.uint64(entries[candidate - np.uint64(1)] >> LENGTH_BITS)])
    return touched


@njit(cache=True)
def index_keys(
    buffer: Bytes,
    key_start: Int64s,
    body_length: Int32s,
    hashes: UInt64s,
    first: Integer,
    key_index: Int32s,
    arena: Bytes,
    entries: Int64s,
    table: UInt64s,
    count: Integer,
    used: Integer,
) -> tuple[Integer, Integer, Integer, Integer]:
    """Look up the key of every record from `first` on and add new ones; -1 for records without offset commit key.

    Stops when the dictionary must grow. Returns (next record, number of keys, used bytes of the arena, a value without meaning).
    A slot of `table` has the upper half of the hash in its upper half, and the number of the key plus one in its lower half.
    """
    mask = np.uint64(table.size - 1)
    touched = np.int64(0)
    for i in range(first, key_start.size):
        if i % _AHEAD == 0:
            touched ^= _read_ahead(hashes, i, arena, entries, table)
        length = np.int64(body_length[i])
        if length < 0:
            key_index[i] = -1
            continue
        if 2 * (count + 1) > table.size or count == entries.size or used + length > arena.size:
            return i, count, used, touched
        body = key_start[i] + 2
        tag = hashes[i] & _HIGH_32
        slot = hashes[i] & mask
        found = np.int64(-1)
        while found < 0 and table[slot] != 0:
            candidate = table[slot] & _LOW_32
            if table[slot] == tag | candidate:
                entry = entries[candidate - np.uint64(1)]
                if (entry & LENGTH_MASK) == length and equal_bytes(buffer, body, arena, entry >> LENGTH_BITS, length):
                    found = np.int64(candidate) - 1
            if found < 0:
                slot = (slot + np.uint64(1)) & mask
        if found < 0 and _has_utf8_names(buffer, body):
            copy_bytes(buffer, body, arena, used, length)
            entries[count] = (used << LENGTH_BITS) | length
            table[slot] = tag | np.uint64(count + 1)
            found = np.int64(count)
            count += 1
            used += length
        key_index[i] = found
    return key_start.size, count, used, touched


@njit(cache=True)
def rehash(arena: Bytes, entries: Int64s, count: Integer, table: UInt64s) -> None:
    """Insert the first `count` entries into an empty table."""
    mask = np.uint64(table.size - 1)
    for index in range(count):
        entry = entries[index]
        value = hash_bytes(arena, entry >> LENGTH_BITS, entry & LENGTH_MASK)
        slot = value & mask
        while table[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = (value & _HIGH_32) | np.uint64(index + 1)


@njit(cache=True)
def locate_names(
    arena: Bytes,
    entries: Int64s,
    chosen: Int64s,
    group_length: Int32s,
    topic_start: Int64s,
    topic_length: Int32s,
    partition: Int32s,
) -> None:
    """Find the names of the chosen entries in the arena (a group starts two bytes into its entry), and their partitions."""
    for i in range(chosen.size):
        start = entries[chosen[i]] >> LENGTH_BITS
        group = read_int16(arena, start)
        topic = read_int16(arena, start + 2 + group)
        group_length[i] = group
        topic_start[i] = start + 4 + group
        topic_length[i] = topic
        partition[i] = read_int32(arena, start + 4 + group + topic)


@njit(cache=True)
def _read_topic_id(buffer: Bytes, position: Integer, end: Integer) -> tuple[bool, Integer, Integer]:
    """Read the tagged fields of a v4 value: (well-formed, upper and lower half of the topic id); other tags are skipped.

    The size of the known field is ignored, as in Kafka's generated readers.
    """
    high, low = np.int64(0), np.int64(0)
    count, position = read_unsigned_varint(buffer, position, end)
    if position < 0:
        return False, high, low
    if count > _MAX_INT32:
        count = np.int64(0)
    for _ in range(count):
        tag, position = read_unsigned_varint(buffer, position, end)
        if position < 0:
            return False, high, low
        size, position = read_unsigned_varint(buffer, position, end)
        if tag == _TOPIC_ID_TAG:
            size = np.int64(16)
        if position < 0 or size > end - position:
            return False, high, low
        if tag == _TOPIC_ID_TAG:
            high = read_int64(buffer, position)
            low = read_int64(buffer, position + 8)
        position += size
    return True, high, low


@njit(cache=True)
def _decode_value(buffer: Bytes, position: Integer, end: Integer, value: Any) -> bool:
    """Fill `value` from the slice; False if it is not a well-formed value of versions 0–4."""
    if position < 0 or end > buffer.size or end - position < 2:
        return False
    version = read_int16(buffer, position)
    position += 2
    fixed = 12 if version >= 3 else 8
    if version < 0 or version > 4 or end - position < fixed + 1:
        return False
    value.version = version
    value.offset = read_int64(buffer, position)
    value.leader_epoch = read_int32(buffer, position + 8) if version >= 3 else -1
    position += fixed
    if version == 4:
        size, position = read_unsigned_varint(buffer, position, end)
        size -= 1
    elif end - position >= 2:
        size = read_int16(buffer, position)
        position += 2
    else:
        return False
    times = 16 if version == 1 else 8
    if position < 0 or size < 0 or size > _LONGEST_STRING or end - position < size + times or not is_utf8(buffer, position, size):
        return False
    value.metadata_start = position
    value.metadata_length = size
    position += size
    value.commit_timestamp = read_int64(buffer, position)
    value.expire_timestamp = read_int64(buffer, position + 8) if version == 1 else -1
    readable, value.topic_id_high, value.topic_id_low = True, 0, 0
    if version == 4:
        readable, value.topic_id_high, value.topic_id_low = _read_topic_id(buffer, position + times, end)
    return readable


@njit(cache=True)
def decode_values(
    buffer: Bytes, value_start: Int64s, value_length: Int32s, key_index: Int32s, status: Bytes, values: Structs
) -> None:
    """Fill `values` for every record that has a key; set `key_index` to -1 if the value makes the record `OTHER`."""
    for i in range(value_start.size):
        status[i] = OTHER
        if key_index[i] < 0:
            continue
        if value_length[i] < 0:
            status[i] = TOMBSTONE
        elif _decode_value(buffer, value_start[i], value_start[i] + value_length[i], values[i]):
            status[i] = COMMIT
        else:
            key_index[i] = -1
