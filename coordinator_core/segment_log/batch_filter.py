"""Compaction of batches: records to keep, and rewritten batches (`Cleaner.cleanInto`, `MemoryRecords.filterTo`)."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from coordinator_core.codec.arrays import Bytes, Int64s
from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.compression import Compression
from coordinator_core.log.record_batch import (
    CONTROL,
    DELETE_HORIZON,
    NO_PRODUCER_ID,
    BatchHeader,
    BatchRecord,
    read_header,
    read_payload,
    read_records,
    write_batch,
)
from coordinator_core.producers.entry import NONE, ProducerStateEntry
from coordinator_core.segment_log.errors import CleanFailed
from coordinator_core.segment_log.transactions import Transactions

DROP = 0
COPY = 1
REWRITE = 2
#: Keep only the header, for the state of its producer.
EMPTY = 3

Flags = npt.NDArray[np.bool_]


def decide(
    columns: RecordColumns,
    batches: npt.NDArray[np.void],
    rows: Int64s,
    last: Int64s,
    transactions: Transactions,
    open_batches: frozenset[int],
    producers: Mapping[int, ProducerStateEntry],
    now_ms: int,
) -> tuple[Flags, Bytes]:
    """Return the mask of records to keep, and the action for each batch.

    `rows` has the batch of each record, `last` the last offset of its key. The last record of each key is kept, every record of
    an open transaction, and no record of an aborted one. Tombstones, and markers of transactions without remaining batches, get
    a delete horizon at the first cleaning that finds them, and are removed once it has passed.
    """
    attributes = batches["attributes"]
    is_control = (attributes & CONTROL) != 0
    has_horizon = (attributes & DELETE_HORIZON) != 0
    is_over = has_horizon & (batches["base_timestamp"] <= now_ms)
    base = batches["base_offset"]
    is_aborted, is_open = _among(base, transactions.aborted), _among(base, open_batches)
    is_idle = is_control & _among(base, transactions.idle_markers)
    is_tombstone = (columns.value_length < 0) & ~is_control[rows]

    is_kept = (columns.key_length >= 0) & (columns.offset >= last) & ~(is_tombstone & is_over[rows])
    is_kept &= ~is_aborted[rows]
    is_kept |= is_open[rows]
    is_kept = np.where(is_control[rows], ~(is_idle & is_over)[rows], is_kept)

    kept = np.bincount(rows[is_kept], minlength=len(batches))
    gets_horizon = ~has_horizon & (is_idle | (np.bincount(rows[is_kept & is_tombstone], minlength=len(batches)) > 0))
    action: Bytes = np.full(len(batches), REWRITE, np.uint8)
    action[(kept == batches["count"]) & ~gets_horizon] = COPY
    action[kept == 0] = DROP
    for row in np.flatnonzero((kept == 0) & (batches["producer_id"] != NO_PRODUCER_ID)).tolist():
        if _is_last(batches[row], producers):
            action[row] = EMPTY
    return is_kept, action


def _among(base: Int64s, chosen: set[int] | frozenset[int]) -> Flags:
    return np.isin(base, np.fromiter(chosen, np.int64)) if chosen else np.zeros(len(base), np.bool_)


def _is_last(batch: npt.NDArray[np.void], producers: Mapping[int, ProducerStateEntry]) -> bool:
    """Whether the batch has the newest data of an active producer or, if the producer's epoch has no data, its marker."""
    newest = producers.get(int(batch["producer_id"]))
    if newest is None:
        return False
    if newest.last_data_offset != NONE:
        return int(batch["last_offset"]) == newest.last_data_offset
    return bool(int(batch["attributes"]) & CONTROL) and int(batch["producer_epoch"]) == newest.epoch


def emptied(batch: memoryview) -> bytes:
    """Return the batch without its records (`DefaultRecordBatch.writeEmptyHeader`)."""
    return _batch_like(read_header(batch), [], Compression.NONE, None)


def rewritten(batch: memoryview, kept: frozenset[int], horizon: int, *, is_marker: bool) -> bytes:
    """Return the batch with only the records at these offsets, and with a delete horizon if it has tombstones or is a marker."""
    header = read_header(batch)
    payload = read_payload(batch, header)
    if isinstance(payload, tuple):
        raise CleanFailed(f"batch at offset {header.base_offset}: {payload[1]}")
    records = [r for r in read_records(payload, header) if isinstance(r, BatchRecord) and r.offset in kept]
    needs_horizon = is_marker or any(record.value is None for record in records)
    delete_horizon = horizon if needs_horizon and header.delete_horizon is None else header.delete_horizon
    return _batch_like(header, records, Compression(header.compression), delete_horizon)


def _batch_like(
    header: BatchHeader, records: Sequence[BatchRecord], compression: Compression, delete_horizon: int | None
) -> bytes:
    """Write a batch with the offsets, producer and flags of `header`."""
    return write_batch(
        records,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.leader_epoch,
        compression=compression,
        transactional=header.is_transactional,
        control=header.is_control,
        log_append_time=header.max_timestamp if header.is_log_append_time else None,
        max_timestamp=header.max_timestamp,
        delete_horizon=delete_horizon,
    )
