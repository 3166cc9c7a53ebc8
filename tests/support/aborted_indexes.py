"""Indexes of aborted transactions, read as brokers read them (`TransactionIndex`)."""

import struct

from coordinator_core.producers.aborted_transactions import AbortedTransaction

_ROW = struct.Struct(">hqqqq")
_VERSION = 0


class CorruptIndex(Exception):
    """The bytes are not an index, or contradict the segment that they belong to."""


def read_index(data: bytes, base_offset: int = 0) -> list[AbortedTransaction]:
    """Decode the index of the segment with this base offset. Raises CorruptIndex."""
    if len(data) % _ROW.size:
        raise CorruptIndex(f"{len(data)} bytes are not a multiple of {_ROW.size}")
    rows: list[AbortedTransaction] = []
    for version, *fields in _ROW.iter_unpack(data):
        row = AbortedTransaction(*fields)
        # as in Kafka, only the first byte of the version counts
        if version >> 8 > _VERSION:
            raise CorruptIndex(f"unknown version {version}")
        if row.last_offset < base_offset:
            raise CorruptIndex(f"the marker at offset {row.last_offset} is before the segment's base offset {base_offset}")
        if rows and row.last_offset <= rows[-1].last_offset:
            raise CorruptIndex(f"the marker at offset {row.last_offset} does not follow the one at {rows[-1].last_offset}")
        rows.append(row)
    return rows
