"""Checks of produced batches: all that hostile producers send gets Kafka's error, and nothing is appended."""

import struct
from contextlib import suppress

import pytest
from crc32c import crc32c
from data_partitions import LIMITS, NOW_MS, batch
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.log.compression import Compression
from coordinator_core.log.record_batch import CRC_START, read_header
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.service.topics import batch_check
from coordinator_core.service.topics.batch_check import BatchLimits, BatchRefused, check_batch, is_transactional

COUNT_AT, DELTA_AT, ATTRIBUTES_AT, SEQUENCE_AT, MAX_TIMESTAMP_AT, PRODUCER_AT = 57, 23, 21, 53, 35, 43
COMPACTED = BatchLimits(1_048_588, 1 << 62, 3_600_000, True, 1 << 30)


def patched(data: bytes, at: int, kind: str, value: int) -> bytes:
    """The batch with another value in its header, and a checksum that is right again."""
    changed = bytearray(data)
    struct.pack_into(kind, changed, at, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[CRC_START:]))
    return bytes(changed)


GOOD = batch([b"a", b"b", b"c"], producer=7, sequence=0)
CASES = {
    "nothing": (None, ErrorCode.INVALID_RECORD),
    "empty": (b"", ErrorCode.INVALID_RECORD),
    "a torn batch": (GOOD[:-1], ErrorCode.INVALID_RECORD),
    "only a header": (GOOD[:61], ErrorCode.INVALID_RECORD),
    "two batches": (GOOD + GOOD, ErrorCode.INVALID_RECORD),
    "bytes after the batch": (GOOD + b"\x00", ErrorCode.INVALID_RECORD),
    "an old format": (GOOD[:16] + b"\x01" + GOOD[17:], ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    "a future format": (GOOD[:16] + b"\x03" + GOOD[17:], ErrorCode.CORRUPT_MESSAGE),
    "a negative length": (GOOD[:8] + b"\xff\xff\xff\xff" + GOOD[12:], ErrorCode.CORRUPT_MESSAGE),
    "a wrong checksum": (GOOD[:17] + b"\x00\x00\x00\x00" + GOOD[21:], ErrorCode.CORRUPT_MESSAGE),
    "a changed record": (GOOD[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE),
    "a base offset": (struct.pack(">q", 5) + GOOD[8:], ErrorCode.INVALID_RECORD),
    "too few records": (patched(GOOD, COUNT_AT, ">i", 4), ErrorCode.INVALID_RECORD),
    "a negative count": (patched(GOOD, COUNT_AT, ">i", -1), ErrorCode.INVALID_RECORD),
    "a huge count": (patched(patched(GOOD, COUNT_AT, ">i", 1 << 30), DELTA_AT, ">i", (1 << 30) - 1), ErrorCode.INVALID_RECORD),
    "a greater last offset": (patched(GOOD, DELTA_AT, ">i", 9), ErrorCode.INVALID_RECORD),
    "a negative last offset": (patched(GOOD, DELTA_AT, ">i", -1), ErrorCode.INVALID_RECORD),
    "a control batch": (patched(GOOD, ATTRIBUTES_AT, ">h", 0x30), ErrorCode.INVALID_RECORD),
    "no sequence": (patched(GOOD, SEQUENCE_AT, ">i", -1), ErrorCode.INVALID_RECORD),
    "timestamps of a broker": (patched(GOOD, ATTRIBUTES_AT, ">h", 0x08), ErrorCode.INVALID_TIMESTAMP),
    "an unknown compression": (patched(GOOD, ATTRIBUTES_AT, ">h", 0x07), ErrorCode.INVALID_RECORD),
    "a false compression": (patched(GOOD, ATTRIBUTES_AT, ">h", 0x04), ErrorCode.INVALID_RECORD),
    "the future": (batch([b"a"], timestamp=NOW_MS + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
}


@pytest.mark.parametrize("case", CASES)
def test_hostile_batches(case: str) -> None:
    data, error = CASES[case]
    with pytest.raises(BatchRefused) as refused:
        check_batch(data, LIMITS, NOW_MS)
    assert refused.value.error is error


def test_a_transaction_without_producer() -> None:
    """Accepted as by brokers: the mark has no effect without a producer."""
    data = patched(patched(GOOD, PRODUCER_AT, ">q", -1), ATTRIBUTES_AT, ">h", 0x10)
    assert not check_batch(data, LIMITS, NOW_MS).has_producer
    assert is_transactional(data)
    assert not any(is_transactional(each) for each in (None, b"", data[:60], GOOD, b"\x00" * 100))


def test_large_batch() -> None:
    with pytest.raises(BatchRefused) as refused:
        check_batch(batch([bytes(2000)]), BatchLimits(1000, 1 << 62, 1 << 62, False, 1 << 30), NOW_MS)
    assert refused.value.error is ErrorCode.MESSAGE_TOO_LARGE


def test_batch_larger_than_a_segment() -> None:
    limits = BatchLimits(4000, 1 << 62, 1 << 62, False, segment_bytes=1000)
    with pytest.raises(BatchRefused) as refused:
        check_batch(batch([bytes(2000)]), limits, NOW_MS)
    assert refused.value.error is ErrorCode.RECORD_LIST_TOO_LARGE


def test_batch_that_is_too_large_when_decompressed() -> None:
    bomb = batch([bytes(33 << 20)] * 2, compression=Compression.ZSTD)
    with pytest.raises(BatchRefused, match="GROUPLAKE_MAX_BATCH_MB") as refused:
        check_batch(bomb, LIMITS, NOW_MS)
    assert refused.value.error is ErrorCode.MESSAGE_TOO_LARGE


def test_compacted_topics_need_keys() -> None:
    check_batch(batch([b"a"]), COMPACTED, NOW_MS)
    with pytest.raises(BatchRefused) as refused:
        check_batch(batch([b"a"], key=None), COMPACTED, NOW_MS)
    assert refused.value.error is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("compression", Compression)
def test_good_batches(compression: Compression) -> None:
    checked = check_batch(batch([b"a", None, b"c"], compression=compression), LIMITS, NOW_MS)
    placed = checked.placed(1000, 7)
    header = read_header(memoryview(placed))
    assert (header.base_offset, header.last_offset, header.leader_epoch, header.count) == (1000, 1002, 7, 3)
    assert placed[CRC_START:] == checked.data[CRC_START:]


def test_a_false_largest_timestamp_is_corrected() -> None:
    checked = check_batch(patched(GOOD, MAX_TIMESTAMP_AT, ">q", 1), LIMITS, NOW_MS)
    placed = checked.placed(0, 0)
    assert checked.max_timestamp == read_header(memoryview(placed)).max_timestamp == NOW_MS
    assert placed[CRC_START:] == GOOD[CRC_START:]


@settings(max_examples=300, derandomize=True)
@given(st.data())
def test_any_bytes(data: st.DataObject) -> None:
    """Only BatchRefused is raised, for changed batches as well."""
    raw = bytearray(data.draw(st.sampled_from([GOOD, batch([b"a", b"b"], compression=Compression.GZIP), b"", bytes(70)])))
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 255)), max_size=6)):
        if at < len(raw):
            raw[at] = byte
    if len(raw) > CRC_START and data.draw(st.booleans()):
        struct.pack_into(">I", raw, 17, crc32c(memoryview(raw)[CRC_START:]))
    with suppress(BatchRefused):
        check_batch(bytes(raw), LIMITS, NOW_MS)


