"""Snapshot files of producer states (`ProducerSnapshot`, version 1): only the newest batch of each producer is stored."""

import struct
from collections.abc import Iterable, Sequence

from crc32c import crc32c

from coordinator_core.producers.entry import NONE, BatchMetadata, ProducerStateEntry

_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1
#: First byte that the checksum covers.
_CRC_START = 6


class CorruptSnapshot(Exception):
    """The bytes are not a snapshot of a known version, their checksum differs, or they contradict the offset of the snapshot."""


def write_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Encode the entries."""
    rows = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.batches[-1].offset_delta if entry.batches else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for entry in entries
    ]
    covered = len(rows).to_bytes(4, "big") + b"".join(rows)
    return _HEADER.pack(_VERSION, crc32c(covered), len(rows)) + covered[4:]


def read_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """Decode the entries. Raises CorruptSnapshot."""
    if len(data) < _HEADER.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too short for a header")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(f"unknown version {version}")
    if count < 0 or len(data) < _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{len(data)} bytes do not hold {count} entries")
    if crc32c(memoryview(data)[_CRC_START:]) != crc:
        raise CorruptSnapshot("the checksum differs")
    rows = data[_HEADER.size : _HEADER.size + count * _ENTRY.size]
    return [_entry(*row) for row in _ENTRY.iter_unpack(rows)]


def check_snapshot(entries: Sequence[ProducerStateEntry], offset: int) -> None:
    """Check states that cover a log up to this offset. Raises CorruptSnapshot."""
    first_offsets = [entry.current_txn_first_offset for entry in entries if entry.in_transaction]
    newest = max([*first_offsets, *(entry.last_data_offset for entry in entries)], default=NONE)
    if newest >= offset:
        raise CorruptSnapshot(f"a state has offset {newest}, the snapshot ends at offset {offset}")
    if len(set(first_offsets)) < len(first_offsets):
        raise CorruptSnapshot("two transactions begin at the same offset")


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    delta: int,
    timestamp: int,
    coordinator_epoch: int,
    first_offset: int,
) -> ProducerStateEntry:
    batches = (BatchMetadata(last_sequence, last_offset, delta, timestamp),) if last_offset >= 0 else ()
    return ProducerStateEntry(producer_id, epoch, coordinator_epoch, timestamp, max(first_offset, NONE), batches)
