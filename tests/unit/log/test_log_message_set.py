import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder
from expecting import expect, expect_all
from message_sets import write_message_set
from scalar_logs import read_log

from coordinator_core.log.compression import Compression, compress
from coordinator_core.log.damage import Damage, Problem
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.record_batch import BatchRecord, write_batch

RECORDS = [
    BatchRecord(100, 1_500_000_000_000, b"key", b"value"),
    BatchRecord(101, 1_500_000_000_003, None, b"v" * 300),
    BatchRecord(105, 1_500_000_000_001, b"", None),
]
OLD = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
#: aiokafka rejects LZ4 in magic 0, the variant with the wrong checksum.
SHARED = [(magic, codec) for magic in (0, 1) for codec in OLD if (magic, codec) != (0, Compression.LZ4)]


@pytest.mark.parametrize("codec", OLD)
@pytest.mark.parametrize("magic", [0, 1])
def test_what_is_written_is_read(magic: int, codec: Compression) -> None:
    read = list(read_log(write_message_set(RECORDS, magic=magic, compression=codec), 3))
    assert read == [
        LogRecord(3, r.offset, r.timestamp if magic else -1, r.key, r.value, batch_offset=100 if codec else r.offset)
        for r in RECORDS
    ]


@pytest.mark.parametrize(("magic", "codec"), SHARED)
def test_aiokafka_reads_what_is_written(magic: int, codec: Compression) -> None:
    theirs = LegacyRecordBatch(bytearray(write_message_set(RECORDS[:1], magic=magic, compression=codec)), magic)
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value) for r in theirs] == [
        (100, 1_500_000_000_000 if magic else None, b"key", b"value")
    ]


@pytest.mark.parametrize(("magic", "codec"), SHARED)
def test_what_aiokafka_writes_is_read(magic: int, codec: Compression) -> None:
    theirs = LegacyRecordBatchBuilder(magic, int(codec), 1 << 20)
    for offset in range(20):
        theirs.append(offset, timestamp=1_500_000_000_000 + offset, key=b"k%d" % offset, value=b"v" * 100)
    data = bytearray(theirs.build())
    if codec:
        # A broker gives the wrapper the offset of its last message.
        data[:8] = (19).to_bytes(8, "big")
    read = expect_all(LogRecord, read_log(bytes(data), 0))
    assert [(r.offset, r.timestamp, r.key) for r in read] == [
        (o, 1_500_000_000_000 + o if magic else -1, b"k%d" % o) for o in range(20)
    ]


@pytest.mark.parametrize("codec", OLD)
def test_log_append_time(codec: Compression) -> None:
    data = write_message_set(RECORDS, compression=codec, log_append_time=42)
    assert [record.timestamp for record in expect_all(LogRecord, read_log(data, 0))] == [42, 42, 42]


def test_compacted_wrapper_counts_from_its_last_message() -> None:
    data = bytearray(write_message_set(RECORDS, compression=Compression.GZIP))
    data[:8] = (1105).to_bytes(8, "big")
    assert [record.offset for record in read_log(bytes(data), 0)] == [1100, 1101, 1105]


def test_old_and_new_formats_in_one_segment() -> None:
    data = (
        write_message_set(RECORDS, magic=0)
        + write_message_set([BatchRecord(106, 5, b"k", b"")])
        + write_batch([BatchRecord(107, 6, b"k", b"")])
    )
    assert [record.offset for record in read_log(data, 0)] == [100, 101, 105, 106, 107]


def wrapper(payload: bytes, offset: int = 105, magic: int = 1, codec: Compression = Compression.GZIP) -> bytes:
    """A message of one record turned into a wrapper around any bytes."""
    data = bytearray(write_message_set([BatchRecord(offset, 1, None, compress(codec, payload, magic=magic))], magic=magic))
    data[17] = codec
    return bytes(data)


INNER = write_message_set([BatchRecord(0, 1, b"a", b"1"), BatchRecord(1, 1, b"b", b"2")])


@pytest.mark.parametrize(
    ("payload", "offset", "offsets"),
    [
        (b"", 105, []),
        (INNER[:-1], 105, [105]),
        (INNER + b"\0", 105, [104, 105]),
        (INNER, 0, []),
        (INNER + write_message_set([BatchRecord(2, 1, b"c", b"3")], magic=0), 105, [104, 105]),
        (INNER + write_message_set([BatchRecord(2, 1, b"c", b"3")], compression=Compression.GZIP), 105, [104, 105]),
    ],
    ids=["nothing", "cut off", "a byte too many", "offset below the last", "another magic", "wrapped twice"],
)
def test_wrapper_with_messages_that_do_not_fit(payload: bytes, offset: int, offsets: list[int]) -> None:
    items = list(read_log(wrapper(payload, offset), 0))
    assert [item.offset for item in items if isinstance(item, LogRecord)] == offsets
    problems = [item.problem for item in items if isinstance(item, Damage)]
    assert problems == [Problem.CRC_MISMATCH, Problem.INNER_MESSAGE]


def test_wrong_checksum_inside_of_a_wrapper() -> None:
    inner = bytearray(INNER)
    inner[12] ^= 1
    items = list(read_log(wrapper(bytes(inner)), 0))
    assert [item.detail for item in items if isinstance(item, Damage)] == ["", "inner message at offset 104"]
    assert [item.offset for item in items if isinstance(item, LogRecord)] == [104, 105]


def test_zstd_has_no_meaning_in_old_messages() -> None:
    (_, damage) = read_log(wrapper(INNER, codec=Compression.ZSTD), 0)
    assert expect(Damage, damage).problem is Problem.UNKNOWN_COMPRESSION
