"""Arrow tables from the state of a fold."""

from typing import TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import ArrowArray, ArrowColumn, Bytes, Int64s, Numbers, Structs
from coordinator_core.codec.key_dictionary import KeyDictionary
from coordinator_core.codec.slices import strings
from coordinator_core.codec.uuids import uuid_text
from coordinator_core.log.entries import ControlType
from coordinator_core.reduction import schemas
from coordinator_core.reduction.layout import NONE, PENDING_COMMIT, REMOVAL, UPSERT

_ZERO_ID = bytes(16)

Column: TypeAlias = ArrowColumn | ArrowArray | Numbers


def _table(schema: pa.Schema, *columns: Column) -> pa.Table:
    return pa.Table.from_arrays([pa.array(c) if isinstance(c, np.ndarray) else c for c in columns], schema=schema)


def _taken(structs: Structs, chosen: Int64s) -> Structs:
    """Select structs; copied as plain bytes, because numpy copies structs field by field."""
    raw = structs.view(np.uint8).reshape(len(structs), structs.dtype.itemsize)
    taken: Structs = raw[chosen].view(structs.dtype)[:, 0]
    return taken


def _key_columns(keys: KeyDictionary, chosen: Int64s) -> list[Column]:
    groups, topics, partitions = keys.names(chosen)
    return [groups, topics, pa.array(partitions)]


def topic_id_strings(high: Int64s, low: Int64s) -> ArrowColumn:
    """Topic ids as Kafka prints them (`Uuid.toString`: 22 characters of base64url); null for the zero id."""
    halves = np.stack([high, low], axis=1).astype(">i8")
    ids = pa.Array.from_buffers(pa.binary(16), len(high), [None, pa.py_buffer(halves.tobytes())]).dictionary_encode()
    texts = [None if raw == _ZERO_ID else uuid_text(UUID(bytes=bytes(raw))) for raw in ids.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(texts, type=pa.string()).take(ids.indices)], type=pa.string())


def _commit_columns(rows: Structs, arena: Bytes) -> list[Column]:
    return [
        rows["offset"],
        rows["leader_epoch"],
        strings(arena, rows["metadata_start"], rows["metadata_length"]),
        rows["commit_timestamp"],
        rows["expire_timestamp"],
        topic_id_strings(rows["topic_id_high"], rows["topic_id_low"]),
    ]


def _position_columns(rows: Structs) -> list[Column]:
    return [rows["log_offset"], rows["record_timestamp"]]


def _history_columns(slots: Structs) -> list[Column]:
    return [
        slots["commits"],
        pa.array(slots["min_offset"], mask=slots["commits"] == 0),
        slots["rewound"].astype(bool),
        pa.array(slots["first_offset"], mask=slots["first"] != UPSERT),
    ]


def commits_table(keys: KeyDictionary, slots: Structs, arena: Bytes) -> pa.Table:
    """Keys whose final operation is an upsert, with the current commit."""
    chosen = np.flatnonzero(slots["final"] == UPSERT)
    current = _taken(slots, chosen)
    # Scala loaders accept a transaction without a producer id; once committed, -1 means the same as null.
    producer_id = pa.array(current["producer_id"], mask=current["producer_id"] == NONE)
    commit_columns = [*_commit_columns(current, arena), producer_id, *_position_columns(current)]
    return _table(schemas.COMMITS, *_key_columns(keys, chosen), *commit_columns, *_history_columns(current))


def tombstones_table(keys: KeyDictionary, slots: Structs) -> pa.Table:
    """Keys whose final operation is a removal."""
    chosen = np.flatnonzero(slots["final"] == REMOVAL)
    removed = _taken(slots, chosen)
    return _table(schemas.TOMBSTONES, *_key_columns(keys, chosen), *_position_columns(removed), *_history_columns(removed))


def pending_table(keys: KeyDictionary, rows: Structs, arena: Bytes) -> pa.Table:
    """Transactional commits without a marker."""
    pending = _taken(rows, np.flatnonzero(rows["kind"] == PENDING_COMMIT))
    commit_columns = [*_commit_columns(pending, arena), pending["producer_id"], *_position_columns(pending)]
    return _table(schemas.PENDING, *_key_columns(keys, pending["slot"].astype(np.int64)), *commit_columns)


def removals_of_one_producer(keys: KeyDictionary, removals: Structs) -> pa.Table:
    """Scala loaders: removals of the commits that their own producer had pending before the range."""
    key_columns = _key_columns(keys, removals["slot"].astype(np.int64))
    return _table(schemas.PENDING_TOMBSTONES, removals["producer_id"], *key_columns, removals["log_offset"])


def removals_of_every_producer(keys: KeyDictionary, slots: Structs) -> pa.Table:
    """Java loader: keys with a tombstone, which removes the commits of all producers pending before it."""
    chosen = np.flatnonzero(slots["last_tombstone_offset"] != NONE)
    producer_ids = pa.nulls(len(chosen), pa.int64())
    return _table(schemas.PENDING_TOMBSTONES, producer_ids, *_key_columns(keys, chosen), slots["last_tombstone_offset"][chosen])


def markers_table(producers: Structs) -> pa.Table:
    """The first effective marker of each producer."""
    marked = producers[producers["marker_offset"] != NONE]
    names = pa.array([ControlType(t).name for t in marked["marker_type"].tolist()], type=pa.string())
    return _table(schemas.MARKERS, marked["producer_id"], marked["marker_offset"], marked["marker_timestamp"], names)


def group_activity_table(keys: KeyDictionary, slots: Structs, rows: Structs) -> pa.Table:
    """Per group with offset records: their greatest log offsets, and the number of keys by outcome."""
    chosen = np.flatnonzero((slots["last_value_offset"] != NONE) | (slots["last_tombstone_offset"] != NONE))
    active = _taken(slots, chosen)
    pendings = np.bincount(rows["slot"][rows["kind"] == PENDING_COMMIT], minlength=len(slots))[chosen]
    table = pa.table(
        {
            "group_id": keys.names(chosen)[0],
            "last_value_offset": active["last_value_offset"],
            "last_tombstone_offset": active["last_tombstone_offset"],
            "upserts": (active["final"] == UPSERT).astype(np.int64),
            "pendings": pendings.astype(np.int64),
            "removals": (active["final"] == REMOVAL).astype(np.int64),
        }
    )
    per_group = table.group_by("group_id", use_threads=False).aggregate(
        [
            ("last_value_offset", "max"),
            ("last_tombstone_offset", "max"),
            ("upserts", "sum"),
            ("pendings", "sum"),
            ("removals", "sum"),
        ]
    )
    return per_group.rename_columns(schemas.GROUP_ACTIVITY.names).cast(schemas.GROUP_ACTIVITY)


def topic_ids_table(keys: KeyDictionary, learned: Structs) -> pa.Table:
    """Distinct pairs of topic id and topic from the values of the keys."""
    _, topics, _ = keys.names(learned["slot"])
    ids = topic_id_strings(learned["high"], learned["low"])
    return distinct(_table(schemas.TOPIC_IDS, ids, topics))


def distinct(table: pa.Table) -> pa.Table:
    """The table without repeated rows."""
    return table.group_by(table.column_names, use_threads=False).aggregate([]).select(table.column_names)
