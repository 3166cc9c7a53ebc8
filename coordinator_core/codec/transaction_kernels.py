"""Compiled loops of the columnar codec of `__transaction_state`: values into columns, and the partitions in them.

The layout is that of `schemas/records/transactions`. A property test compares the loops with the scalar codec on any bytes. No
loop reads outside of the slice of its record.
"""

from typing import Any

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Int32s, Int64s, Integer, Structs
from coordinator_core.codec.byte_kernels import (
    equal_bytes,
    hash_bytes,
    is_utf8,
    read_int16,
    read_int32,
    read_int64,
    read_unsigned_varint,
)

OTHER = 0
STATE = 1
TOMBSTONE = 2

#: A decoded value. `topics_start` is the position of the first of `topics` topics, which have `partitions` numbers in all;
#: an array that is null has -1 topics.
TRANSACTION = np.dtype(
    [
        ("producer_id", np.int64),
        ("previous_producer_id", np.int64),
        ("next_producer_id", np.int64),
        ("start_ms", np.int64),
        ("last_update_ms", np.int64),
        ("topics_start", np.int64),
        ("topics", np.int32),
        ("partitions", np.int32),
        ("timeout_ms", np.int32),
        ("producer_epoch", np.int16),
        ("client_transaction_version", np.int16),
        ("state", np.int8),
        ("version", np.int8),
    ],
    align=True,
)

_TRANSACTION_RECORD = 0
#: Bytes of a key before the transactional id: record type and length.
KEY_HEADER = 4
#: Bytes of a value before its partitions: version, producer id, epoch, timeout and state.
_VALUE_HEADER = 17
_LONGEST_STRING = 0x7FFF
_MAX_INT32 = 0x7FFFFFFF
_PREVIOUS_PRODUCER_ID_TAG, _NEXT_PRODUCER_ID_TAG, _CLIENT_VERSION_TAG, _NEXT_EPOCH_TAG = range(4)


@njit(cache=True)
def _read_count(buffer: Bytes, position: Integer, end: Integer, version: Integer) -> tuple[Integer, Integer]:
    """Read the length of an array: (length, next position); any negative length is a null, position -1 if malformed."""
    if version >= 1:
        stored, position = read_unsigned_varint(buffer, position, end)
        return (stored - 1 if stored <= _MAX_INT32 + 1 else np.int64(-1)), position
    if end - position < 4:
        return np.int64(0), np.int64(-1)
    return np.int64(read_int32(buffer, position)), position + 4


@njit(cache=True)
def _read_string(buffer: Bytes, position: Integer, end: Integer, version: Integer) -> tuple[Integer, Integer]:
    """Read the length of a string that is not null: (length, start of its bytes); start -1 if malformed."""
    if version >= 1:
        stored, position = read_unsigned_varint(buffer, position, end)
        length = stored - 1
    elif end - position < 2:
        return np.int64(0), np.int64(-1)
    else:
        length = read_int16(buffer, position)
        position += 2
    if position < 0 or length < 0 or length > _LONGEST_STRING or length > end - position:
        return np.int64(0), np.int64(-1)
    return length, position


@njit(cache=True)
def _after_tags(buffer: Bytes, position: Integer, end: Integer, value: Any, is_value: bool) -> Integer:
    """Read a section of tagged fields, into `value` if it is that of the value; return the position after it, -1 if malformed.

    The size of a known field is ignored, as in Kafka's generated readers; other tags are skipped.
    """
    count, position = read_unsigned_varint(buffer, position, end)
    if count > _MAX_INT32:
        count = np.int64(0)
    for _ in range(count):
        if position < 0:
            return np.int64(-1)
        tag, position = read_unsigned_varint(buffer, position, end)
        if position < 0:
            return np.int64(-1)
        size, position = read_unsigned_varint(buffer, position, end)
        is_known = is_value and tag <= _NEXT_EPOCH_TAG
        if is_known:
            size = np.int64(8 if tag <= _NEXT_PRODUCER_ID_TAG else 2)
        if position < 0 or size > end - position:
            return np.int64(-1)
        if is_known and tag == _PREVIOUS_PRODUCER_ID_TAG:
            value.previous_producer_id = read_int64(buffer, position)
        elif is_known and tag == _NEXT_PRODUCER_ID_TAG:
            value.next_producer_id = read_int64(buffer, position)
        elif is_known and tag == _CLIENT_VERSION_TAG:
            value.client_transaction_version = read_int16(buffer, position)
        position += size
    return position


