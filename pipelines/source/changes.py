"""Change rows: the result of a task for the ranges of the log that it read.

All kinds share one flat schema; a kind fills only its own columns. Change rows pass through the JVM packed: many rows of a kind
as one binary value, which Spark copies as a whole (docs/adr/0013).
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.runtime.timestamps import TIMESTAMP


class ChangeKind(StrEnum):
    """ChangeKind of a change row."""

    #: A group, topic and partition whose final operation in the range is a commit.
    COMMIT = "commit"
    #: A group, topic and partition whose final operation in the range is a removal.
    TOMBSTONE = "tombstone"
    #: A transactional commit whose transaction is open at the end of the range.
    PENDING = "pending"
    #: A removal of commits pending before the range: of one producer, or of all if producer_id is null.
    PENDING_TOMBSTONE = "pending_tombstone"
    #: The first marker of a producer in the range; it ends the commits pending before the range. `detail`: COMMIT or ABORT.
    MARKER = "marker"
    #: A group with offset commits or removals in the range.
    GROUP_ACTIVITY = "group_activity"
    #: A record as logged, whose changes are not reported yet: a group record, or undecodable bytes.
    RECORD = "record"
    #: A state-only record: a group record as logged, whose changes are already reported.
    STATE_ONLY = "state_only"
    #: A change made by a group record: a row of `group_history`.
    GROUP_CHANGE = "group_change"
    #: A change of the members of a group: a row of `membership_history`.
    MEMBERSHIP = "membership"
    #: A change of the partitions of a member: a row of `ownership_history`.
    OWNERSHIP = "ownership"
    #: Name of a topic id. `detail`: where it was learned; null for a commit of the log.
    TOPIC_ID = "topic_id"
    #: A damaged part of the log. `detail` is the reason.
    DAMAGE = "damage"
    #: The range itself: its first offset, that of the next range, the time of its last record, the end of the log, and the number
    #: of partitions of the topic.
    RANGE = "range"


_PARTITIONS = pa.list_(pa.field("element", pa.int32()))

SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("log_partition", pa.int32()),
        ("log_offset", pa.int64()),
        ("record_timestamp", TIMESTAMP),
        ("producer_id", pa.int64()),
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("metadata", pa.string()),
        ("commit_timestamp", TIMESTAMP),
        ("expire_timestamp", TIMESTAMP),
        ("topic_id", pa.string()),
        ("commits", pa.int64()),
        ("min_offset", pa.int64()),
        ("first_offset", pa.int64()),
        ("rewound", pa.bool_()),
        ("last_value_offset", pa.int64()),
        ("last_tombstone_offset", pa.int64()),
        ("upserts", pa.int64()),
        ("pendings", pa.int64()),
        ("removals", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("change", pa.string()),
        ("member_id", pa.string()),
        ("group_type", pa.string()),
        ("state", pa.string()),
        ("generation", pa.int32()),
        ("detail", pa.string()),
        ("previous_state", pa.string()),
        ("previous_generation", pa.int32()),
        ("protocol", pa.string()),
        ("state_timestamp", TIMESTAMP),
        ("member_count", pa.int32()),
        ("previous_member_count", pa.int32()),
        ("members_with_partitions", pa.int32()),
        ("members_joined", pa.int32()),
        ("members_left", pa.int32()),
        ("members_replaced", pa.int32()),
        ("subscriptions_changed", pa.int32()),
        ("topics_changed", pa.bool_()),
        ("partitions_gained", pa.int32()),
        ("partitions_lost", pa.int32()),
        ("partitions_transferred", pa.int32()),
        ("members_unreadable", pa.int32()),
        ("group_instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("gained", _PARTITIONS),
        ("lost", _PARTITIONS),
        ("start_offset", pa.int64()),
        ("next_offset", pa.int64()),
        ("records_read", pa.int64()),
        ("log_end", pa.int64()),
        ("asked_at", TIMESTAMP),
        ("log_partitions", pa.int32()),
    ]
)

_SPARK_TYPES = {
    pa.string(): "STRING",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.binary(): "BINARY",
    TIMESTAMP: "TIMESTAMP",
    _PARTITIONS: "ARRAY<INT>",
}


def spark_type(arrow_type: pa.DataType) -> str:
    """The type of Spark's DDL for a type of change rows."""
    return _SPARK_TYPES[arrow_type]


#: The same schema as Spark DDL.
DDL = ", ".join(f"{field.name} {spark_type(field.type)}" for field in SCHEMA)

#: Packed change rows: rows of one kind in Arrow's IPC stream format, without empty columns.
PACKED_SCHEMA = pa.schema([("kind", pa.string()), ("rows", pa.binary())])
PACKED_DDL = "kind STRING, rows BINARY"

#: Approximate bytes of a packed row: Spark puts up to 10,000 rows into one array with 32-bit offsets.
_PACKED_BYTES = 128 * 1024
_PACKED_PER_BATCH = 64


def rows(kind: ChangeKind, log_partition: int, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """Build change rows of one kind; missing columns are null."""
    length = len(next(iter(columns.values())))
    given = {
        "kind": pa.repeat(pa.scalar(str(kind)), length),
        "log_partition": pa.repeat(pa.scalar(log_partition, pa.int32()), length),
        **columns,
    }
    return pa.RecordBatch.from_arrays(
        [given[field.name].cast(field.type) if field.name in given else pa.nulls(length, field.type) for field in SCHEMA],
        schema=SCHEMA,
    )


def of_kind(changes: pa.Table, kind: ChangeKind) -> pa.Table:
    """The rows of one kind."""
    return changes.filter(pc.equal(changes["kind"], str(kind)))


def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack change rows; each batch has one kind."""
    for batch in batches:
        filled = [field.name for field, column in zip(SCHEMA, batch.columns, strict=True) if column.null_count < batch.num_rows]
        kept = batch.select(filled)
        step = max(1, _PACKED_BYTES * batch.num_rows // max(1, kept.nbytes))
        for first in range(0, batch.num_rows, _PACKED_PER_BATCH * step):
            streams = _streams(kept.slice(first, _PACKED_PER_BATCH * step), step)
            yield pa.RecordBatch.from_arrays([pa.repeat(batch["kind"][0], len(streams)), streams], schema=PACKED_SCHEMA)


def _streams(batch: pa.RecordBatch, step: int) -> pa.Array:
    """The batch as one binary value per `step` rows."""
    sink = pa.BufferOutputStream()
    ends = [0]
    for first in range(0, batch.num_rows, step):
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch.slice(first, step))
        ends.append(sink.tell())
    offsets = pa.array(ends, pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, offsets, sink.getvalue()])


def unpacked(packed_rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Unpack change rows without copying."""
    for batch in packed_rows:
        for stream in batch["rows"]:
            with pa.ipc.open_stream(stream.as_buffer()) as reader:
                yield from (_widened(some) for some in reader)


def table_of(packed_rows: pa.Table) -> pa.Table:
    """Unpack change rows into a table."""
    return pa.Table.from_batches(unpacked(packed_rows.to_batches()), SCHEMA)


def _widened(batch: pa.RecordBatch) -> pa.RecordBatch:
    empty = {field.type: pa.nulls(batch.num_rows, field.type) for field in SCHEMA}
    filled = dict(zip(batch.schema.names, batch.columns, strict=True))
    return pa.RecordBatch.from_arrays([filled.get(field.name, empty[field.type]) for field in SCHEMA], schema=SCHEMA)