def outcome(data: bytes, limits: BatchLimits) -> object:
    try:
        return check_batch(data, limits, NOW_MS).max_timestamp
    except BatchRefused as refused:
        return refused.error, str(refused)


@settings(max_examples=300)
@given(
    st.lists(st.none() | st.binary(max_size=200), min_size=1, max_size=4),
    st.none() | st.binary(max_size=3),
    st.sampled_from((LIMITS, COMPACTED)),
    st.lists(st.tuples(st.integers(61, 400), st.binary(min_size=1, max_size=2)), max_size=3),
)
def test_the_compiled_check_agrees_with_columns(
    values: list[bytes | None], key: bytes | None, limits: BatchLimits, changes: list[tuple[int, bytes]]
) -> None:
    """A batch that the compiled check accepts is one whose columns are valid, with the same timestamp."""
    changed = bytearray(batch(values, key=key))
    for at, replacement in changes:
        changed[at : at + len(replacement)] = replacement[: max(0, len(changed) - at)]
    data = patched(bytes(changed), MAX_TIMESTAMP_AT, ">q", NOW_MS)
    with pytest.MonkeyPatch.context() as without:
        without.setattr(batch_check, "check_records", lambda *_: (False, 0, 0, 0))
        expected = outcome(data, limits)
    assert outcome(data, limits) == expected
