from collections.abc import Iterable
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as TheirBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from expecting import expect, expect_all
from scalar_logs import read_log

from coordinator_core.log.columns import parse_columns
from coordinator_core.log.compression import Compression
from coordinator_core.log.damage import Damage, Problem
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import BatchRecord, control_type, end_transaction_marker, read_header, write_batch

RECORDS = [
    BatchRecord(100, 1_700_000_000_000, b"key", b"value"),
    BatchRecord(101, 1_699_999_999_000, None, b"v" * 300, headers=(("trace", b"1"), ("empty", None))),
    BatchRecord(105, 1_700_000_000_007, b"", None),
]


def plain(items: Iterable[Any]) -> list[tuple[bytes | int | None, ...]]:
    return [(item.offset, item.timestamp, item.key, item.value) for item in items]


@pytest.mark.parametrize("codec", Compression)
def test_what_is_written_is_read(codec: Compression) -> None:
    data = write_batch(RECORDS, producer_id=7, producer_epoch=2, transactional=True, compression=codec)
    assert list(read_log(data, 3)) == [
        LogRecord(3, r.offset, r.timestamp, r.key, r.value, 7, 2, True, False, 100) for r in RECORDS
    ]


@pytest.mark.parametrize("codec", Compression)
def test_aiokafka_reads_what_is_written(codec: Compression) -> None:
    theirs = TheirBatch(bytearray(write_batch(RECORDS, producer_id=7, producer_epoch=2, base_sequence=5, compression=codec)))
    assert theirs.validate_crc()
    assert (theirs.base_offset, theirs.next_offset, theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (
        100,
        106,
        7,
        2,
        5,
    )
    read = list(theirs)
    assert plain(read) == plain(RECORDS)
    assert [tuple(record.headers) for record in read] == [record.headers for record in RECORDS]


@pytest.mark.parametrize("codec", Compression)
def test_what_aiokafka_writes_is_read(codec: Compression) -> None:
    theirs = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=int(codec),
        is_transactional=1,
        producer_id=9,
        producer_epoch=1,
        base_sequence=0,
        batch_size=1 << 20,
    )
    for offset in range(50):
        theirs.append(offset, 1_700_000_000_000 + offset, b"k%d" % offset, None if offset % 3 else b"v" * 100, [("h", b"x")])
    read = expect_all(LogRecord, read_log(bytes(theirs.build()), 0))
    assert plain(read) == [(o, 1_700_000_000_000 + o, b"k%d" % o, None if o % 3 else b"v" * 100) for o in range(50)]
    assert {(r.producer_id, r.producer_epoch, r.is_transactional, r.batch_offset) for r in read} == {(9, 1, True, 0)}


def test_log_append_time_is_that_of_the_batch() -> None:
    assert {record.timestamp for record in expect_all(LogRecord, read_log(write_batch(RECORDS, log_append_time=42), 0))} == {42}


@pytest.mark.parametrize("kind", ControlType)
def test_marker(kind: ControlType) -> None:
    data = end_transaction_marker(12, kind, producer_id=7, producer_epoch=3, timestamp=5, coordinator_epoch=1)
    (marker,) = expect_all(LogRecord, read_log(data, 1))
    assert (marker.offset, marker.timestamp, marker.producer_id, marker.producer_epoch) == (12, 5, 7, 3)
    assert marker.is_control
    assert marker.is_transactional
    assert control_type(marker.key) is kind.value
    assert marker.value == bytes.fromhex("000000000001")


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_control_key_too_short_for_a_type(key: bytes | None) -> None:
    assert control_type(key) is None


def test_empty_batch_keeps_its_offsets() -> None:
    data = write_batch([], base_offset=10, last_offset=19, producer_id=4, producer_epoch=0, base_sequence=0)
    assert read_header(memoryview(data)).last_offset == 19
    assert list(read_log(data, 0)) == []


