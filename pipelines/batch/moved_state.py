"""Removal of state whose log partition does not speak for its group any more: a batch of its own, before the records that follow.

A coordinator loads a group from one log partition. Once another one speaks for the group, brokers answer as if what the old
partition has did not exist, and so do the tables. The histories have the removals as `moved`; members leave.
"""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.log.partition_count import KeyPlace
from coordinator_core.reduction.membership_rows import MEMBERSHIP_COLUMNS
from coordinator_core.state.membership import DEAD
from pipelines.batch.context import BatchContext
from pipelines.batch.groups_plan import as_table
from pipelines.batch.placement import STATE_TABLES, at_places
from pipelines.tables import definitions
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite, source_schema

#: The kind of change in the histories.
MOVED = "moved"

#: Columns of `membership_history` that are numbers of members and partitions.
_NUMBERS = tuple(name for name in MEMBERSHIP_COLUMNS if name.startswith(("member", "previous_member", "subscr", "partitions")))
_Row = dict[str, Any]


def moved_group_writes(moved: Collection[KeyPlace], at: datetime, context: BatchContext) -> tuple[TableWrite, ...]:
    """The writes that remove the state at the places `moved` of groups; `at` is the time at which this was noticed."""
    gone: dict[str, pa.Table] = {}
    writes: list[TableWrite] = []
    for table in STATE_TABLES:
        gone[table], removals = _removals(table, "group_id", moved, context)
        writes += removals
    groups, members = gone["groups"].to_pylist(), gone["members"].to_pylist()
    histories = {
        "group_history": [*_group_changes(groups, members, at, context)],
        "membership_history": [*_ends(groups, members, at, context)],
        "ownership_history": [*_lost(groups, members, at, context)],
    }
    writes.append(TableWrite("offset_history", _offset_changes(gone["offsets"], at, context)))
    return (*writes, *(TableWrite(name, as_table(name, rows)) for name, rows in histories.items()))


def moved_transaction_writes(moved: Collection[KeyPlace], at: datetime, context: BatchContext) -> tuple[TableWrite, ...]:
    """The writes that remove the state at the places `moved` of transactional ids."""
    gone, writes = _removals("transactions", "transactional_id", moved, context)
    rows = [
        {
            **dict.fromkeys(("records", "initializations", "commits", "aborts"), 0),
            **{name: row[name] for name in ("transactional_id", "log_partition", "log_offset")},
            **{f"previous_{name}": row[name] for name in ("state", "producer_id", "producer_epoch")},
            "state": DEAD,
            "record_timestamp": at,
            "batch_id": context.batch_id,
        }
        for row in gone.to_pylist()
    ]
    return (*writes, TableWrite("transaction_history", as_table("transaction_history", rows)))


def _removals(table: str, name: str, moved: Collection[KeyPlace], context: BatchContext) -> tuple[pa.Table, list[TableWrite]]:
    """The rows of a table at the places, and the writes that remove them.

    Tables of earlier versions may have two rows for a key, of which one is not moved. A merge removes both by their key, so a
    second write adds that one again.
    """
    schema = definitions.table(table).schema
    keys = list(definitions.KEYS[table])
    rows = context.previous.rows(table, schema.names, **{name: {place.key for place in moved}})
    is_moved = at_places(rows[name], rows["log_partition"], moved)
    gone, kept = rows.filter(is_moved), rows.filter(pc.invert(is_moved))
    if not gone.num_rows:
        return gone, []
    again = kept.filter(_with_key_of(kept, gone, keys))
    newest = pa.concat_tables([gone, again]).select([*keys, "log_offset"]).group_by(keys).aggregate([("log_offset", "max")])
    writes = [TableWrite(table, _source(table, newest.select(keys), newest["log_offset_max"], deleted=True))]
    if again.num_rows:
        writes.append(TableWrite(table, _source(table, again, again["log_offset"], deleted=False)))
        gone = gone.filter(pc.invert(_with_key_of(gone, again, keys)))
    return gone, writes


def _with_key_of(rows: pa.Table, others: pa.Table, keys: list[str]) -> pa.Array:
    """For each row, whether `others` have its key."""
    known = set(zip(*(others[name].to_pylist() for name in keys), strict=True))
    return pa.array([key in known for key in zip(*(rows[name].to_pylist() for name in keys), strict=True)], pa.bool_())


