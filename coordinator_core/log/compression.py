"""The five compression types of Kafka batches (`CompressionType`), with bounded output."""

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import cramjam
import numpy as np

from coordinator_core.log.damage import Problem
from coordinator_core.log.errors import LogMisconfigured

#: Default limit of a decompressed batch, overridden by `LIMIT_VARIABLE`: 64 times the default of `message.max.bytes`, which
#: limits the compressed size. The records of a batch take up to nine times its bytes in memory.
DEFAULT_BATCH_MB = 64
LIMIT_VARIABLE = "GROUPLAKE_MAX_BATCH_MB"
_HIGHEST_BATCH_MB = 1024

_COMMON_ROOM = 64 * 1024
_COMMON_RATIO = 8

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.pack(">8sii", _XERIAL_MAGIC, 1, 1)
_XERIAL_BLOCK = 32 * 1024
_INT32 = struct.Struct(">i")

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_CONTENT_SIZE = 0x08
_LZ4_DICTIONARY_ID = 0x01


#: Error messages of the libraries for output that does not fit.
_NO_ROOM = ("failed to write whole buffer", "is smaller than required")


class Compression(IntEnum):
    """Bits 0–2 of the attributes of a batch or message."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


#: Compression types by number.
COMPRESSIONS = {compression.value: compression for compression in Compression}


@dataclass(frozen=True, slots=True)
class BadPayload:
    """A payload that does not decompress, or that exceeds the limit."""

    problem: str
    kind: Problem = Problem.BAD_PAYLOAD


@cache
def largest_batch_bytes() -> int:
    """Most bytes of a decompressed batch. Raises LogMisconfigured for an invalid value in the environment."""
    text = os.environ.get(LIMIT_VARIABLE, str(DEFAULT_BATCH_MB))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _HIGHEST_BATCH_MB:
        raise LogMisconfigured(f"invalid {LIMIT_VARIABLE} {text!r}: use a number of megabytes from 1 to {_HIGHEST_BATCH_MB}")
    return int(text) * 1024 * 1024


def decompress(
    codec: Compression, payload: bytes | memoryview, *, magic: int = 2, limit: int | None = None
) -> memoryview | BadPayload:
    """Decompress `payload` to at most `limit` bytes (None: `largest_batch_bytes`). Never raises for damaged bytes.

    Messages of magic 0 and 1 may have LZ4 frames whose header checksum covers the wrong bytes (KAFKA-3160); it is corrected
    first.
    """
    data = bytes(payload)
    limit = largest_batch_bytes() if limit is None else limit
    if codec is Compression.LZ4 and magic < 2:
        data = _with_header_checksum(data, covers_magic=False)
    problem = BadPayload("")
    # Most payloads fit the small buffer; the system provides memory for the large one only where it is written.
    for size in (min(limit, _COMMON_ROOM + _COMMON_RATIO * len(data)), limit):
        room = np.empty(size, np.uint8).data
        try:
            written = _DECOMPRESSORS[codec](data, room)
        except (cramjam.DecompressionError, _XerialError) as error:
            problem = _problem(codec, str(error), limit)
        else:
            return memoryview(room[:written].tobytes())
    return problem


def _problem(codec: Compression, error: str, limit: int) -> BadPayload:
    if any(words in error for words in _NO_ROOM):
        problem = f"{codec.name.lower()}: more than {limit:,} bytes when decompressed; {LIMIT_VARIABLE} sets the limit"
        return BadPayload(problem, Problem.PAYLOAD_TOO_LARGE)
    return BadPayload(f"{codec.name.lower()}: {error}")


def compress(codec: Compression, payload: bytes, *, magic: int = 2) -> bytes:
    """Compress `payload` as Kafka's own clients do: xerial blocks for snappy, independent blocks for LZ4."""
    data = _COMPRESSORS[codec](payload)
    return _with_header_checksum(data, covers_magic=True) if codec is Compression.LZ4 and magic == 0 else data


class _XerialError(Exception):
    """Invalid xerial framing around snappy blocks."""


def _copy_into(data: bytes, room: memoryview) -> int:
    if len(data) > len(room):
        raise _XerialError(_NO_ROOM[0])
    room[: len(data)] = data
    return len(data)


def _snappy_into(data: bytes, room: memoryview) -> int:
    if not data.startswith(_XERIAL_MAGIC):
        return int(cramjam.snappy.decompress_raw_into(data, room))
    position, written = 0, 0
    while position < len(data):
        # Concatenated streams repeat the header.
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            continue
        if position + 4 > len(data):
            raise _XerialError("truncated block length")
        (length,) = _INT32.unpack_from(data, position)
        position += 4
        if length < 0 or position + length > len(data):
            raise _XerialError(f"block length {length}, but {len(data) - position} bytes left")
        written += int(cramjam.snappy.decompress_raw_into(data[position : position + length], room[written:]))
        position += length
    return written


def _snappy(payload: bytes) -> bytes:
    blocks = [_XERIAL_HEADER]
    for start in range(0, len(payload), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(payload[start : start + _XERIAL_BLOCK]))
        blocks += (_INT32.pack(len(block)), block)
    return b"".join(blocks)


def _lz4(payload: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
    compressor.compress(payload)
    return bytes(compressor.finish())


_DECOMPRESSORS: dict[Compression, Callable[[bytes, memoryview], int]] = {
    Compression.NONE: _copy_into,
    Compression.GZIP: cramjam.gzip.decompress_into,
    Compression.SNAPPY: _snappy_into,
    Compression.LZ4: cramjam.lz4.decompress_into,
    Compression.ZSTD: cramjam.zstd.decompress_into,
}

_COMPRESSORS: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.NONE: bytes,
    Compression.GZIP: lambda payload: bytes(cramjam.gzip.compress(payload)),
    Compression.SNAPPY: _snappy,
    Compression.LZ4: _lz4,
    Compression.ZSTD: lambda payload: bytes(cramjam.zstd.compress(payload)),
}


def _with_header_checksum(frame: bytes, *, covers_magic: bool) -> bytes:
    """Set the LZ4 header checksum: that of the LZ4 format, or that of message v0, which also covers the frame's magic."""
    if len(frame) < 7 or not frame.startswith(_LZ4_MAGIC):
        return frame
    flags = frame[4]
    end = 6 + (8 if flags & _LZ4_CONTENT_SIZE else 0) + (4 if flags & _LZ4_DICTIONARY_ID else 0)
    covered = frame[0 if covers_magic else 4 : end]
    return frame[:end] + bytes([_xxh32_short(covered) >> 8 & 0xFF]) + frame[end + 1 :]


def _xxh32_short(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes."""
    mask, prime1, prime2, prime3, prime4, prime5 = 0xFFFFFFFF, 2654435761, 2246822519, 3266489917, 668265263, 374761393
    state = prime5 + len(data)
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        state = state + word * prime3 & mask
        state = (state << 17 | state >> 15) * prime4 & mask
    for byte in data[whole:]:
        state = state + byte * prime5 & mask
        state = (state << 11 | state >> 21) * prime1 & mask
    state = (state ^ state >> 15) * prime2 & mask
    state = (state ^ state >> 13) * prime3 & mask
    return state ^ state >> 16
