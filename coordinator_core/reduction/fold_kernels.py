"""Compiled fold of offset commits, tombstones and transaction markers in log order.

The rules are those of Kafka's loaders (`GroupMetadataManager.doLoadGroupsAndOffsets`, `OffsetMetadataManager.replay` and
`replayEndTransactionMarker`). `route` has chosen the rule of each record before.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Int32s, Int64s, Integer
from coordinator_core.reduction.layout import ARENA_STEP, NONE, FoldState, has_room
from coordinator_core.reduction.pending_kernels import end_transaction, pend, remove_pending, wipe_pending
from coordinator_core.reduction.routing_kernels import (
    COMMIT,
    END_ABORT,
    END_COMMIT,
    PEND,
    REMOVE_PENDING,
    WIPE,
)
from coordinator_core.reduction.slot_kernels import count_effect, keep_commit, keep_metadata, note_value, remove

_AHEAD = 32


class Records(NamedTuple):
    """Input of the fold for one chunk: columns of the log, decoded values, and the action of each record."""

    buffer: Bytes
    offset: Int64s
    timestamp: Int64s
    producer_id: Int64s
    key_index: Int32s
    values: Any
    action: Bytes


@njit(cache=True)
def _read_ahead(slots: Any, key_index: Int32s, first: Integer) -> Integer:
    """Read the slots of the next records in one loop, so that their cache misses overlap.

    Returns a value computed from the slots, because the compiler would remove unused reads.
    """
    touched = np.int64(0)
    for i in range(first, min(first + _AHEAD, key_index.size)):
        if key_index[i] >= 0:
            slot = slots[np.uint64(key_index[i])]
            touched ^= slot.offset ^ slot.last_tombstone_offset
    return touched


@njit(cache=True)
def fold(state: FoldState, records: Records, first: Integer) -> tuple[Integer, Integer]:
    """Fold the records of a chunk from `first` on.

    Returns the index of the first record not folded for lack of room, and a meaningless value (see `_read_ahead`).
    """
    # Reading an array from a tuple counts a reference: do it once, not per record.
    slots, learned, counters = state.slots, state.learned, state.counters[0]
    offset, timestamp, producer_id, buffer = records.offset, records.timestamp, records.producer_id, records.buffer
    key_index, values, action = records.key_index, records.values, records.action
    limits = (state.arena.size - ARENA_STEP, learned.size, state.rows.size, state.producers.size)
    touched = np.int64(0)
    for i in range(first, offset.size):
        if i % _AHEAD == 0:
            touched ^= _read_ahead(slots, key_index, i)
        if not has_room(counters, limits):
            return i, touched
        if action[i] in (END_COMMIT, END_ABORT):
            end_transaction(state, producer_id[i], action[i] == END_COMMIT, offset[i], timestamp[i])
        if action[i] < COMMIT or action[i] > WIPE:
            continue
        key = np.int64(key_index[i])
        slot = slots[np.uint64(key)]
        if action[i] <= PEND:
            note_value(learned, counters, key, slot, values[i], offset[i])
        else:
            slot.last_tombstone_offset = offset[i]
        if action[i] == COMMIT:
            count_effect(slot, values[i].offset)
            keep_commit(slot, values[i], NONE, offset[i], timestamp[i])
            if slot.metadata_length > 0:
                keep_metadata(state, slot, buffer, values[i])
        elif action[i] == PEND:
            pend(state, key, producer_id[i], offset[i], timestamp[i], buffer, values[i])
        elif action[i] == REMOVE_PENDING:
            remove_pending(state, key, producer_id[i], offset[i], timestamp[i])
        else:
            remove(slot, offset[i], timestamp[i])
            if action[i] == WIPE:
                wipe_pending(state, key)
    return offset.size, touched