def _source(table: str, rows: pa.Table, effective: pa.ChunkedArray, *, deleted: bool) -> pa.Table:
    """Source rows of a merge; missing columns are null."""
    schema = source_schema(table)
    given = {name: rows[name] for name in rows.schema.names} | {
        EFFECTIVE_OFFSET: effective,
        DELETED: pa.repeat(pa.scalar(deleted), rows.num_rows),
    }
    columns = [given.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in schema]
    return pa.table(columns, names=schema.names).cast(schema)


def _offset_changes(offsets: pa.Table, at: datetime, context: BatchContext) -> pa.Table:
    """Rows of `offset_history`."""
    schema = definitions.table("offset_history").schema
    count = offsets.num_rows
    given = {name: offsets[name] for name in offsets.schema.names} | {
        "change": pa.repeat(pa.scalar(MOVED), count),
        "previous_offset": offsets["committed_offset"],
        "committed_offset": pa.nulls(count, pa.int64()),
        "commits": pa.repeat(pa.scalar(0, pa.int64()), count),
        "commit_timestamp": pa.nulls(count, schema.field("commit_timestamp").type),
        "record_timestamp": pa.repeat(pa.scalar(at, schema.field("record_timestamp").type), count),
        "batch_id": pa.repeat(pa.scalar(context.batch_id, pa.int64()), count),
    }
    columns = [given.get(field.name, pa.nulls(count, field.type)) for field in schema]
    return pa.table(columns, names=schema.names).cast(schema)


def _position(row: _Row, at: datetime, context: BatchContext) -> _Row:
    """The position of the state that moved, at the time at which this was noticed."""
    place = {name: row[name] for name in ("log_partition", "log_offset")}
    return {**place, "record_timestamp": at, "batch_id": context.batch_id}


def _group_changes(groups: list[_Row], members: list[_Row], at: datetime, context: BatchContext) -> Iterator[_Row]:
    of_group = {row["group_id"]: row for row in groups}
    for member in members:
        group = of_group.get(member["group_id"])
        if group is not None:
            yield {
                **{name: group[name] for name in ("group_id", "group_type", "generation")},
                "change": "member_left",
                "member_id": member["member_id"],
                "detail": member["client_id"],
                "state": DEAD,
                **_position(group, at, context),
            }
    for group in groups:
        detail = f"partition {group['log_partition']} of the log does not speak for the group any more"
        yield {
            **{name: group[name] for name in ("group_id", "group_type", "generation")},
            "change": MOVED,
            "detail": detail,
            "state": DEAD,
            **_position(group, at, context),
        }


def _ends(groups: list[_Row], members: list[_Row], at: datetime, context: BatchContext) -> Iterator[_Row]:
    """Rows of `membership_history`; simple groups have none."""
    lost: dict[str, int] = {}
    for member in members:
        owned = sum(len(part["partitions"]) for part in member["assigned"] or ())
        lost[member["group_id"]] = lost.get(member["group_id"], 0) + owned
    for group in groups:
        if group["group_type"] != "simple":
            yield {
                **dict.fromkeys(_NUMBERS, 0),
                **{name: group[name] for name in ("group_id", "group_type", "generation", "protocol")},
                "state": DEAD,
                "previous_state": group["state"],
                "previous_generation": group["generation"],
                "previous_member_count": group["member_count"],
                "members_left": group["member_count"],
                "partitions_lost": lost.get(group["group_id"], 0),
                "topics_changed": False,
                **_position(group, at, context),
            }


def _lost(groups: list[_Row], members: list[_Row], at: datetime, context: BatchContext) -> Iterator[_Row]:
    """Rows of `ownership_history`."""
    of_group = {row["group_id"]: row for row in groups}
    names = ("group_id", "member_id", "group_instance_id", "client_id", "client_host")
    for member in members:
        group = of_group.get(member["group_id"])
        for part in member["assigned"] or () if group else ():
            if group is not None and part["partitions"]:
                yield {
                    **{name: member[name] for name in names},
                    **{name: part[name] for name in ("topic", "topic_id")},
                    "generation": group["generation"],
                    "gained": [],
                    "lost": part["partitions"],
                    **_position(group, at, context),
                }
