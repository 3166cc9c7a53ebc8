"""Compiled rules of transactions: entries that wait for the marker of their producer.

Every entry is a row in two linked lists: that of its key (for Java tombstones) and that of its producer (for markers).
"""

from typing import Any

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Int32s, Integer
from coordinator_core.log.entries import ControlType
from coordinator_core.reduction.layout import (
    COMMITTED_REMOVAL,
    FREE,
    NONE,
    PENDING_COMMIT,
    PENDING_REMOVAL,
    UPSERT,
    FoldState,
)
from coordinator_core.reduction.slot_kernels import count_effect, keep_commit, keep_metadata, take_over

_ABORT = int(ControlType.ABORT)
_COMMIT = int(ControlType.COMMIT)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True)
def _table_slot(producer_id: Integer, producers: Any, table: Int32s) -> Any:
    """Find the producer's slot of the hash table, or the empty slot where it belongs."""
    mask = np.uint64(table.size - 1)
    value = np.uint64(producer_id) * _MULTIPLIER
    slot = (value ^ (value >> np.uint64(32))) & mask
    while table[slot] != 0 and producers[table[slot] - 1].producer_id != producer_id:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True)
def rehash_producers(producers: Any, count: Integer, table: Int32s) -> None:
    """Enter the first `count` producers into an empty table."""
    for index in range(count):
        table[_table_slot(producers[index].producer_id, producers, table)] = index + 1


@njit(cache=True)
def _producer(state: FoldState, producer_id: Integer) -> Integer:
    """The producer's index; a new producer is entered first."""
    slot = _table_slot(producer_id, state.producers, state.table)
    if state.table[slot] == 0:
        counters = state.counters[0]
        producer = state.producers[counters.producers]
        producer.producer_id = producer_id
        producer.marker_offset = NONE
        producer.pending = NONE
        counters.producers += 1
        state.table[slot] = counters.producers
    return np.int64(state.table[slot]) - 1


@njit(cache=True)
def _find(state: FoldState, slot: Integer, producer: Integer) -> Integer:
    row = np.int64(state.slots[slot].pending)
    while row != NONE and state.rows[row].producer != producer:
        row = np.int64(state.rows[row].next_of_slot)
    return row


@njit(cache=True)
def _enter(state: FoldState, slot: Integer, producer: Integer) -> Integer:
    """Insert a row at the head of the lists of its key and of its producer."""
    rows = state.rows
    counters = state.counters[0]
    index = np.int64(counters.free_row)
    if index != NONE:
        counters.free_row = rows[index].next_of_slot
    else:
        index = np.int64(counters.rows)
        counters.rows += 1
    row = rows[index]
    row.slot = slot
    row.producer = producer
    row.previous_of_slot = NONE
    row.previous_of_producer = NONE
    row.next_of_slot = state.slots[slot].pending
    if row.next_of_slot != NONE:
        rows[row.next_of_slot].previous_of_slot = index
    state.slots[slot].pending = index
    row.next_of_producer = state.producers[producer].pending
    if row.next_of_producer != NONE:
        rows[row.next_of_producer].previous_of_producer = index
    state.producers[producer].pending = index
    return index


@njit(cache=True)
def _leave(state: FoldState, index: Integer) -> None:
    """Remove the row from both lists."""
    rows = state.rows
    row = rows[index]
    if row.previous_of_slot == NONE:
        state.slots[row.slot].pending = row.next_of_slot
    else:
        rows[row.previous_of_slot].next_of_slot = row.next_of_slot
    if row.next_of_slot != NONE:
        rows[row.next_of_slot].previous_of_slot = row.previous_of_slot
    if row.previous_of_producer == NONE:
        state.producers[row.producer].pending = row.next_of_producer
    else:
        rows[row.previous_of_producer].next_of_producer = row.next_of_producer
    if row.next_of_producer != NONE:
        rows[row.next_of_producer].previous_of_producer = row.previous_of_producer


@njit(cache=True)
def _free(state: FoldState, index: Integer) -> None:
    state.rows[index].kind = FREE
    state.rows[index].next_of_slot = state.counters[0].free_row
    state.counters[0].free_row = index


@njit(cache=True)
def pend(
    state: FoldState, slot: Integer, producer_id: Integer, log_offset: Integer, timestamp: Integer, buffer: Bytes, value: Any
) -> None:
    """Store a transactional commit until its marker; it replaces the producer's pending entry of the key."""
    producer = _producer(state, producer_id)
    index = _find(state, slot, producer)
    if index == NONE:
        index = _enter(state, slot, producer)
    row = state.rows[index]
    row.kind = PENDING_COMMIT
    keep_commit(row, value, producer_id, log_offset, timestamp)
    if row.metadata_length > 0:
        keep_metadata(state, row, buffer, value)


@njit(cache=True)
def remove_pending(state: FoldState, slot: Integer, producer_id: Integer, log_offset: Integer, timestamp: Integer) -> None:
    """Apply a transactional tombstone in Scala loaders: it removes the producer's own pending commit.

    Before the producer's first marker it also removes a commit pending before the range, so it is kept as a pending removal.
    """
    producer = _producer(state, producer_id)
    index = _find(state, slot, producer)
    if state.producers[producer].marker_offset != NONE:
        if index != NONE:
            _leave(state, index)
            _free(state, index)
        return
    if index == NONE:
        index = _enter(state, slot, producer)
    row = state.rows[index]
    row.kind = PENDING_REMOVAL
    row.producer_id = producer_id
    row.log_offset = log_offset
    row.record_timestamp = timestamp


@njit(cache=True)
def wipe_pending(state: FoldState, slot: Integer) -> None:
    """Apply a tombstone in the Java loader: it removes the pending commits of all producers for the key."""
    row = np.int64(state.slots[slot].pending)
    while row != NONE:
        after = np.int64(state.rows[row].next_of_slot)
        _leave(state, row)
        _free(state, row)
        row = after


@njit(cache=True)
def _materialise(state: FoldState, index: Integer) -> None:
    """Apply a pending commit at its COMMIT marker, unless the committed offset is newer."""
    row = state.rows[index]
    slot = state.slots[row.slot]
    if slot.final != UPSERT or slot.log_offset < row.log_offset:
        count_effect(slot, row.offset)
        take_over(slot, row)
    _free(state, index)


@njit(cache=True)
def end_transaction(state: FoldState, producer_id: Integer, is_commit: bool, log_offset: Integer, timestamp: Integer) -> None:
    """Apply a marker: COMMIT applies the producer's pending commits, ABORT discards them."""
    ended = state.producers[_producer(state, producer_id)]
    is_first = ended.marker_offset == NONE
    if is_first:
        ended.marker_offset = log_offset
        ended.marker_timestamp = timestamp
        ended.marker_type = _COMMIT if is_commit else _ABORT
    index = np.int64(ended.pending)
    while index != NONE:
        row = state.rows[index]
        after = np.int64(row.next_of_producer)
        _leave(state, index)
        if is_commit and row.kind == PENDING_COMMIT:
            _materialise(state, index)
        elif is_commit and is_first:
            row.kind = COMMITTED_REMOVAL
        else:
            _free(state, index)
        index = after
