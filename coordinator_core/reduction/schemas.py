"""Schemas of the tables of a reduction."""

import pyarrow as pa

_Fields = dict[str, pa.DataType]

_KEY: _Fields = {"group_id": pa.string(), "topic": pa.string(), "partition": pa.int32()}
_POSITION: _Fields = {"log_offset": pa.int64(), "record_timestamp": pa.int64()}
_PRODUCER: _Fields = {"producer_id": pa.int64()}
_COMMIT: _Fields = {
    "committed_offset": pa.int64(),
    "leader_epoch": pa.int32(),
    "metadata": pa.string(),
    "commit_timestamp": pa.int64(),
    "expire_timestamp": pa.int64(),
    "topic_id": pa.string(),
}
_HISTORY: _Fields = {"commits": pa.int64(), "min_offset": pa.int64(), "rewound": pa.bool_(), "first_offset": pa.int64()}

COMMITS = pa.schema(_KEY | _COMMIT | _PRODUCER | _POSITION | _HISTORY)
TOMBSTONES = pa.schema(_KEY | _POSITION | _HISTORY)
PENDING = pa.schema(_KEY | _COMMIT | _PRODUCER | _POSITION)
PENDING_TOMBSTONES = pa.schema(_PRODUCER | _KEY | {"log_offset": pa.int64()})
MARKERS = pa.schema(_PRODUCER | _POSITION | {"type": pa.string()})

_GROUP_ACTIVITY: _Fields = {
    "group_id": pa.string(),
    "last_value_offset": pa.int64(),
    "last_tombstone_offset": pa.int64(),
    "upserts": pa.int64(),
    "pendings": pa.int64(),
    "removals": pa.int64(),
}
GROUP_ACTIVITY = pa.schema(_GROUP_ACTIVITY)

_OTHERS: _Fields = {
    **_POSITION,
    **_PRODUCER,
    "batch_offset": pa.int64(),
    "is_transactional": pa.bool_(),
    "is_control": pa.bool_(),
    "key": pa.binary(),
    "value": pa.binary(),
}
OTHERS = pa.schema(_OTHERS)
TOPIC_IDS = pa.schema({"topic_id": pa.string(), "topic": pa.string()})

_GROUP_RECORDS: _Fields = {**_POSITION, **_PRODUCER, "key": pa.binary(), "value": pa.binary(), "state_only": pa.bool_()}
GROUP_RECORDS = pa.schema(_GROUP_RECORDS)

_GROUP_CHANGES: _Fields = {
    **_POSITION,
    "group_id": pa.string(),
    "change": pa.string(),
    "member_id": pa.string(),
    "group_type": pa.string(),
    "state": pa.string(),
    "generation": pa.int32(),
    "detail": pa.string(),
    # the record of an assignment that cannot be read, for the quarantine
    "key": pa.binary(),
    "value": pa.binary(),
}
GROUP_CHANGES = pa.schema(_GROUP_CHANGES)

_MEMBERSHIP: _Fields = {
    **_POSITION,
    "group_id": pa.string(),
    "group_type": pa.string(),
    "state": pa.string(),
    "previous_state": pa.string(),
    "generation": pa.int32(),
    "previous_generation": pa.int32(),
    "protocol": pa.string(),
    "state_timestamp": pa.int64(),
    "member_count": pa.int32(),
    "previous_member_count": pa.int32(),
    "members_with_partitions": pa.int32(),
    "members_joined": pa.int32(),
    "members_left": pa.int32(),
    "members_replaced": pa.int32(),
    "subscriptions_changed": pa.int32(),
    "topics_changed": pa.bool_(),
    "partitions_gained": pa.int32(),
    "partitions_lost": pa.int32(),
    "partitions_transferred": pa.int32(),
    "members_unreadable": pa.int32(),
}
MEMBERSHIP = pa.schema(_MEMBERSHIP)

_OWNERSHIP: _Fields = {
    **_POSITION,
    "group_id": pa.string(),
    "generation": pa.int32(),
    "topic": pa.string(),
    "topic_id": pa.string(),
    "member_id": pa.string(),
    "group_instance_id": pa.string(),
    "client_id": pa.string(),
    "client_host": pa.string(),
    "gained": pa.list_(pa.field("element", pa.int32())),
    "lost": pa.list_(pa.field("element", pa.int32())),
}
OWNERSHIP = pa.schema(_OWNERSHIP)
