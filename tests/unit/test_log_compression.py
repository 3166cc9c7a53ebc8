import cramjam
import pytest

from coordinator_core.log.compression import BadPayload, Compression, compress, decompress

DATA = b"offset commit " * 10_000


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", [b"", b"x", DATA], ids=["empty", "one byte", "several blocks"])
def test_round_trip(codec, magic, data):
    assert decompress(codec, compress(codec, data, magic=magic), magic=magic) == data


@pytest.mark.parametrize("codec", Compression)
def test_output_is_bounded(codec):
    packed = compress(codec, DATA)
    assert decompress(codec, packed, limit=len(DATA)) == DATA
    assert isinstance(decompress(codec, packed, limit=len(DATA) - 1), BadPayload)


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_cut_off_payload_is_told_from_a_whole_one(codec):
    packed = compress(codec, DATA)
    for cut in (1, 5, len(packed) // 2, len(packed) - 1):
        outcome = decompress(codec, packed[:cut])
        assert isinstance(outcome, BadPayload)
        assert outcome.problem.startswith(codec.name.lower())


def test_snappy_without_framing():
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(DATA))) == DATA


def test_snappy_streams_one_after_the_other():
    packed = compress(Compression.SNAPPY, b"one")
    assert decompress(Compression.SNAPPY, packed + packed) == b"oneone"


def test_snappy_that_announces_gigabytes():
    assert isinstance(decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f"), BadPayload)


def test_lz4_of_message_v0_has_the_checksum_that_no_library_reads():
    packed = compress(Compression.LZ4, DATA, magic=0)
    assert packed[6] != compress(Compression.LZ4, DATA)[6]
    with pytest.raises(cramjam.DecompressionError):
        cramjam.lz4.decompress(packed)


def test_lz4_blocks_are_independent_as_java_demands():
    assert compress(Compression.LZ4, DATA)[4] & 0x20
