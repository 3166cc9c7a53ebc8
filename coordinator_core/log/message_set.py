"""Messages of magic 0 and 1 (`LegacyRecord`, `AbstractLegacyRecordBatch`), the log format before Kafka 0.11.

A compressed message wraps a message set in its value. Its own offset is that of its last inner message; inner offsets are
absolute in magic 0 and relative, from 0, in magic 1 (KIP-31). The timestamp of a wrapper with log append time applies to all
inner messages (KIP-32).
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from coordinator_core.log.compression import BadPayload, Compression, decompress
from coordinator_core.log.damage import Problem
from coordinator_core.log.record_batch import COMPRESSION_MASK, LOG_APPEND_TIME, LOG_OVERHEAD, BatchRecord

NO_TIMESTAMP = -1
#: The smallest length field: checksum, magic, attributes and two lengths.
SMALLEST_MESSAGE = 14
#: Most decompressed bytes of a wrapper: all inner messages become objects before the first is validated.
MAX_WRAPPED_BYTES = 32 * 1024 * 1024

#: First byte that the checksum covers: the magic.
_CRC_START = 16
_KEY_START = (18, 26)

_OFFSET_AND_LENGTH = struct.Struct(">qi")
_CRC_MAGIC_ATTRIBUTES = struct.Struct(">IbB")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Message:
    """One message or wrapper. `timestamp` in ms, `NO_TIMESTAMP` in magic 0."""

    offset: int
    magic: int
    attributes: int
    crc_matches: bool
    timestamp: int
    key: memoryview | None
    value: memoryview | None

    @property
    def compression(self) -> int:
        """Compression type of the wrapped messages; 0 for a message that is itself a record."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """True if the timestamp is the log append time (magic 1 only)."""
        return self.magic == 1 and bool(self.attributes & LOG_APPEND_TIME)


def read_message(data: memoryview) -> Message | Problem:
    """Parse one whole message: offset, length, and at least `SMALLEST_MESSAGE` bytes. Never raises for damaged bytes."""
    offset, _ = _OFFSET_AND_LENGTH.unpack_from(data)
    crc, magic, attributes = _CRC_MAGIC_ATTRIBUTES.unpack_from(data, LOG_OVERHEAD)
    if magic not in (0, 1):
        return Problem.UNKNOWN_MAGIC
    position = _KEY_START[magic]
    if position + 8 > len(data):
        return Problem.RECORD_FIELD
    timestamp = _INT64.unpack_from(data, 18)[0] if magic == 1 else NO_TIMESTAMP
    key, position = _nullable(data, position)
    if position < 0:
        return Problem.RECORD_FIELD
    value, position = _nullable(data, position)
    if position < 0:
        return Problem.RECORD_FIELD
    return Message(offset, magic, attributes, zlib.crc32(data[_CRC_START:]) == crc, timestamp, key, value)


def _nullable(data: memoryview, position: int) -> tuple[memoryview | None, int]:
    if position + 4 > len(data):
        return None, -1
    (length,) = _INT32.unpack_from(data, position)
    position += 4
    if length < 0:
        return None, position
    return (data[position : position + length], position + length) if length <= len(data) - position else (None, -1)


def read_records(data: memoryview) -> Iterator[BatchRecord | tuple[Problem, str]]:
    """Yield the record of a message, or those that it wraps, and problems. Never raises for damaged bytes."""
    message = read_message(data)
    if isinstance(message, Problem):
        yield message, ""
        return
    if not message.crc_matches:
        yield Problem.CRC_MISMATCH, ""
    if message.compression == Compression.NONE:
        yield _record(message, message.offset, message.timestamp)
    elif message.compression not in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4):
        yield Problem.UNKNOWN_COMPRESSION, str(message.compression)
    elif message.value is None:
        yield Problem.BAD_PAYLOAD, "null value"
    else:
        payload = decompress(Compression(message.compression), message.value, magic=message.magic, limit=MAX_WRAPPED_BYTES)
        if isinstance(payload, BadPayload):
            yield Problem.BAD_PAYLOAD, payload.problem
        else:
            yield from _inner_records(message, payload)


def _inner_records(wrapper: Message, payload: memoryview) -> Iterator[BatchRecord | tuple[Problem, str]]:
    inner, problem = _inner_messages(wrapper, payload)
    shift = wrapper.offset - inner[-1].offset if inner and wrapper.magic == 1 else 0
    if shift < 0 or not inner:
        yield Problem.INNER_MESSAGE, "no valid inner message" if not inner else "relative offset greater than the wrapper's"
        return
    for message in inner:
        offset = message.offset + shift
        if not 0 <= offset <= wrapper.offset:
            yield Problem.INNER_MESSAGE, f"offset {offset}"
            return
        if not message.crc_matches:
            yield Problem.CRC_MISMATCH, f"inner message at offset {offset}"
        yield _record(message, offset, wrapper.timestamp if wrapper.is_log_append_time else message.timestamp)
    if problem:
        yield Problem.INNER_MESSAGE, problem


def _inner_messages(wrapper: Message, payload: memoryview) -> tuple[list[Message], str]:
    """Inner messages up to the first invalid one, and the problem of that one."""
    inner: list[Message] = []
    position = 0
    while position < len(payload):
        if len(payload) - position < LOG_OVERHEAD + SMALLEST_MESSAGE:
            return inner, "truncated"
        end = position + LOG_OVERHEAD + int(_OFFSET_AND_LENGTH.unpack_from(payload, position)[1])
        if end < position + LOG_OVERHEAD + SMALLEST_MESSAGE or end > len(payload):
            return inner, "impossible length"
        message = read_message(payload[position:end])
        if isinstance(message, Problem):
            return inner, message.text
        if message.magic != wrapper.magic or message.compression != Compression.NONE:
            return inner, "different magic, or nested compression"
        inner.append(message)
        position = end
    return inner, ""


def _record(message: Message, offset: int, timestamp: int) -> BatchRecord:
    key, value = message.key, message.value
    return BatchRecord(offset, timestamp, None if key is None else bytes(key), None if value is None else bytes(value))
