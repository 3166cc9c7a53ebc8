"""Simple groups: groups with offset commits but without a group record.

The Java coordinator creates the group at a commit for an unknown group and keeps it until a group tombstone. The Scala
coordinator creates it during a load for any remaining offsets. Kafka 0.9 has no such groups.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from coordinator_core.log.entries import LogRecord
from pipelines.batch.context import BatchContext
from pipelines.batch.groups_plan import GroupsPlan, delete, upsert
from pipelines.batch.offsets_plan import PendingPlan, remaining_keys
from pipelines.source.changes import ChangeKind, of_kind
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET


def plan_simple_groups(
    changed: pa.Table, tombstones: pa.Table, pending: PendingPlan, plan: GroupsPlan, context: BatchContext
) -> None:
    """Add the simple groups that the batch creates and removes to `plan`."""
    activity = {row["group_id"]: row for row in of_kind(changed, ChangeKind.GROUP_ACTIVITY).to_pylist()}
    # a marker touches no group, but may end the last pending commit of a simple group
    ended = _ended(pending)
    without_record = activity.keys() | ended.keys()
    recorded = set(context.previous.rows("group_records", ["group_id"], group_id=without_record)["group_id"].to_pylist())
    candidates = sorted(((without_record - recorded) | set(plan.removed)) - plan.present)
    existing = set(context.previous.rows("groups", ["group_id"], group_id=candidates)["group_id"].to_pylist())
    alive = _alive(candidates, activity, existing, tombstones, pending, plan.removed, context)
    for group in candidates:
        if group in alive and (group not in existing or group in plan.removed):
            plan.groups.append(_simple_group(group, activity.get(group), plan.removed.get(group), context))
        elif group not in alive and group in existing:
            at = _newest_offset(activity.get(group), plan.removed.get(group), ended.get(group))
            plan.groups.append(delete({"group_id": group}, at))


def _ended(pending: PendingPlan) -> dict[str, int]:
    """Ids of groups with pending commits that end in this batch → log offset at which the last of them ends."""
    gone = pending.writes.filter(pending.writes[DELETED])
    found: dict[str, int] = {}
    for group, offset in zip(gone["group_id"].to_pylist(), gone[EFFECTIVE_OFFSET].to_pylist(), strict=True):
        found[group] = max(offset, found.get(group, -1))
    return found


def _alive(
    candidates: list[str],
    activity: Mapping[str, dict[str, Any]],
    existing: set[str],
    tombstones: pa.Table,
    pending: PendingPlan,
    removed: Mapping[str, LogRecord],
    context: BatchContext,
) -> set[str]:
    era = context.era
    if not era.simple_groups:
        return set()
    if era.hides_offsets_without_group:
        return {
            group
            for group in candidates
            if (group in existing and group not in removed)
            or activity.get(group, {}).get("last_value_offset", -1) > (removed[group].offset if group in removed else -1)
        }
    with_new = {group for group, row in activity.items() if row["upserts"] or row["pendings"]}
    with_new.update(pending.resolved["group_id"].to_pylist())
    unsure = [group for group in candidates if group not in with_new]
    return with_new | remaining_keys(unsure, tombstones, pending.writes, context)


def _simple_group(
    group: str, activity: dict[str, Any] | None, removed: LogRecord | None, context: BatchContext
) -> dict[str, Any]:
    if activity:
        partition = activity["log_partition"]
    else:
        assert removed is not None, "a simple group appears with a commit and disappears with a record"
        partition = removed.partition
    return upsert(
        {
            "group_id": group,
            "group_type": "simple",
            "state": "Empty",
            "generation": 0,
            "member_count": 0,
            "log_partition": partition,
            "log_offset": _newest_offset(activity, removed),
            "batch_id": context.batch_id,
        }
    )


def _newest_offset(activity: dict[str, Any] | None, removed: LogRecord | None, ended: int | None = None) -> int:
    offsets: list[int] = [each for each in (removed.offset if removed else None, ended) if each is not None]
    offsets += (activity["last_value_offset"], activity["last_tombstone_offset"]) if activity else ()
    return max(offsets)
