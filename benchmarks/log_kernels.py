"""Compiled writing of generated logs: the records of one log partition, batch after batch, before headers and compression."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

#: Partitions per commit: those of one topic.
COMMIT_PARTITIONS = 10
#: `OffsetCommitValue` v3 with empty metadata.
VALUE_BYTES = 24
#: The generation of a `GroupMetadataValue` v3 of protocol type "consumer".
GENERATION_AT = 12
#: Maximum size of lengths, deltas, attributes and header count of a record.
RECORD_OVERHEAD = 24

UNTOUCHED = 0
COMMITTED = 1
REMOVED = 2


class Names(NamedTuple):
    """Keys and group values of one log partition: slices `start[i]`–`start[i + 1]` of `arena`.

    Key `i` belongs to group `i // keys_per_group`; the keys of a topic are neighbours.
    """

    arena: Bytes
    key_start: Int64s
    group_key_start: Int64s
    group_value_start: Int64s


class PartitionShape(NamedTuple):
    """Composition of a partition. A share of N means one in N records, 0 means none."""

    records: int
    per_batch: int
    keys_per_group: int
    tombstone_every: int
    group_record_every: int
    first_timestamp: int
    records_per_ms: int
    seed: int


class Outcome(NamedTuple):
    """Final operation per key, and number of records of each kind."""

    last: Bytes
    offset: Int64s
    counts: Int64s


@njit(cache=True)
def _put_int(out: Bytes, position: int, number: int, size: int) -> int:
    for index in range(size):
        out[position + index] = (number >> (8 * (size - 1 - index))) & 0xFF
    return position + size


@njit(cache=True)
def _put_zigzag(out: Bytes, position: int, number: int) -> int:
    raw = number << 1
    while raw > 0x7F:
        out[position] = (raw & 0x7F) | 0x80
        position += 1
        raw >>= 7
    out[position] = raw
    return position + 1


@njit(cache=True)
def _zigzag_size(number: int) -> int:
    raw, size = number << 1, 1
    while raw > 0x7F:
        size += 1
        raw >>= 7
    return size


@njit(cache=True)
def _put_start(out: Bytes, position: int, time_delta: int, delta: int, key_length: int, value_length: int) -> int:
    """Write a record up to the bytes of its key; `value_length` -1 for a tombstone."""
    body = 1 + _zigzag_size(time_delta) + _zigzag_size(delta) + _zigzag_size(key_length) + key_length + 1
    body += 1 if value_length < 0 else _zigzag_size(value_length) + value_length
    position = _put_zigzag(out, position, body)
    out[position] = 0
    position = _put_zigzag(out, position + 1, time_delta)
    position = _put_zigzag(out, position, delta)
    return _put_zigzag(out, position, key_length)


@njit(cache=True)
def _put_slice(out: Bytes, position: int, arena: Bytes, start: int, end: int) -> int:
    for index in range(start, end):
        out[position] = arena[index]
        position += 1
    return position


@njit(cache=True)
def _put_value(out: Bytes, position: int, committed: int, timestamp: int) -> int:
    position = _put_int(out, position, 3, 2)
    position = _put_int(out, position, committed, 8)
    position = _put_int(out, position, -1, 4)
    position = _put_int(out, position, 0, 2)
    return _put_int(out, position, timestamp, 8)


@njit(cache=True)
def write_payloads(names: Names, shape: PartitionShape, out: Bytes, ends: Int64s, outcome: Outcome) -> int:
    """Fill `out` with the records of each batch and `ends` with the end of each batch's payload; return the number of batches.

    `outcome.counts`: commits, tombstones, group records.
    """
    np.random.seed(shape.seed)
    groups = names.group_key_start.size - 1
    commits_of_group = shape.keys_per_group // COMMIT_PARTITIONS
    position, batches, written, first = 0, 0, 0, 0
    key, left = 0, 0
    while written < shape.records:
        if written - first == shape.per_batch:
            ends[batches] = position
            batches += 1
            first = written
        timestamp = shape.first_timestamp + written // shape.records_per_ms
        time_delta = timestamp - (shape.first_timestamp + first // shape.records_per_ms)
        delta = written - first
        if shape.group_record_every and np.random.randint(0, shape.group_record_every) == 0:
            group = np.random.randint(0, groups)
            start, end = names.group_key_start[group], names.group_key_start[group + 1]
            value, value_end = names.group_value_start[group], names.group_value_start[group + 1]
            position = _put_start(out, position, time_delta, delta, end - start, value_end - value)
            position = _put_slice(out, position, names.arena, start, end)
            position = _put_zigzag(out, position, value_end - value)
            _put_slice(out, position, names.arena, value, value_end)
            _put_int(out, position + GENERATION_AT, written + 1, 4)
            position += value_end - value
            out[position] = 0
            position += 1
            outcome.counts[2] += 1
            written += 1
            continue
        if left == 0:
            key = np.random.randint(0, groups) * shape.keys_per_group
            key += np.random.randint(0, commits_of_group) * COMMIT_PARTITIONS
            left = COMMIT_PARTITIONS
        start, end = names.key_start[key], names.key_start[key + 1]
        removed = shape.tombstone_every and np.random.randint(0, shape.tombstone_every) == 0
        position = _put_start(out, position, time_delta, delta, end - start, -1 if removed else VALUE_BYTES)
        position = _put_slice(out, position, names.arena, start, end)
        if removed:
            out[position] = 1
            position += 1
            outcome.last[key] = REMOVED
            outcome.counts[1] += 1
        else:
            position = _put_zigzag(out, position, VALUE_BYTES)
            position = _put_value(out, position, written, timestamp)
            outcome.last[key] = COMMITTED
            outcome.offset[key] = written
            outcome.counts[0] += 1
        out[position] = 0
        position += 1
        key += 1
        left -= 1
        written += 1
    ends[batches] = position
    return batches + 1
