"""Rows of `group_status` and `partition_status` at a sample.

Burrow's rules are evaluated in columns. The core's `evaluate` judges the groups in which they found a defect, or one of our rules
may fire. Times in ms.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Int64s
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import NONE, GroupEvidence, PendingCommit, Status, StatusSettings, evaluate, hangs
from pipelines.lag.columns import milliseconds, row_numbers, select
from pipelines.lag.tables.blocking_transactions import pending_offsets
from pipelines.lag.tables.group_events import MEMBERS, GroupNow
from pipelines.lag.tables.offset_changes import ChangesAfter
from pipelines.lag.tables.partition_rules import PartitionRules, SampledPositions
from pipelines.lag.tables.recent_changes import RecentChanges
from pipelines.lag.tables.spare_members import MemberNow, member_now, partitions_of_topics
from pipelines.lag.tables.status_rows import NOTHING_FOUND, finding_columns, status_columns, status_schema
from pipelines.query.engine import Snapshot
from pipelines.query.poll_times import is_polled
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import Batch, is_in, timestamp_literal

#: Rows of findings take many times the memory of their columns.
_ROWS_AT_ONCE = 1_000

GROUPS = "SELECT group_id, group_type, protocol_type, state, member_count, record_timestamp, log_partition FROM groups"
_PENDING = """
SELECT group_id, topic, partition, waits_since, transactional_id, producer_id
FROM ({pending_offsets}) p ORDER BY group_id, topic, partition
"""
_IDLE = f"""
SELECT g.group_id
FROM groups g LEFT JOIN ({MEMBERS}) m ON m.group_id = g.group_id AND m.has_partitions
WHERE g.state = 'Stable'
GROUP BY g.group_id, g.member_count HAVING count(m.member_id) < g.member_count
"""


#: The times that `expiring_offsets` computes with: an offset has an expiry of its own, or is kept for a time after its commit or
#: after its group became empty. The least of them are read in less time than the view, which most samples then need not read.
_LEAST_TIMES = """
SELECT min(expiry) AS expiry, min(since) AS since
FROM (
  SELECT expire_timestamp AS expiry,
         CASE WHEN expire_timestamp IS NULL THEN COALESCE(commit_timestamp, to_timestamp_micros(-1000)) END AS since
  FROM offsets
  UNION ALL SELECT NULL, state_timestamp FROM groups WHERE state = 'Empty'
) t
"""


class GroupStatuses:
    """Statuses of all groups, from sample to sample. For one thread at a time."""

    def __init__(self, settings: StatusSettings) -> None:
        self._settings = settings
        self._changes = RecentChanges(settings)

    def tables(self, snapshot: Snapshot, changes_after: ChangesAfter, sampled: SampledPositions) -> dict[str, pa.Table]:
        """Rows of both tables, without the batch. The commits are those of `snapshot`."""
        groups = select(snapshot, GROUPS)
        self._changes.refresh(snapshot, changes_after, groups, sampled.at_ms)
        rules = PartitionRules(
            sampled, self._settings, expiries(snapshot, sampled.positions, sampled.at_ms + self._settings.expiry_ms)
        )
        pending = pending_commits(snapshot)
        candidates = self._candidates(snapshot, rules, pending, sampled.at_ms)
        present = _groups_now(snapshot, groups, candidates)
        simple = _WithoutDefects(rules)
        evaluated_at = timestamp(sampled.at_ms)

        def rows() -> Iterator[dict[str, Any]]:
            for group in sorted({*present, *rules.names, *pending}):
                now, open_commits = present.get(group, GroupNow(None, {})), tuple(pending.get(group, ()))
                if group in candidates:
                    columns = self._evaluated(group, now, rules, open_commits, sampled.at_ms, snapshot.batch)
                else:
                    columns = simple.columns(group, exists=now.has_record or bool(open_commits))
                yield {**columns, **rules.totals_of(group), "evaluated_at": evaluated_at}

        return {"group_status": _group_table(rows()), "partition_status": rules.partition_table()}

    def _candidates(
        self, snapshot: Snapshot, rules: PartitionRules, pending: dict[str, list[PendingCommit]], now_ms: int
    ) -> set[str]:
        """Groups in which a rule of Burrow fired or one of our rules may fire."""
        settings = self._settings
        hanging = {group for group, commits in pending.items() if any(hangs(each.since_ms, now_ms, settings) for each in commits)}
        return {
            *rules.groups_with_burrow_defects(),
            *rules.groups_with_flags(),
            *rules.groups_with_unconsumed_positions(),
            *self._changes.groups_with_storms(now_ms),
            *self._changes.groups_with_jumps(),
            *hanging,
            *select(snapshot, _IDLE)["group_id"].to_pylist(),
        }

    def _evaluated(
        self, group: str, now: GroupNow, rules: PartitionRules, pending: tuple[PendingCommit, ...], at_ms: int, batch: Batch
    ) -> dict[str, Any]:
        jumps = self._changes.jumps(group, now)
        evidence = GroupEvidence(
            group,
            at_ms,
            self._settings,
            tuple(rules.evidence(group, {jump.partition for jump in jumps})),
            self._changes.membership(group, now),
            self._changes.rebalances(group),
            jumps,
            pending,
            rules.unconsumed(group),
            is_polled(batch),
        )
        return status_columns(evaluate(evidence))


class _WithoutDefects:
    """Groups in which no rule fires: the first partition of such a group decides."""

    def __init__(self, rules: PartitionRules) -> None:
        self._rules = rules
        self._first = rules.first_findings()

    def columns(self, group: str, *, exists: bool) -> dict[str, Any]:
        """The columns about the status, as `evaluate` gives them."""
        deciding = self._first.get(group)
        if deciding is None:
            is_known = exists or self._rules.totals_of(group)["partitions"]
            return {"group_id": group, "status": str(Status.OK if is_known else Status.NOTFOUND), "detail": "", **NOTHING_FOUND}
        return {"group_id": group, **finding_columns(deciding), **NOTHING_FOUND}


def _group_table(rows: Iterator[dict[str, Any]]) -> pa.Table:
    schema = status_schema("group_status")
    parts = []
    while part := list(islice(rows, _ROWS_AT_ONCE)):
        parts.append(pa.RecordBatch.from_pylist(part, schema))
    return pa.Table.from_batches(parts, schema)


def expiries(snapshot: Snapshot, positions: pa.Table, until_ms: int) -> Int64s:
    """Time at which the offset of each position expires, for those that do until `until_ms`; NONE for others."""
    found = np.full(positions.num_rows, NONE)
    if not _may_expire(snapshot, until_ms):
        return found
    until = timestamp_literal(timestamp(until_ms))
    soon = select(snapshot, f"SELECT group_id, topic, partition, expires_at FROM expiring_offsets WHERE expires_at <= {until}")
    row = row_numbers(soon, positions)
    found[row[row >= 0]] = milliseconds(soon["expires_at"])[row >= 0]
    return found


def _may_expire(snapshot: Snapshot, until_ms: int) -> bool:
    """False if the least times show that no offset expires until then."""
    times = select(snapshot, _LEAST_TIMES)
    (expiry_ms,), (since_ms,) = (milliseconds(times[name]).tolist() for name in ("expiry", "since"))
    is_kept = since_ms == NONE or since_ms + snapshot.batch.retention_ms > until_ms
    return not is_kept or NONE < expiry_ms <= until_ms


def pending_commits(snapshot: Snapshot) -> dict[str, list[PendingCommit]]:
    """Commits in open transactions, by group."""
    found: dict[str, list[PendingCommit]] = {}
    for row in select(snapshot, _PENDING.format(pending_offsets=pending_offsets(snapshot.batch))).to_pylist():
        at, partition = max(0, to_ms(row["waits_since"])), TopicPartition(row["topic"], row["partition"])
        commit = PendingCommit(at, partition, transactional_id=row["transactional_id"], producer_id=row["producer_id"])
        found.setdefault(row["group_id"], []).append(commit)
    return found


def members_of(snapshot: Snapshot, groups: set[str]) -> dict[str, dict[str, MemberNow]]:
    """The members of these groups, and possibly of others, by member id."""
    found: dict[str, dict[str, MemberNow]] = {}
    if groups:
        rows = select(snapshot, f"SELECT * FROM ({MEMBERS}) m WHERE {is_in('group_id', groups)}")
        for row in rows.to_pylist():
            found.setdefault(row["group_id"], {})[row["member_id"]] = member_now(row, row["has_partitions"])
    return found


def _groups_now(snapshot: Snapshot, groups: pa.Table, with_members: set[str]) -> dict[str, GroupNow]:
    members = members_of(snapshot, with_members)
    with_idle = {group for group, found in members.items() if any(member.is_idle for member in found.values())}
    partitions = partitions_of_topics(snapshot.query, snapshot.batch, with_idle)
    rows = groups.to_pylist()
    return {row["group_id"]: GroupNow(row, members.get(row["group_id"], {}), partitions.get(row["group_id"], {})) for row in rows}
