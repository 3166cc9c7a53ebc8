"""The compiled rules of one key: its history, the commit that stands, the topic ids its values name."""

from typing import Any

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Integer
from coordinator_core.codec.byte_kernels import copy_bytes
from coordinator_core.reduction.layout import NOTHING, REMOVAL, UPSERT, FoldState

_SMALLEST_ROOM = 4


@njit(cache=True)
def count_effect(slot: Any, offset: Integer) -> None:
    """Note in the key's history that a commit of `offset` takes effect; before it replaces the one that stands."""
    if slot.final == NOTHING:
        slot.first = UPSERT
        slot.first_offset = offset
    if slot.final == UPSERT and offset < slot.offset:
        slot.rewound = 1
    if slot.commits == 0 or offset < slot.min_offset:
        slot.min_offset = offset
    slot.commits += 1
    slot.final = UPSERT


@njit(cache=True)
def remove(slot: Any, log_offset: Integer, timestamp: Integer) -> None:
    """A removal takes effect at once."""
    if slot.final == NOTHING:
        slot.first = REMOVAL
    slot.final = REMOVAL
    slot.log_offset = log_offset
    slot.record_timestamp = timestamp


@njit(cache=True)
def keep_commit(kept: Any, value: Any, producer_id: Integer, log_offset: Integer, timestamp: Integer) -> None:
    """Copy a decoded commit into a slot or row; its metadata stays to be kept."""
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
    """Copy the metadata of a commit out of the chunk's buffer."""
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
    """Make the commit of the row the one that stands; the row gets the metadata bytes of the former one."""
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
    """A value was written, whatever comes of it: its place, and its topic id unless the commit that stands has it too."""
    slot.last_value_offset = log_offset
    is_news = slot.topic_id_high != value.topic_id_high or slot.topic_id_low != value.topic_id_low
    if is_news and (value.topic_id_high != 0 or value.topic_id_low != 0):
        entry = learned[counters.learned]
        entry.high = value.topic_id_high
        entry.low = value.topic_id_low
        entry.slot = key
        counters.learned += 1
