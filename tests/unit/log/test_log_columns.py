from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from expecting import expect_all
from message_sets import write_message_set
from scalar_logs import read_log

from coordinator_core.log.columns import (
    IS_CONTROL,
    IS_TRANSACTIONAL,
    columns_of,
    compiled_end_of,
    parse_columns,
    scalar_end_of,
    to_log_records,
)
from coordinator_core.log.compression import Compression
from coordinator_core.log.damage import Problem
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import BatchRecord, end_transaction_marker, write_batch


def batch(first: int, count: int = 3, **options: Any) -> bytes:
    records = [BatchRecord(first + i, 1_700_000_000_000 + i, b"key%d" % i, None if i % 2 else b"value") for i in range(count)]
    return write_batch(records, **options)


MARKER = end_transaction_marker(3, ControlType.COMMIT, producer_id=7, producer_epoch=1, timestamp=9)


def test_columns_have_the_records_of_the_batches() -> None:
    data = batch(0, producer_id=7, producer_epoch=1, transactional=True) + MARKER
    columns = parse_columns(data)
    assert columns.offset.tolist() == [0, 1, 2, 3]
    assert columns.batch_offset.tolist() == [0, 0, 0, 3]
    assert columns.timestamp.tolist() == [1_700_000_000_000, 1_700_000_000_001, 1_700_000_000_002, 9]
    assert columns.key_length.tolist() == [4, 4, 4, 4]
    assert columns.value_length.tolist() == [5, -1, 5, 6]
    assert columns.producer_id.tolist() == [7] * 4
    assert columns.flags.tolist() == [IS_TRANSACTIONAL] * 3 + [IS_TRANSACTIONAL | IS_CONTROL]
    start, length = columns.key_start[1], columns.key_length[1]
    assert columns.buffer[start : start + length].tobytes() == b"key1"
    assert (columns.next_offset, columns.consumed, columns.damages, len(columns)) == (4, len(data), (), 4)


def test_nothing_is_copied_unless_it_was_compressed() -> None:
    data = np.frombuffer(batch(0), np.uint8)
    assert np.shares_memory(parse_columns(data).buffer, data)
    packed = np.frombuffer(batch(0, compression=Compression.ZSTD), np.uint8)
    assert not np.shares_memory(parse_columns(packed).buffer, packed)


def test_the_callers_array_is_still_writable() -> None:
    data = np.frombuffer(batch(0), np.uint8).copy()
    parse_columns(data)
    assert data.flags.writeable


def test_nothing() -> None:
    columns = parse_columns(b"", 17)
    assert (len(columns), columns.next_offset, columns.consumed) == (0, 17, 0)


@pytest.mark.parametrize(
    ("start", "end", "offsets", "next_offset"),
    [(0, None, [0, 1, 2, 3, 4, 5], 6), (2, 4, [2, 3], 4), (3, 3, [], 3), (6, None, [], 6), (9, None, [], 9), (-5, 1, [0], 1)],
)
def test_range(start: int, end: int | None, offsets: list[int], next_offset: int) -> None:
    columns = parse_columns(batch(0) + batch(3), start, end)
    assert (columns.offset.tolist(), columns.next_offset) == (offsets, next_offset)


def test_next_offset_is_after_empty_batches() -> None:
    data = batch(0) + write_batch([], base_offset=5, last_offset=9, producer_id=1, producer_epoch=0)
    assert parse_columns(data).next_offset == 10
    assert compiled_end_of(data) == scalar_end_of(data, 2) == (10, 0, len(data))


def test_torn_tail_leaves_the_rest_to_the_next_call() -> None:
    data = batch(0) + batch(3)
    columns = parse_columns(data[:-1])
    assert columns.offset.tolist() == [0, 1, 2]
    assert columns.consumed == len(batch(0))
    assert [(damage.problem, damage.offset, damage.position) for damage in columns.damages] == [
        (Problem.TORN_TAIL, 3, len(batch(0)))
    ]
    assert compiled_end_of(data[:-1]) == scalar_end_of(data[:-1], 2) == (3, 0, len(batch(0)))


@pytest.mark.parametrize("wrap", [write_batch, write_message_set], ids=["v2", "v1"])
def test_very_much_decompressed_data_takes_several_calls(wrap: Callable[..., Any]) -> None:
    records = [[BatchRecord(offset, 1, b"k", bytes(1000))] for offset in range(5)]
    data = b"".join(wrap(record, compression=Compression.GZIP) for record in records)
    pieces, position, start = [], 0, 0
    while position < len(data):
        columns = parse_columns(data[position:], start, limit=2500)
        position, start = position + columns.consumed, columns.next_offset
        assert columns.damages == ()
        pieces.append(columns.offset.tolist())
    assert pieces == [[0, 1], [2, 3], [4]]


def test_long_batches_are_checked_by_the_library_and_short_ones_compiled() -> None:
    for count in (1, 500):
        data = bytearray(batch(0, count))
        assert parse_columns(bytes(data)).damages == ()
        data[40] ^= 1
        assert [damage.problem for damage in parse_columns(bytes(data)).damages] == [Problem.CRC_MISMATCH]


def test_old_messages_are_columns_too() -> None:
    old = [BatchRecord(0, 5, b"k", None), BatchRecord(1, 6, None, b"v")]
    data = write_message_set(old, compression=Compression.SNAPPY) + batch(2) + batch(5)[:-1]
    columns = parse_columns(data, 1)
    assert columns.offset.tolist() == [1, 2, 3, 4]
    assert columns.key_length.tolist() == [-1, 4, 4, 4]
    assert (columns.next_offset, columns.consumed) == (5, len(data) - len(batch(5)) + 1)
    assert [damage.problem for damage in columns.damages] == [Problem.TORN_TAIL]
    assert list(to_log_records(columns, 3)) == [record for record in read_log(data, 3, 1) if record not in columns.damages]


def test_records_to_columns_and_back() -> None:
    records = expect_all(LogRecord, read_log(batch(0) + MARKER, 4))
    assert list(to_log_records(columns_of(records, next_offset=4), 4)) == records
