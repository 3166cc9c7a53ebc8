"""Memory layout of a reduction: the state of the fold per key, per pending entry and per producer."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from coordinator_core.codec.arrays import Bytes, Int32s, Integer, Structs

NONE = -1

#: Most bytes of the arena for one record: the longest string, rounded up to a power of two.
ARENA_STEP = 32_768

#: `final` of a slot: the last operation that took effect on the key.
NOTHING = 0
UPSERT = 1
REMOVAL = 2

#: `kind` of a row.
FREE = 0
PENDING_COMMIT = 1
PENDING_REMOVAL = 2
#: A removal in the producer's first transaction of the range, already committed: it also removes commits pending before it.
COMMITTED_REMOVAL = 3

#: A commit with its log position. It owns `1 << metadata_room` bytes at `metadata_start` of the arena (no bytes for 0).
_COMMIT = [
    ("offset", np.int64),
    ("commit_timestamp", np.int64),
    ("expire_timestamp", np.int64),
    ("topic_id_high", np.int64),
    ("topic_id_low", np.int64),
    ("producer_id", np.int64),
    ("log_offset", np.int64),
    ("record_timestamp", np.int64),
    ("metadata_start", np.int64),
    ("leader_epoch", np.int32),
    ("metadata_length", np.int16),
    ("metadata_room", np.int8),
]

#: One per key of the dictionary, two cache lines: the last effective commit (only the position for a removal), and the history.
#: `final` and `first` are NOTHING, UPSERT or REMOVAL: the last and the first operation that took effect in the range.
SLOT = np.dtype(
    [
        *_COMMIT,
        ("final", np.uint8),
        ("commits", np.int64),
        ("min_offset", np.int64),
        ("first_offset", np.int64),
        ("last_value_offset", np.int64),
        ("last_tombstone_offset", np.int64),
        ("pending", np.int32),
        ("first", np.uint8),
        ("rewound", np.uint8),
    ],
    align=True,
)

#: One per entry that waits for a marker, in two linked lists: that of its key and that of its producer.
ROW = np.dtype(
    [
        *_COMMIT,
        ("kind", np.uint8),
        ("slot", np.int32),
        ("producer", np.int32),
        ("next_of_slot", np.int32),
        ("previous_of_slot", np.int32),
        ("next_of_producer", np.int32),
        ("previous_of_producer", np.int32),
    ],
    align=True,
)

#: One per producer that wrote transactionally or had a marker; `marker_offset` is that of its first acting marker.
PRODUCER = np.dtype(
    [
        ("producer_id", np.int64),
        ("marker_offset", np.int64),
        ("marker_timestamp", np.int64),
        ("pending", np.int32),
        ("marker_type", np.int32),
    ],
    align=True,
)

#: A topic id seen in a value of the key `slot`.
LEARNED = np.dtype([("high", np.int64), ("low", np.int64), ("slot", np.int64)], align=True)

#: Counters of the fold across calls; an array of one.
COUNTERS = np.dtype(
    [
        ("rows", np.int64),
        ("free_row", np.int64),
        ("arena", np.int64),
        ("producers", np.int64),
        ("learned", np.int64),
    ],
    align=True,
)


class FoldState(NamedTuple):
    """The mutable state of the fold; `table` is the hash table of producers.

    Struct arrays are Any: compiled code reads the fields of their items as attributes.
    """

    slots: Any
    rows: Any
    arena: Bytes
    producers: Any
    table: Int32s
    learned: Any
    counters: Any


@njit(cache=True)
def has_room(counters: Any, limits: tuple[Integer, Integer, Integer, Integer]) -> bool:
    """True if one more record fits; `limits` are those of arena, learned topic ids, rows and producers."""
    return bool(
        counters.arena <= limits[0]
        and counters.learned < limits[1]
        and (counters.rows < limits[2] or counters.free_row != NONE)
        and counters.producers < limits[3]
    )


def new_slots(count: int) -> Structs:
    """Create slots for keys without operations."""
    slots: Structs = np.zeros(count, dtype=SLOT)
    for field in ("pending", "last_value_offset", "last_tombstone_offset"):
        slots[field] = NONE
    return slots
