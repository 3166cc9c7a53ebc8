"""Reader and writer of record batches v2 (`DefaultRecordBatch`, KIP-98). `batch_kernels` is the compiled reader."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import crc32c

from coordinator_core.codec.wire import write_uvarint
from coordinator_core.log.compression import COMPRESSIONS, BadPayload, Compression, compress, decompress
from coordinator_core.log.damage import Problem
from coordinator_core.log.entries import ControlType

#: Bytes of the offset and the length at the start of every batch and message.
LOG_OVERHEAD = 12
HEADER_SIZE = 61
#: The smallest length field of a v2 batch: a header without records.
SMALLEST_LENGTH = HEADER_SIZE - LOG_OVERHEAD
#: Position of the leader epoch, four bytes; messages of magic 0 and 1 have their checksum there.
LEADER_EPOCH_START = 12
#: First byte that the checksum covers: the attributes.
CRC_START = 21
#: Length, attributes, timestamp, offset, key length, value length, header count: at least one byte each.
SMALLEST_RECORD = 7

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CONTROL_KEY = struct.Struct(">hh")
_END_TRANSACTION_VALUE = struct.Struct(">hi")


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The 61 bytes before the records. Timestamps in ms; `length` counts the bytes after the length field."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> int:
        """Last offset of the batch as written; compaction keeps it even if it removes that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> int:
        """Number of the compression type; only 0–4 are in `Compression`."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """True if `max_timestamp`, the log append time, is the timestamp of all records."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """True for batches of a transaction, including its marker."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """True for a batch of control records."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """Time in ms from which the log cleaner may remove tombstones and markers; None before the first cleaning (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A record of a batch, with absolute `offset` and `timestamp`. Readers skip headers."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read_header(buffer: memoryview, position: int = 0) -> BatchHeader:
    """Parse the header at `position`; at least `HEADER_SIZE` bytes must follow."""
    return BatchHeader(*_HEADER.unpack_from(buffer, position))


def crc_matches(batch: memoryview, header: BatchHeader) -> bool:
    """True if the CRC-32C of one whole batch equals the one in its header."""
    return int(crc32c.crc32c(batch[CRC_START:])) == header.crc


def read_payload(batch: memoryview, header: BatchHeader) -> memoryview | tuple[Problem, str]:
    """The uncompressed records of one whole batch, or the problem that prevents decompression."""
    payload = batch[HEADER_SIZE:]
    if header.compression == Compression.NONE:
        return payload
    codec = COMPRESSIONS.get(header.compression)
    if codec is None:
        return Problem.UNKNOWN_COMPRESSION, str(header.compression)
    records = decompress(codec, payload)
    return (records.kind, records.problem) if isinstance(records, BadPayload) else records


def read_records(payload: memoryview, header: BatchHeader) -> Iterator[BatchRecord | Problem]:
    """Yield the records of an uncompressed payload, up to the first `Problem`. Never raises for damaged bytes."""
    if header.count < 0:
        yield Problem.IMPOSSIBLE_COUNT
        return
    position, end = 0, len(payload)
    for _ in range(header.count):
        if position >= end:
            yield Problem.RECORDS_MISSING
            return
        length, position = _varint(payload, position, end)
        if position < 0 or not 0 <= length <= end - position:
            yield Problem.RECORD_TRUNCATED
            return
        record = _read_record(payload, position, position + length, header)
        yield record
        if isinstance(record, Problem):
            return
        position += length
    if position < end:
        yield Problem.RECORDS_LEFT_OVER


def _read_record(payload: memoryview, position: int, end: int, header: BatchHeader) -> BatchRecord | Problem:
    # Skips the attributes byte of the record, which is unused.
    timestamp_delta, position = _varlong(payload, position + 1, end)
    if position < 0:
        return Problem.RECORD_FIELD
    offset_delta, position = _varint(payload, position, end)
    if position < 0:
        return Problem.RECORD_FIELD
    if not 0 <= offset_delta <= header.last_offset_delta:
        return Problem.RECORD_OFFSET
    key, position = _nullable(payload, position, end)
    if position < 0:
        return Problem.RECORD_FIELD
    value, position = _nullable(payload, position, end)
    if position < 0:
        return Problem.RECORD_FIELD
    timestamp = header.max_timestamp if header.is_log_append_time else _int64(header.base_timestamp + timestamp_delta)
    return BatchRecord(header.base_offset + offset_delta, timestamp, key, value)


def _nullable(payload: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    """A nullable field and the position after it, -1 if it does not fit. Negative lengths are null, as in `DefaultRecord`."""
    length, position = _varint(payload, position, end)
    if position < 0 or length > end - position:
        return None, -1
    return (None, position) if length < 0 else (bytes(payload[position : position + length]), position + length)


def _varint(payload: memoryview, position: int, end: int) -> tuple[int, int]:
    raw, position = _unsigned_varint(payload, position, end, 5)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), position


def _varlong(payload: memoryview, position: int, end: int) -> tuple[int, int]:
    raw, position = _unsigned_varint(payload, position, end, 10)
    raw &= 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), position


