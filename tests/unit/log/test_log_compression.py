import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import cramjam
import pytest
from expecting import expect
from patience import PATIENCE_SECONDS

from coordinator_core.log.compression import LIMIT_VARIABLE, BadPayload, Compression, compress, decompress, largest_batch_bytes
from coordinator_core.log.errors import LogMisconfigured

DATA = b"offset commit " * 10_000


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", [b"", b"x", DATA], ids=["empty", "one byte", "several blocks"])
def test_round_trip(codec: Compression, magic: int, data: bytes) -> None:
    assert decompress(codec, compress(codec, data, magic=magic), magic=magic) == memoryview(data)


@pytest.mark.parametrize("codec", Compression)
def test_output_is_bounded(codec: Compression) -> None:
    packed = compress(codec, DATA)
    assert decompress(codec, packed, limit=len(DATA)) == memoryview(DATA)
    assert isinstance(decompress(codec, packed, limit=len(DATA) - 1), BadPayload)


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_cut_off_payload_is_distinguished_from_a_whole_one(codec: Compression) -> None:
    packed = compress(codec, DATA)
    for cut in (1, 5, len(packed) // 2, len(packed) - 1):
        outcome = decompress(codec, packed[:cut])
        assert isinstance(outcome, BadPayload)
        assert outcome.problem.startswith(codec.name.lower())


def test_snappy_without_framing() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(DATA))) == memoryview(DATA)


def test_snappy_streams_one_after_the_other() -> None:
    packed = compress(Compression.SNAPPY, b"one")
    assert decompress(Compression.SNAPPY, packed + packed) == memoryview(b"oneone")


def test_snappy_that_announces_gigabytes() -> None:
    assert isinstance(decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f"), BadPayload)


def test_lz4_of_message_v0_has_the_checksum_that_no_library_reads() -> None:
    packed = compress(Compression.LZ4, DATA, magic=0)
    assert packed[6] != compress(Compression.LZ4, DATA)[6]
    with pytest.raises(cramjam.DecompressionError):
        cramjam.lz4.decompress(packed)


def test_lz4_blocks_are_independent_as_java_demands() -> None:
    assert compress(Compression.LZ4, DATA)[4] & 0x20


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the limit in the environment."""

    def to(megabytes: str) -> None:
        monkeypatch.setenv(LIMIT_VARIABLE, megabytes)
        largest_batch_bytes.cache_clear()

    yield to
    largest_batch_bytes.cache_clear()


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_a_bomb_is_reported_with_the_limit_and_its_setting(codec: Compression, limit: Callable[[str], None]) -> None:
    bomb = compress(codec, bytes(3 << 20))
    limit("2")
    outcome = decompress(codec, bomb)
    assert isinstance(outcome, BadPayload)
    limited = "more than 2,097,152 bytes when decompressed; GROUPLAKE_MAX_BATCH_MB sets the limit"
    assert outcome.problem == f"{codec.name.lower()}: {limited}"
    limit("3")
    assert len(expect(memoryview, decompress(codec, bomb))) == 3 << 20


@pytest.mark.parametrize("text", ["", "0", "-1", "64m", "1025", "²"])
def test_limits_that_are_none(text: str, limit: Callable[[str], None]) -> None:
    limit(text)
    with pytest.raises(LogMisconfigured, match="use a number of megabytes from 1 to 1024"):
        largest_batch_bytes()


BOMB = """
import resource, numpy as np
from coordinator_core.log.columns import parse_columns
from coordinator_core.log.compression import Compression, compress, largest_batch_bytes
from coordinator_core.log.record_batch import BatchRecord, write_batch
parse_columns(write_batch([BatchRecord(0, 0, b"k", b"v")], compression=Compression.ZSTD))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
smallest = bytes([12, 0, 0, 0, 0, 0, 0])
payload = compress(Compression.ZSTD, smallest * (largest_batch_bytes() // 7))
header = bytearray(write_batch([], base_offset=0, last_offset=0, compression=Compression.ZSTD)[:61])
header[8:12] = (49 + len(payload)).to_bytes(4, "big")
header[57:61] = (2**31 - 1).to_bytes(4, "big")
columns = parse_columns(bytes(header) + payload)
print(len(payload), len(columns), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 // largest_batch_bytes())
"""


def test_memory_of_the_worst_batch() -> None:
    """A few kilobytes that become as many records as the limit allows: memory is a multiple of that, not of the claimed size."""
    environment = dict(os.environ, GROUPLAKE_MAX_BATCH_MB="16")
    ran = subprocess.run(
        [sys.executable, "-c", BOMB], env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    size, rows, times = map(int, ran.stdout.split())
    assert size < 10_000
    assert rows == (16 << 20) // 7
    assert times <= 14
