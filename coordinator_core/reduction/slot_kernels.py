"""Compiled rules of one key: its history, its current commit, and the topic ids in its values."""

from typing import Any

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Integer
from coordinator_core.codec.byte_kernels import copy_bytes
from coordinator_core.reduction.layout import NOTHING, REMOVAL, UPSERT, FoldState

_SMALLEST_ROOM = 4


@njit(cache=True)
def count_effect(slot: Any, offset: Integer) -> None:
    """Add an effective commit of `offset` to the key's history. Must run before the commit replaces the current one."""
    if slot.final == NOTHING:
        slot.first = UPSERT
        slot.first_offset = offset
    if slot.final == UPSERT and offset < slot.offset:
        if not slot.rewound or offset < slot.min_offset:
            slot.min_offset = offset
        slot.rewound = 1
    elif not slot.rewound and (slot.commits == 0 or offset < slot.min_offset):
        slot.min_offset = offset
    slot.commits += 1
    slot.final = UPSERT


@njit(cache=True)
def remove(slot: Any, log_offset: Integer, timestamp: Integer) -> None:
    """Apply a removal of the committed offset."""
    if slot.final == NOTHING:
        slot.first = REMOVAL
    slot.final = REMOVAL
    slot.log_offset = log_offset
    slot.record_timestamp = timestamp


@njit(cache=True)
def keep_commit(kept: Any, value: Any, producer_id: Integer, log_offset: Integer, timestamp: Integer) -> None:
    """Copy a decoded commit, except its metadata, into a slot or row."""
    kept.offset = value.offset
    kept.commit_timestamp = value.commit_timestamp
    kept.expire_timestamp = value.expire_timestamp
    kept.topic_id_high = value.topic_id_high
    kept.topic_id_low = value.topic_id_low
    kept.producer_id = producer_id
    kept.log_offset = log_offset
    kept.record_timestamp = timestamp
    kept.leader_epoch = value.leader_epoch
    kept.metadata_length = value.metadata_length


@njit(cache=True)
def keep_metadata(state: FoldState, kept: Any, buffer: Bytes, value: Any) -> None:
    """Copy the metadata of a commit from the chunk's buffer into the arena."""
    length = np.int64(value.metadata_length)
    if kept.metadata_room == 0 or length > (np.int64(1) << kept.metadata_room):
        room = np.int64(_SMALLEST_ROOM)
        while (np.int64(1) << room) < length:
            room += 1
        kept.metadata_room = room
        kept.metadata_start = state.counters[0].arena
        state.counters[0].arena += np.int64(1) << room
    copy_bytes(buffer, value.metadata_start, state.arena, kept.metadata_start, length)


@njit(cache=True)
def take_over(slot: Any, row: Any) -> None:
    """Make the row's commit the current one; the row gets the metadata bytes of the previous commit."""
    slot.offset = row.offset
    slot.commit_timestamp = row.commit_timestamp
    slot.expire_timestamp = row.expire_timestamp
    slot.topic_id_high = row.topic_id_high
    slot.topic_id_low = row.topic_id_low
    slot.producer_id = row.producer_id
    slot.log_offset = row.log_offset
    slot.record_timestamp = row.record_timestamp
    slot.leader_epoch = row.leader_epoch
    slot.metadata_length = row.metadata_length
    start, room = slot.metadata_start, slot.metadata_room
    slot.metadata_start, slot.metadata_room = row.metadata_start, row.metadata_room
    row.metadata_start, row.metadata_room = start, room


@njit(cache=True)
def note_value(learned: Any, counters: Any, key: Integer, slot: Any, value: Any, log_offset: Integer) -> None:
    """Record the log offset of a commit, effective or not, and its topic id unless the current commit has the same."""
    slot.last_value_offset = log_offset
    is_new = slot.topic_id_high != value.topic_id_high or slot.topic_id_low != value.topic_id_low
    if is_new and (value.topic_id_high != 0 or value.topic_id_low != 0):
        entry = learned[counters.learned]
        entry.high = value.topic_id_high
        entry.low = value.topic_id_low
        entry.slot = key
        counters.learned += 1