@njit(cache=True)
def _after_topics(buffer: Bytes, position: Integer, end: Integer, version: Integer, value: Any) -> Integer:
    """Read the topics of a value and count their partitions; return the position after them, -1 if malformed."""
    topics, position = _read_count(buffer, position, end, version)
    if position < 0 or topics > end - position:
        return np.int64(-1)
    value.topics_start = position
    value.topics = topics if topics >= 0 else -1
    for _ in range(topics):
        length, position = _read_string(buffer, position, end, version)
        if position < 0 or not is_utf8(buffer, position, length):
            return np.int64(-1)
        numbers, position = _read_count(buffer, position + length, end, version)
        if position < 0 or numbers < 0 or 4 * numbers > end - position:
            return np.int64(-1)
        value.partitions += numbers
        position += 4 * numbers
        if version >= 1:
            position = _after_tags(buffer, position, end, value, False)
            if position < 0:
                return np.int64(-1)
    return position


@njit(cache=True)
def _decode_value(buffer: Bytes, position: Integer, end: Integer, value: Any) -> bool:
    """Fill `value` from the slice, whose version is in `value`; False if it is malformed."""
    value.producer_id = read_int64(buffer, position + 2)
    value.producer_epoch = read_int16(buffer, position + 10)
    value.timeout_ms = read_int32(buffer, position + 12)
    value.state = np.int8(buffer[np.uint64(position + 16)])
    value.previous_producer_id = -1
    value.next_producer_id = -1
    value.client_transaction_version = 0
    value.partitions = 0
    position = _after_topics(buffer, position + _VALUE_HEADER, end, value.version, value)
    if position < 0 or end - position < 16:
        return False
    value.last_update_ms = read_int64(buffer, position)
    value.start_ms = read_int64(buffer, position + 8)
    return bool(value.version < 1 or _after_tags(buffer, position + 16, end, value, True) >= 0)


@njit(cache=True)
def _id_length(buffer: Bytes, start: Integer, length: Integer) -> Integer:
    """Length of the transactional id in a key; -1 for any other key."""
    if length < KEY_HEADER or start < 0 or start + length > buffer.size:
        return np.int64(-1)
    id_length = read_int16(buffer, start + 2)
    if read_int16(buffer, start) != _TRANSACTION_RECORD or id_length < 0 or id_length > length - KEY_HEADER:
        return np.int64(-1)
    if not is_utf8(buffer, start + KEY_HEADER, id_length):
        return np.int64(-1)
    return np.int64(id_length)


@njit(cache=True)
def decode_records(
    buffer: Bytes,
    key_start: Int64s,
    key_length: Int32s,
    value_start: Int64s,
    value_length: Int32s,
    versions: Integer,
    status: Bytes,
    id_length: Int32s,
    values: Structs,
) -> None:
    """Decode every record, with values of versions below `versions`."""
    for i in range(key_start.size):
        length = _id_length(buffer, key_start[i], key_length[i])
        id_length[i] = length
        status[i] = OTHER
        if length < 0:
            continue
        start, size = value_start[i], np.int64(value_length[i])
        if size < 0:
            status[i] = TOMBSTONE
            continue
        if size < _VALUE_HEADER or start < 0 or start + size > buffer.size:
            continue
        version = read_int16(buffer, start)
        if version < 0 or version >= versions:
            continue
        values[i].version = version
        if _decode_value(buffer, start, start + size, values[i]):
            status[i] = STATE


@njit(cache=True)
def number_ids(
    buffer: Bytes, id_start: Int64s, id_length: Int32s, chosen: Int64s, table: Int32s, number: Int32s, last: Int64s
) -> Integer:
    """Number the transactional ids of the chosen rows from 0, in the order of their first rows; return how many there are.

    `number` gets that of each chosen row, `last` the last row of each id. `table` is empty, with a power of two of slots.
    """
    mask = np.uint64(table.size - 1)
    count = 0
    for k in range(chosen.size):
        row = chosen[k]
        slot = hash_bytes(buffer, id_start[row], id_length[row]) & mask
        found = np.int64(-1)
        while found < 0:
            candidate = np.int64(table[slot]) - 1
            if candidate < 0:
                found = np.int64(count)
                count += 1
                table[slot] = count
            elif id_length[last[candidate]] == id_length[row] and equal_bytes(
                buffer, id_start[last[candidate]], buffer, id_start[row], id_length[row]
            ):
                found = candidate
            else:
                slot = (slot + np.uint64(1)) & mask
        number[k] = found
        last[found] = row
    return count


@njit(cache=True)
def locate_partitions(
    buffer: Bytes, values: Structs, topic_start: Int64s, topic_length: Int32s, topic_size: Int32s, numbers: Int32s
) -> None:
    """Find the topics of decoded values, one after the other: slices of their names, and their partitions."""
    at, number = 0, 0
    for i in range(values.size):
        position, end = values[i].topics_start, np.int64(buffer.size)
        version = values[i].version
        for _ in range(values[i].topics):
            length, position = _read_string(buffer, position, end, version)
            topic_start[at] = position
            topic_length[at] = length
            count, position = _read_count(buffer, position + length, end, version)
            topic_size[at] = count
            for _ in range(count):
                numbers[number] = read_int32(buffer, position)
                number += 1
                position += 4
            if version >= 1:
                position = _after_tags(buffer, position, end, values[i], False)
            at += 1