def broken(at: int, new: bytes, records: list[BatchRecord] = RECORDS) -> bytes:
    data = bytearray(write_batch(records))
    data[at : at + len(new)] = new
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "problems", "offsets"),
    [
        (broken(17, b"\0\0\0\0"), [Problem.CRC_MISMATCH], [100, 101, 105]),
        (broken(16, b"\3"), [Problem.UNKNOWN_MAGIC], []),
        (broken(0, b"\xff"), [Problem.IMPOSSIBLE_OFFSET], []),
        (broken(0, b"\x40"), [Problem.IMPOSSIBLE_OFFSET], []),
        (broken(0, b"\x7f" + 7 * b"\xff"), [Problem.IMPOSSIBLE_OFFSET], []),
        (broken(8, b"\0\0\0\x0d"), [Problem.IMPOSSIBLE_LENGTH], []),
        (broken(8, b"\0\0\0\x30"), [Problem.IMPOSSIBLE_LENGTH], []),
        (broken(8, b"\x7f"), [Problem.TORN_TAIL], []),
        (broken(22, b"\5"), [Problem.CRC_MISMATCH, Problem.UNKNOWN_COMPRESSION], []),
        (broken(22, b"\4"), [Problem.CRC_MISMATCH, Problem.BAD_PAYLOAD], []),
        (broken(23, b"\xff"), [Problem.IMPOSSIBLE_OFFSET], []),
        (broken(23, b"\0\0\0\1"), [Problem.CRC_MISMATCH, Problem.RECORD_OFFSET], [100, 101]),
        (broken(57, b"\xff"), [Problem.CRC_MISMATCH, Problem.IMPOSSIBLE_COUNT], []),
        (broken(57, b"\x7f"), [Problem.CRC_MISMATCH, Problem.RECORDS_MISSING], [100, 101, 105]),
        (broken(57, b"\0\0\0\2"), [Problem.CRC_MISMATCH, Problem.RECORDS_LEFT_OVER], [100, 101]),
        (broken(61, b"\x7f"), [Problem.CRC_MISMATCH, Problem.RECORD_TRUNCATED], []),
        (broken(61, b"\xff\xff\xff\xff\xff\xff"), [Problem.CRC_MISMATCH, Problem.RECORD_TRUNCATED], []),
        (broken(65, b"\x7e"), [Problem.CRC_MISMATCH, Problem.RECORD_FIELD], []),
    ],
)
def test_damage_is_named_and_the_next_batch_is_read(data: bytes, problems: list[Problem], offsets: list[int]) -> None:
    items = list(read_log(data + write_batch([BatchRecord(200, 1, b"next", b"")]), 0))
    damages = [item for item in items if isinstance(item, Damage)]
    assert [damage.problem for damage in damages] == problems
    assert all(damage.position == 0 for damage in damages)
    follows = [] if problems[-1] in (Problem.TORN_TAIL, Problem.IMPOSSIBLE_LENGTH) else [200]
    assert [item.offset for item in items if isinstance(item, LogRecord)] == offsets + follows


def test_damage_in_words() -> None:
    assert Damage(7, 90, Problem.BAD_PAYLOAD, "zstd: incomplete frame").reason == (
        "batch at offset 7, byte 90: payload does not decompress (zstd: incomplete frame)"
    )
    assert all(problem.text for problem in Problem)


def test_only_the_requested_range() -> None:
    data = write_batch(RECORDS) + write_batch([BatchRecord(106, 1, b"k", b"")]) + write_batch([BatchRecord(107, 1, b"k", b"")])
    assert [record.offset for record in read_log(data, 0, 101, 107)] == [101, 105, 106]
    assert {record.batch_offset for record in expect_all(LogRecord, read_log(data, 0, 101, 106))} == {100}


@pytest.mark.parametrize("offset", [b"\x40", b"\x7f" + 7 * b"\xff"])
def test_an_impossible_offset_does_not_pass_for_the_end_of_the_range(offset: bytes) -> None:
    data = broken(0, offset) + write_batch([BatchRecord(200, 1, b"next", b"")])
    damage, record = read_log(data, 0, 0, 300)
    assert expect(Damage, damage).problem is Problem.IMPOSSIBLE_OFFSET
    assert record.offset == 200
    columns = parse_columns(data, 0, 300)
    assert (columns.damages, columns.offset.tolist(), columns.next_offset) == ((damage,), [200], 201)
