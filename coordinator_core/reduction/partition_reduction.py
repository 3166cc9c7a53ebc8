"""Effect of a range of one log partition on the committed offsets, for any state before the range.

A task that reads the range folds it here and returns only what a merge with the tables needs: memory and result are bounded by
distinct keys and open transactions, not by records. Events inside the range are resolved by the rules of the loader. Effects that
depend on the state before the range are described by rows:

- A row of `commits` replaces the committed offset of its key; a row of `tombstones` removes it.
- A commit pending before the range first meets `pending_tombstones`, then its producer's row in `markers`. At a COMMIT it takes
  effect, except in three cases: the range has a newer commit of its key; the range has a removal after the marker (`log_offset`
  greater than the marker's); or the range has no removal of the key and a newer commit existed before the range. A removal before
  the marker does not stop it in the Scala loaders (the offset reappears); in the Java loader every tombstone is also in
  `pending_tombstones`.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Bytes, Int8s, Int32s, Int64s, grown
from coordinator_core.codec.columnar import KeyDictionary, decode_offset_commits
from coordinator_core.codec.slices import binaries
from coordinator_core.codec.wrapped_key_kernels import unwrap_keys
from coordinator_core.log.columns import IS_CONTROL, IS_TRANSACTIONAL, RecordColumns
from coordinator_core.log.damage import Damage
from coordinator_core.reduction import schemas
from coordinator_core.reduction.fold_kernels import Records, fold
from coordinator_core.reduction.layout import (
    ARENA_STEP,
    COMMITTED_REMOVAL,
    COUNTERS,
    LEARNED,
    NONE,
    PENDING_REMOVAL,
    PRODUCER,
    ROW,
    FoldState,
    new_slots,
)
from coordinator_core.reduction.pending_kernels import rehash_producers
from coordinator_core.reduction.routing_kernels import NO_VERSION, OTHER, Chunk, route
from coordinator_core.reduction.tables import (
    commits_table,
    distinct,
    group_activity_table,
    markers_table,
    pending_table,
    removals_of_every_producer,
    removals_of_one_producer,
    tombstones_table,
    topic_ids_table,
)
from coordinator_core.state.era import TombstoneScope

_FIRST_KEYS = 1024
_FIRST_ROWS = 64
_LEARNED_ROOM = 65_536


class LoaderRules(Protocol):
    """The part of an era that the fold needs."""

    @property
    def tombstone_scope(self) -> TombstoneScope:
        """Rule for the pending commits that a tombstone removes."""
        ...

    @property
    def knows_transactions(self) -> bool:
        """True if the loader handles producer ids, transactional flags and control records (Kafka 0.11 and later)."""
        ...

    def reads(self, record_type: int, value_version: int | None) -> bool:
        """True if the loader knows this record type and value version (None for a tombstone)."""
        ...


@dataclass(frozen=True, slots=True)
class Reduction:
    """The effect of the records of one log partition from the first one read up to `next_offset`. Timestamps in ms.

    History columns count the commits of a key that took effect in the range: plain commits, and transactional commits at their
    COMMIT marker unless a newer commit existed. `rewound` is true if one was lower than the one it replaced. `min_offset` is the
    smallest of their offsets, if one was lower the smallest of those. `first_offset` is the first of them, to compare with the
    offset before the range; null if the first operation was a removal.

    Attributes:
        partition: the log partition
        commits: keys whose final operation is an upsert: the key, the commit (`expire_timestamp` and `leader_epoch` -1 for
            none, `topic_id` null for none, `producer_id` null for a plain commit), its log position, history
        tombstones: keys whose final operation is a removal: the key, the tombstone's log position, history
        pending: commits that wait for a marker of their producer
        pending_tombstones: removals of commits pending before the range; `producer_id` null for all producers
        markers: the first effective marker of each producer, `type` COMMIT or ABORT; it ends what was pending before the range
        group_activity: per group the greatest log offset of a commit and of a tombstone (-1 for none), including superseded and
            transactional ones, and the number of its keys in `commits`, `pending` and `tombstones`
        others: records that were not folded, in log order, as bytes: records other than offset commits, commits that the era's
            loader does not know, and unreadable control records
        topic_ids: pairs of topic id and topic from commits
        damages: damage found in the bytes of the log
        records_read: number of records in the range, including control records
        next_offset: first offset after the range
    """

    partition: int
    commits: pa.Table
    tombstones: pa.Table
    pending: pa.Table
    pending_tombstones: pa.Table
    markers: pa.Table
    group_activity: pa.Table
    others: pa.Table
    topic_ids: pa.Table
    damages: tuple[Damage, ...]
    records_read: int
    next_offset: int


class PartitionReducer:
    """Folds a range of one log partition, chunk by chunk in log order, into a `Reduction`."""

    def __init__(self, era: LoaderRules, partition: int) -> None:
        self._scope = era.tombstone_scope
        self._knows_transactions = era.knows_transactions
        versions = (*range(NO_VERSION), None)
        self._is_read: Bytes = np.array([era.reads(kind, version) for kind in (0, 1) for version in versions], dtype=np.uint8)
        self._partition = partition
        self._keys = KeyDictionary()
        self._state = FoldState(
            slots=new_slots(_FIRST_KEYS),
            rows=np.zeros(_FIRST_ROWS, dtype=ROW),
            arena=np.zeros(2 * ARENA_STEP, dtype=np.uint8),
            producers=np.zeros(_FIRST_ROWS, dtype=PRODUCER),
            table=np.zeros(4 * _FIRST_ROWS, dtype=np.int32),
            learned=np.zeros(_LEARNED_ROOM, dtype=LEARNED),
            counters=np.zeros(1, dtype=COUNTERS),
        )
        self._state.counters["free_row"] = NONE
        self._topic_ids = schemas.TOPIC_IDS.empty_table()
        self._others: list[pa.Table] = []
        self._damages: list[Damage] = []
        self._records_read = 0
        self._next_offset = 0

    def add(self, columns: RecordColumns) -> None:
        """Fold the next chunk. The chunk's buffer is not referenced afterwards."""
        key_start, key_length = unwrap_keys(columns.buffer, columns.key_start, columns.key_length)
        if key_start is not columns.key_start:
            columns = replace(columns, key_start=key_start, key_length=key_length)
        commits = decode_offset_commits(
            columns.buffer, columns.key_start, columns.key_length, columns.value_start, columns.value_length, self._keys
        )
        room = len(self._state.slots)
        if len(self._keys) > room:
            more = new_slots(max(len(self._keys), 2 * room) - room)
            self._state = self._state._replace(slots=np.concatenate([self._state.slots, more]))
        action: Bytes = np.zeros(len(commits), dtype=np.uint8)
        version: Int8s = np.ascontiguousarray(commits.values["version"])
        chunk = Chunk(
            commits.buffer, columns.producer_id, columns.flags, columns.key_start, columns.key_length, commits.status, version
        )
        route(chunk, int(self._scope), self._knows_transactions, self._is_read, action)
        self._fold(
            Records(
                commits.buffer,
                columns.offset,
                columns.timestamp,
                columns.producer_id,
                commits.key_index,
                commits.values,
                action,
            )
        )
        self._keep_others(columns, np.flatnonzero(action == OTHER))
        self._damages.extend(columns.damages)
        self._records_read += len(commits)
        self._next_offset = columns.next_offset

    def _fold(self, records: Records) -> None:
        done = 0
        while done < len(records.offset):
            done, _ = fold(self._state, records, done)
            if done < len(records.offset):
                self._make_room()

    def _make_room(self) -> None:
        state, counters = self._state, self._state.counters[0]
        if counters["free_row"] == NONE and counters["rows"] == state.rows.size:
            self._state = self._state._replace(rows=grown(state.rows, 2 * state.rows.size))
        if counters["arena"] + ARENA_STEP > state.arena.size:
            self._state = self._state._replace(arena=grown(state.arena, 2 * state.arena.size))
        if counters["producers"] == state.producers.size:
            table: Int32s = np.zeros(2 * state.table.size, dtype=np.int32)
            rehash_producers(state.producers, int(counters["producers"]), table)
            self._state = self._state._replace(producers=grown(state.producers, 2 * state.producers.size), table=table)
        if counters["learned"] == state.learned.size:
            self._settle_topic_ids()

    def _settle_topic_ids(self) -> None:
        counters = self._state.counters[0]
        fresh = topic_ids_table(self._keys, self._state.learned[: int(counters["learned"])])
        self._topic_ids = distinct(pa.concat_tables([self._topic_ids, fresh]))
        counters["learned"] = 0

    def _keep_others(self, columns: RecordColumns, chosen: Int64s) -> None:
        if not len(chosen):
            return
        flags = columns.flags[chosen]
        arrays = [
            pa.array(columns.offset[chosen]),
            pa.array(columns.timestamp[chosen]),
            pa.array(columns.producer_id[chosen]),
            pa.array(columns.batch_offset[chosen]),
            pa.array((flags & IS_TRANSACTIONAL) != 0),
            pa.array((flags & IS_CONTROL) != 0),
            binaries(columns.buffer, columns.key_start[chosen], columns.key_length[chosen]),
            binaries(columns.buffer, columns.value_start[chosen], columns.value_length[chosen]),
        ]
        self._others.append(pa.Table.from_arrays(arrays, schema=schemas.OTHERS))

    def take_others(self) -> pa.Table:
        """Return and forget the `others` of the chunks so far; a `Reduction` contains the remaining ones."""
        taken = pa.concat_tables([schemas.OTHERS.empty_table(), *self._others])
        self._others = []
        return taken

    def finish(self) -> Reduction:
        """Return the effect of the chunks so far. The reducer is not changed; more chunks may follow."""
        counters = self._state.counters[0]
        slots = self._state.slots[: len(self._keys)]
        rows = self._state.rows[: int(counters["rows"])]
        producers = self._state.producers[: int(counters["producers"])]
        self._settle_topic_ids()
        if self._scope is TombstoneScope.JAVA:
            pending_tombstones = removals_of_every_producer(self._keys, slots)
        else:
            removals = rows[(rows["kind"] == PENDING_REMOVAL) | (rows["kind"] == COMMITTED_REMOVAL)]
            pending_tombstones = removals_of_one_producer(self._keys, removals)
        return Reduction(
            partition=self._partition,
            commits=commits_table(self._keys, slots, self._state.arena),
            tombstones=tombstones_table(self._keys, slots),
            pending=pending_table(self._keys, rows, self._state.arena),
            pending_tombstones=pending_tombstones,
            markers=markers_table(producers),
            group_activity=group_activity_table(self._keys, slots, rows),
            others=pa.concat_tables([schemas.OTHERS.empty_table(), *self._others]),
            topic_ids=self._topic_ids,
            damages=tuple(self._damages),
            records_read=self._records_read,
            next_offset=self._next_offset,
        )
