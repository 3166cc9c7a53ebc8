"""Batches of an append, and their encoding: the bytes of `record_batch.write_batch` at a third of its cost."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c

from coordinator_core.log.compression import Compression, compress
from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    SMALLEST_LENGTH,
    TRANSACTIONAL,
    end_transaction_marker,
    zigzag,
)
from coordinator_core.producers.append import DataBatch, Marker

_BEHIND_CRC = struct.Struct(">hiqqqhii")
_BEFORE_CRC = struct.Struct(">qiibI")
_MAGIC = 2
#: Kafka's coordinators write base sequence 0 in every batch of data, with or without a producer. It is not checked.
_BASE_SEQUENCE = 0
_NO_PRODUCER = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
_NULL = b"\x01"


class AppendBatch(NamedTuple):
    """Keys and values of one batch; transactional if `producer` (id, epoch) is given.

    With a `control_type` the batch is the marker that ends the producer's transaction, and `records` is ignored.
    `transaction_version` is that of the marker's coordinator, which is not written.
    """

    records: Sequence[tuple[bytes, bytes | None]]
    producer: tuple[int, int] | None = None
    control_type: ControlType | None = None
    coordinator_epoch: int = 0
    transaction_version: int = 0

    @property
    def offset_count(self) -> int:
        """Number of offsets that the batch occupies."""
        return len(self.records) if self.control_type is None else 1

    def of_producer(self, base_offset: int, now_ms: int) -> DataBatch | Marker | None:
        """Return the fields that the state of the producer depends on, None without a producer."""
        if self.producer is None:
            return None
        if self.control_type is None:
            return DataBatch(*self.producer, _BASE_SEQUENCE, base_offset, base_offset + self.offset_count - 1, now_ms, True)
        version = self.transaction_version
        return Marker(*self.producer, self.control_type, self.coordinator_epoch, base_offset, now_ms, version)


def batch_bytes(batch: AppendBatch, base_offset: int, leader_epoch: int, now_ms: int, compression: Compression) -> bytes:
    """Encode the batch for this offset; `now_ms` is the timestamp of its records.

    Raises ValueError for a batch without records and for a marker without producer, which the format cannot express.
    """
    if batch.control_type is not None:
        return _marker_bytes(batch, batch.control_type, base_offset, leader_epoch, now_ms)
    if not batch.records:
        raise ValueError(f"batch at offset {base_offset} has no records: append at least one")
    parts: list[bytes] = []
    for delta, (key, value) in enumerate(batch.records):
        value_length = _NULL if value is None else _zigzag(len(value))
        body = b"\x00\x00%b%b%b%b%b\x00" % (_zigzag(delta), _zigzag(len(key)), key, value_length, value or b"")
        parts += (_zigzag(len(body)), body)
    payload = b"".join(parts)
    attributes = compression | (0 if batch.producer is None else TRANSACTIONAL)
    if compression:
        payload = compress(compression, payload)
    producer_id, epoch = batch.producer or _NO_PRODUCER
    count = len(batch.records)
    covered = _BEHIND_CRC.pack(attributes, count - 1, now_ms, now_ms, producer_id, epoch, _BASE_SEQUENCE, count) + payload
    return _BEFORE_CRC.pack(base_offset, SMALLEST_LENGTH + len(payload), leader_epoch, _MAGIC, crc32c(covered)) + covered


def _marker_bytes(batch: AppendBatch, kind: ControlType, base_offset: int, leader_epoch: int, now_ms: int) -> bytes:
    if batch.producer is None:
        raise ValueError(f"transaction marker at offset {base_offset} has no producer: set the producer id and epoch")
    producer_id, epoch = batch.producer
    return end_transaction_marker(
        base_offset,
        kind,
        producer_id=producer_id,
        producer_epoch=epoch,
        timestamp=now_ms,
        coordinator_epoch=batch.coordinator_epoch,
        leader_epoch=leader_epoch,
    )


def _zigzag(number: int) -> bytes:
    return _SMALL[number] if number < _SMALL_NUMBERS else zigzag(number)


_SMALL_NUMBERS = 8192
_SMALL = tuple(zigzag(number) for number in range(_SMALL_NUMBERS))