def _unsigned_varint(payload: memoryview, position: int, end: int, longest: int) -> tuple[int, int]:
    raw = 0
    for index in range(longest):
        if position >= end:
            break
        byte = payload[position]
        position += 1
        raw |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return raw, position
    return 0, -1


def _int64(number: int) -> int:
    """Wrap `number` to 64 bits, as Java's long arithmetic does."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def write_batch(
    records: Sequence[BatchRecord],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = 0,
    compression: Compression = Compression.NONE,
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
    max_timestamp: int = -1,
    delete_horizon: int | None = None,
) -> bytes:
    """Write one v2 batch. Offsets of the records ascend, with gaps after compaction.

    `base_offset` and `last_offset` default to those of the records. An empty batch, in which the log cleaner keeps a producer's
    last sequence number, needs both; `max_timestamp` (ms) is for empty batches too. `log_append_time` (ms) replaces the
    timestamps of all records, `delete_horizon` (ms) the base timestamp.
    """
    base = records[0].offset if base_offset is None else base_offset
    last = records[-1].offset if last_offset is None else last_offset
    base_timestamp = delete_horizon if delete_horizon is not None else records[0].timestamp if records else -1
    latest = max((record.timestamp for record in records), default=max_timestamp)
    payload = b"".join(_record_bytes(record, base, base_timestamp) for record in records)
    attributes = (
        compression
        | (0 if log_append_time is None else LOG_APPEND_TIME)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (0 if delete_horizon is None else DELETE_HORIZON)
    )
    payload = compress(compression, payload) if compression else payload
    fields = (
        attributes,
        last - base,
        base_timestamp,
        latest if log_append_time is None else log_append_time,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    length = SMALLEST_LENGTH + len(payload)
    unsigned = _HEADER.pack(base, length, leader_epoch, 2, 0, *fields) + payload
    crc = crc32c.crc32c(memoryview(unsigned)[CRC_START:])
    return _HEADER.pack(base, length, leader_epoch, 2, crc, *fields) + payload


def _record_bytes(record: BatchRecord, base_offset: int, base_timestamp: int) -> bytes:
    parts = [
        b"\x00",
        zigzag(record.timestamp - base_timestamp),
        zigzag(record.offset - base_offset),
        _sized(record.key),
        _sized(record.value),
        zigzag(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += (_sized(name.encode()), _sized(value))
    body = b"".join(parts)
    return zigzag(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return b"\x01" if data is None else zigzag(len(data)) + data


def zigzag(number: int) -> bytes:
    """Encode a varint of a record (`ByteUtils.writeVarlong`)."""
    encoded = bytearray()
    write_uvarint(encoded, number << 1 if number >= 0 else (-number << 1) - 1)
    return bytes(encoded)


def end_transaction_marker(
    offset: int,
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    coordinator_epoch: int = 0,
    leader_epoch: int = 0,
) -> bytes:
    """Write the control batch that ends a transaction (`EndTransactionMarker`): one record without sequence number."""
    key = control_key(control_type)
    value = _END_TRANSACTION_VALUE.pack(0, coordinator_epoch)
    return write_batch(
        [BatchRecord(offset, timestamp, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        transactional=True,
        control=True,
    )


def control_key(control_type: ControlType) -> bytes:
    """Key of a control record of this type."""
    return _CONTROL_KEY.pack(0, control_type)


def control_type(key: bytes | None) -> int | None:
    """Type number in the key of a control record, as in `ControlType`; None for a key that is too short."""
    return None if key is None or len(key) < _CONTROL_KEY.size else int(_CONTROL_KEY.unpack_from(key)[1])
