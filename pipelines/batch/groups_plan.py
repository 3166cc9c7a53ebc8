"""Plan of the writes of `group_records`, `groups`, `members`, and of the histories of groups.

The fold of the core starts from the stored records of the affected groups, applies the records that the tasks returned, and gives
the new state of these groups.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec import Record, decode
from coordinator_core.codec.uuids import uuid_text
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.membership_rows import OWNERSHIP_COLUMNS, ownership_values
from coordinator_core.state.group_fold import AppliedRecord, GroupChange, GroupFold
from coordinator_core.state.history import UNREADABLE_ASSIGNMENT
from coordinator_core.state.membership import MembershipChange, OwnershipChange
from coordinator_core.state.registry import group_id_of
from coordinator_core.state.views import GroupView, MemberView, TopicAssignment
from pipelines.batch.context import BatchContext
from pipelines.batch.offsets_plan import ELSEWHERE
from pipelines.batch.topic_names import TopicNames
from pipelines.runtime.time_columns import ms_of
from pipelines.runtime.timestamps import to_ms, to_time
from pipelines.source.changes import ChangeKind, of_kind
from pipelines.tables import definitions
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, source_schema

#: Number of records of a batch that are objects at the same time; bounds the memory of the driver.
_RECORDS_PER_STEP = 1024


@dataclass
class GroupsPlan:
    """Rows per table that result from the group records of a batch."""

    group_records: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    members: list[dict[str, Any]] = field(default_factory=list)
    group_history: list[dict[str, Any]] = field(default_factory=list)
    membership_history: list[dict[str, Any]] = field(default_factory=list)
    ownership_history: list[dict[str, Any]] = field(default_factory=list)
    quarantine: list[dict[str, Any]] = field(default_factory=list)
    #: Id of a removed group → the last record of the batch that removed it.
    removed: dict[str, LogRecord] = field(default_factory=dict)
    #: Ids of groups with a group record after the batch.
    present: set[str] = field(default_factory=set)


def log_records(table: pa.Table) -> Iterator[LogRecord]:
    """Yield the records of change rows or of `group_records` in log order, with few objects at a time."""
    columns = table.select(["log_partition", "log_offset", "record_timestamp", "key", "value"])
    columns = columns.set_column(2, "record_timestamp", ms_of(columns["record_timestamp"])).combine_chunks()
    order = pc.sort_indices(columns, [("log_partition", "ascending"), ("log_offset", "ascending")])
    for first in range(0, len(order), _RECORDS_PER_STEP):
        some = columns.take(order[first : first + _RECORDS_PER_STEP])
        yield from map(LogRecord, *(column.to_pylist() for column in some.columns))


def plan_groups(changed: pa.Table, topics: TopicNames, context: BatchContext) -> GroupsPlan:
    """Fold the group records of the change rows into the groups of the previous batch.

    `reported_changes` adds the changes that tasks have reported. Topic names in the records are added to `topics`. Groups that
    waited for a topic name are written again when the batch brings the name, even without records of these groups.
    """
    plan = GroupsPlan()
    reported = of_kind(changed, ChangeKind.STATE_ONLY)
    records = pa.concat_tables([of_kind(changed, ChangeKind.RECORD), reported])
    state_only = set(zip(*(reported[name].to_pylist() for name in ("log_partition", "log_offset")), strict=True))
    fold, seeded = _seed(_groups_of(records["key"]), context)
    newest: dict[str, LogRecord] = {}
    for record in log_records(records):
        value = _decode(record, plan, context)
        if value is None:
            continue
        group = group_id_of(value)
        newest[group] = record
        if (record.partition, record.offset) in state_only:
            fold.apply_state_only(record, value, topics.known)
        else:
            _report(fold.apply(record, value, topics.known), record, plan, context)
        if fold.registry.removed_at.get(group) == record.offset:
            plan.removed[group] = record
    affected = sorted(newest)
    topics.add({uuid: (name, "partition_metadata") for uuid, name in fold.registry.topic_names().items()})
    for group in affected:
        _write_records(group, fold, seeded.get(group, {}), newest[group], plan, context)
        _write_state(group, fold, topics.known, newest[group], plan, context)
    _delete_members(affected, newest, plan, context)
    _name_waiting(affected, topics, plan, context)
    return plan


def _report(applied: AppliedRecord, record: LogRecord, plan: GroupsPlan, context: BatchContext) -> None:
    """Add the changes made by a record to the histories."""
    plan.group_history.extend(history_row(change, record, context) for change in applied.changes)
    for _, change, _ in applied.changes:
        if change.change == UNREADABLE_ASSIGNMENT:
            row = {"key": record.key, "value": record.value, "reason": unreadable_reason(change.member_id, change.detail)}
            plan.quarantine.append({**row, **position(record, context)})
    membership, ownership = applied.membership
    if membership is not None:
        plan.membership_history.append(membership_row(membership, record, context))
    plan.ownership_history.extend(ownership_row(change, record, context) for change in ownership)


def _groups_of(keys: pa.ChunkedArray) -> list[str]:
    """Ids of the groups in the keys."""
    named = (decode(key, None) for key in keys.unique().to_pylist())
    return sorted({group_id_of(record) for record in named if isinstance(record, Record)})


def _decode(record: LogRecord, plan: GroupsPlan, context: BatchContext) -> Record | None:
    outcome = decode(record.key, record.value)
    if isinstance(outcome, Record):
        if context.era.reads(outcome.record_type, outcome.value_version):
            return outcome
        version = "" if outcome.value is None else f" with value version {outcome.value_version}"
        problem = f"record type {outcome.record_type}{version} is unknown to era {context.era.name}"
    else:
        problem = outcome.reason
    plan.quarantine.append({"key": record.key, "value": record.value, "reason": problem, **position(record, context)})
    return None


def _seed(affected: Iterable[str], context: BatchContext) -> tuple[GroupFold, dict[str, dict[bytes, int]]]:
    fold = GroupFold(context.era)
    columns = ["log_partition", "log_offset", "record_timestamp", "group_id", "key", "value"]
    previous = context.previous.rows("group_records", columns, group_id=affected)
    for record in log_records(previous):
        value = decode(record.key, record.value)
        if isinstance(value, Record):
            fold.registry.apply(record, value)
    seeded: dict[str, dict[bytes, int]] = {}
    for row in previous.select(["group_id", "key", "log_offset"]).to_pylist():
        seeded.setdefault(row["group_id"], {})[row["key"]] = row["log_offset"]
    return fold, seeded


def _write_records(
    group: str,
    fold: GroupFold,
    seeded: Mapping[bytes, int],
    newest: LogRecord,
    plan: GroupsPlan,
    context: BatchContext,
) -> None:
    found = fold.registry.groups.get(group)
    records = found.records if found else {}
    for key, record in records.items():
        if seeded.get(key) != record.offset:
            row = {"group_id": group, "key": key, "value": record.value, "record_type": int.from_bytes(key[:2], "big")}
            plan.group_records.append(upsert({**row, **position(record, context)}))
    gone = [key for key in seeded if key not in records]
    plan.group_records.extend(delete({"group_id": group, "key": key}, newest.offset) for key in gone)


def _write_state(
    group: str,
    fold: GroupFold,
    names: Mapping[UUID, str],
    newest: LogRecord,
    plan: GroupsPlan,
    context: BatchContext,
) -> None:
    view = fold.view(group, names)
    if view is None:
        return
    plan.present.add(group)
    plan.groups.append(upsert({**group_row(view), **position(newest, context)}))
    plan.members.extend(upsert({**member_row(group, m), **position(newest, context)}) for m in view.members)


def _name_waiting(affected: list[str], topics: TopicNames, plan: GroupsPlan, context: BatchContext) -> None:
    waiting = set(context.previous.groups_waiting_for(map(uuid_text, topics.new))) - set(affected)
    if not waiting:
        return
    fold, _ = _seed(waiting, context)
    columns = ["group_id", "log_partition", "log_offset", "record_timestamp"]
    for row in context.previous.rows("groups", columns, group_id=waiting).to_pylist():
        timestamp = to_ms(row["record_timestamp"])
        newest = LogRecord(row["log_partition"], row["log_offset"], timestamp, None, None)
        _write_state(row["group_id"], fold, topics.known, newest, plan, context)


def _delete_members(affected: Iterable[str], newest: Mapping[str, LogRecord], plan: GroupsPlan, context: BatchContext) -> None:
    remaining = {(row["group_id"], row["member_id"]) for row in plan.members}
    for row in context.previous.rows("members", ["group_id", "member_id"], group_id=affected).to_pylist():
        if (row["group_id"], row["member_id"]) not in remaining:
            plan.members.append(delete(row, newest[row["group_id"]].offset))


def group_row(view: GroupView) -> dict[str, Any]:
    """Build the row of `groups` for a group."""
    return {
        "group_id": view.group_id,
        "group_type": view.group_type,
        "state": view.state,
        "generation": view.generation_number,
        "protocol_type": view.protocol_type,
        "protocol": view.protocol,
        "leader": view.leader,
        "state_timestamp": to_time(view.state_timestamp),
        "member_count": len(view.members),
        "subscribed_topics": None if view.subscribed_topics is None else sorted(view.subscribed_topics),
    }


def member_row(group: str, member: MemberView) -> dict[str, Any]:
    """Build the row of `members` for a member."""
    return {
        "group_id": group,
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack_id": member.rack_id,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "subscribed_topics": None if member.subscribed_topics is None else list(member.subscribed_topics),
        "subscribed_regex": member.subscribed_regex,
        "assigned": None if member.assignment_problem is not None else _assignments(member.assigned),
        "target": None if member.target is None else _assignments(member.target),
        "owned": _assignments(member.owned),
        "member_epoch": member.member_epoch,
        "member_state": member.member_state,
        "user_data": member.user_data,
        "assignment_problem": member.assignment_problem,
        "standby_tasks": member.standby_tasks,
    }


def _assignments(parts: Iterable[TopicAssignment]) -> list[dict[str, Any]]:
    return [{"topic": p.topic, "topic_id": p.topic_id and uuid_text(p.topic_id), "partitions": list(p.partitions)} for p in parts]


def history_row(reported: GroupChange, record: LogRecord, context: BatchContext) -> dict[str, Any]:
    group_id, change, view = reported
    return {
        "group_id": group_id,
        "change": change.change,
        "member_id": change.member_id,
        "group_type": view.group_type if view else None,
        "state": view.state if view else None,
        "generation": view.generation if view else None,
        "detail": change.detail,
        **position(record, context),
    }


def membership_row(change: MembershipChange, record: LogRecord, context: BatchContext) -> dict[str, Any]:
    return {**change._asdict(), "state_timestamp": to_time(change.state_timestamp), **position(record, context)}


def ownership_row(change: OwnershipChange, record: LogRecord, context: BatchContext) -> dict[str, Any]:
    return {**dict(zip(OWNERSHIP_COLUMNS, ownership_values(change), strict=True)), **position(record, context)}


#: History → kind of the change rows with its rows from the tasks.
_REPORTED = {
    "group_history": ChangeKind.GROUP_CHANGE,
    "membership_history": ChangeKind.MEMBERSHIP,
    "ownership_history": ChangeKind.OWNERSHIP,
}


def reported_changes(changed: pa.Table, context: BatchContext) -> dict[str, pa.Table]:
    """Rows of the histories of groups that tasks have reported."""
    found = {}
    for name, kind in _REPORTED.items():
        changes = of_kind(changed, kind)
        schema = definitions.table(name).schema
        rows = changes.append_column("batch_id", pa.repeat(pa.scalar(context.batch_id), changes.num_rows))
        found[name] = rows.select(schema.names).cast(schema)
    return found


def unreadable_reason(member_id: str | None, problem: str | None) -> str:
    """The reason in `quarantine` of a group record with an assignment that cannot be read; the rest of the record counts."""
    return f"assignment of member {member_id}: {problem}"


def reported_unreadable(changed: pa.Table, context: BatchContext) -> pa.Table:
    """Rows of `quarantine` for the assignments that tasks could not read."""
    changes = of_kind(changed, ChangeKind.GROUP_CHANGE)
    found = changes.filter(pc.equal(changes["change"], UNREADABLE_ASSIGNMENT))
    columns = ["key", "value", "member_id", "detail", "log_partition", "log_offset", "record_timestamp"]
    rows = [
        {**row, "reason": unreadable_reason(row["member_id"], row["detail"]), "batch_id": context.batch_id}
        for row in found.select(columns).to_pylist()
    ]
    schema = definitions.table("quarantine").schema
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)


def elsewhere_records(changes: pa.Table, context: BatchContext) -> pa.Table:
    """Rows of `group_history` for group records in log partitions that do not speak for their groups."""
    records = pa.concat_tables([of_kind(changes, kind) for kind in (ChangeKind.RECORD, ChangeKind.STATE_ONLY)])
    types = [int.from_bytes(key[:2], "big") for key in records["key"].to_pylist()]
    kinds = ["tombstone" if value is None else "record" for value in records["value"].to_pylist()]
    details = [f"{kind} of type {number}, which decides nothing" for kind, number in zip(kinds, types, strict=True)]
    given = {
        **{name: records[name] for name in ("group_id", "log_partition", "log_offset", "record_timestamp")},
        "change": pa.repeat(pa.scalar(ELSEWHERE), records.num_rows),
        "detail": pa.array(details, pa.string()),
        "batch_id": pa.repeat(pa.scalar(context.batch_id), records.num_rows),
    }
    schema = definitions.table("group_history").schema
    columns = [given.get(field.name, pa.nulls(records.num_rows, field.type)) for field in schema]
    return pa.table(columns, names=schema.names).cast(schema)


def position(record: LogRecord, context: BatchContext) -> dict[str, Any]:
    """Columns for the record and the batch of a row."""
    return {
        "log_partition": record.partition,
        "log_offset": record.offset,
        "record_timestamp": to_time(record.timestamp),
        "batch_id": context.batch_id,
    }


def upsert(row: dict[str, Any]) -> dict[str, Any]:
    """Build the source row of a merge that writes `row`."""
    return {**row, EFFECTIVE_OFFSET: row["log_offset"], DELETED: False}


def delete(key: dict[str, Any], log_offset: int) -> dict[str, Any]:
    """Build the source row of a merge that removes the row of that key, because of the record at `log_offset`."""
    return {**key, EFFECTIVE_OFFSET: log_offset, DELETED: True}


def as_table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Convert rows to the schema of a write of table `name`."""
    schema = source_schema(name) if name in definitions.KEYS else definitions.table(name).schema
    return pa.Table.from_pylist(rows, schema)
