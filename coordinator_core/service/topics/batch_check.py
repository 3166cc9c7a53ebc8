"""Checks of the records in a Produce request (`ProduceRequest.validateRecords`, `LogValidator`)."""

import struct
from dataclasses import dataclass

import numpy as np
from crc32c import crc32c

from coordinator_core.log.columns import parse_columns
from coordinator_core.log.compression import Compression
from coordinator_core.log.damage import Problem
from coordinator_core.log.record_batch import (
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    BatchHeader,
    crc_matches,
    read_header,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.service.topics.record_kernels import check_records

_MAGIC_AT = 16
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_LEADER_EPOCH_AT = 12
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_NO_TIMESTAMP = -1


class BatchRefused(Exception):
    """The records of a partition are refused; `error` is the answer to the producer.

    `header` is that of a whole batch whose content is refused: brokers look at it only when they append the batch, after the
    verification of its transaction. None if the records are refused before (`ProduceRequest.validateRecords`).
    """

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.header: BatchHeader | None = None


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """`max.message.bytes`, `message.timestamp.before.max.ms` and `.after.max.ms`, `segment.bytes`; compacted topics need keys."""

    max_message_bytes: int
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    needs_keys: bool
    segment_bytes: int


@dataclass(frozen=True, slots=True)
class ProducedBatch:
    """A checked batch of a producer; `max_timestamp` is that of its records, in ms."""

    header: BatchHeader
    data: bytes
    max_timestamp: int

    @property
    def has_producer(self) -> bool:
        """Whether the batch has sequence numbers, which must be checked."""
        return self.header.producer_id != NO_PRODUCER_ID

    def placed(self, base_offset: int, leader_epoch: int) -> bytes:
        """Return the bytes for this offset of the log; the checksum covers neither offset nor leader epoch."""
        data = bytearray(self.data)
        _INT64.pack_into(data, 0, base_offset)
        _INT32.pack_into(data, _LEADER_EPOCH_AT, leader_epoch)
        if self.max_timestamp != self.header.max_timestamp:
            # brokers correct a false maximum, too
            _INT64.pack_into(data, _MAX_TIMESTAMP_AT, self.max_timestamp)
            _UINT32.pack_into(data, _CRC_AT, crc32c(memoryview(data)[CRC_START:]))
        return bytes(data)


def check_batch(data: bytes | None, limits: BatchLimits, now_ms: int) -> ProducedBatch:
    """Check the records of a partition: exactly one v2 batch. Raises BatchRefused."""
    if not data or len(data) <= _MAGIC_AT:
        raise BatchRefused(ErrorCode.INVALID_RECORD, "the request has no record batch for the partition")
    if data[_MAGIC_AT] < 2:
        message = f"message format {data[_MAGIC_AT]} is not supported: use a client of Kafka 0.11 or later"
        raise BatchRefused(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, message)
    size = LOG_OVERHEAD + _INT32.unpack_from(data, 8)[0]
    if data[_MAGIC_AT] > 2 or size < HEADER_SIZE:
        message = (
            f"the record batch has format {data[_MAGIC_AT]} and {size} bytes, must be format 2 and {HEADER_SIZE} bytes or more"
        )
        raise BatchRefused(ErrorCode.CORRUPT_MESSAGE, message)
    if len(data) != size:
        message = f"{len(data)} bytes are not exactly one record batch, whose length field says {size} bytes"
        raise BatchRefused(ErrorCode.INVALID_RECORD, message)
    (base_offset,) = _INT64.unpack_from(data)
    if base_offset != 0:
        raise BatchRefused(ErrorCode.INVALID_RECORD, f"the base offset of the record batch is {base_offset}, must be 0")
    header = read_header(memoryview(data))
    try:
        return _check_content(data, header, limits, now_ms)
    except BatchRefused as refused:
        refused.header = header
        raise


def _check_content(data: bytes, header: BatchHeader, limits: BatchLimits, now_ms: int) -> ProducedBatch:
    size = len(data)
    if size > limits.max_message_bytes:
        message = f"the record batch has {size} bytes, which exceeds max.message.bytes, {limits.max_message_bytes}"
        raise BatchRefused(ErrorCode.MESSAGE_TOO_LARGE, message)
    if not crc_matches(memoryview(data), header):
        raise BatchRefused(ErrorCode.CORRUPT_MESSAGE, f"the checksum of the record batch differs from {header.crc:#010x}")
    _check_header(header)
    greatest_timestamp = _check_records(data, header, limits, now_ms)
    if size > limits.segment_bytes:
        message = f"the record batch has {size} bytes, which exceeds segment.bytes, {limits.segment_bytes}"
        raise BatchRefused(ErrorCode.RECORD_LIST_TOO_LARGE, message)
    return ProducedBatch(header, data, greatest_timestamp)


def is_transactional(data: bytes | None) -> bool:
    """Whether the records begin with a batch that is marked as transactional; `data` may be anything."""
    if data is None or len(data) < HEADER_SIZE or data[_MAGIC_AT] != 2:
        return False
    return bool(data[_ATTRIBUTES_AT + 1] & TRANSACTIONAL)


def _check_header(header: BatchHeader) -> None:
    problem = None
    if header.count <= 0 or header.count != header.last_offset_delta + 1:
        problem = f"the record batch has a count of {header.count} and a last offset delta of {header.last_offset_delta}"
    elif header.is_control:
        problem = "clients must not write control records"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        problem = f"the sequence number {header.base_sequence} of producer {header.producer_id} is invalid"
    if problem is not None:
        raise BatchRefused(ErrorCode.INVALID_RECORD, problem)
    if header.is_log_append_time:
        message = "the record batch has timestamps of type LogAppendTime, which only brokers may set"
        raise BatchRefused(ErrorCode.INVALID_TIMESTAMP, message)


def _check_records(data: bytes, header: BatchHeader, limits: BatchLimits, now_ms: int) -> int:
    """Return the greatest timestamp."""
    if header.compression == Compression.NONE:
        found = check_records(np.frombuffer(data, np.uint8), header.count, header.base_timestamp, limits.needs_keys)
        is_valid, earliest, latest, greatest = found
        if is_valid and (earliest > latest or _is_in_range(earliest, latest, limits, now_ms)):
            return int(greatest)
    # decompressed, or once more for the error
    columns = parse_columns(data)
    if columns.damages:
        damage = columns.damages[0]
        # MESSAGE_TOO_LARGE: Java clients divide the batch and send its parts
        is_large = damage.problem is Problem.PAYLOAD_TOO_LARGE
        error = ErrorCode.MESSAGE_TOO_LARGE if is_large else ErrorCode.INVALID_RECORD
        raise BatchRefused(error, f"damaged records: {damage.reason}")
    if len(columns) != header.count or not np.array_equal(columns.offset, np.arange(header.count)):
        raise BatchRefused(ErrorCode.INVALID_RECORD, f"the offsets of the records are not 0–{header.count - 1}")
    if limits.needs_keys and bool((columns.key_length < 0).any()):
        raise BatchRefused(ErrorCode.INVALID_RECORD, "a compacted topic cannot accept records without key")
    set_timestamps = columns.timestamp[columns.timestamp != _NO_TIMESTAMP]
    if len(set_timestamps):
        earliest, latest = int(set_timestamps.min()), int(set_timestamps.max())
        if not _is_in_range(earliest, latest, limits, now_ms):
            before, after = now_ms - limits.timestamp_before_max_ms, now_ms + limits.timestamp_after_max_ms
            message = f"timestamps {earliest}–{latest} are out of range, must be {before}–{after}"
            raise BatchRefused(ErrorCode.INVALID_TIMESTAMP, message)
    return int(columns.timestamp.max())


def _is_in_range(earliest: int, latest: int, limits: BatchLimits, now_ms: int) -> bool:
    return earliest >= now_ms - limits.timestamp_before_max_ms and latest <= now_ms + limits.timestamp_after_max_ms
