"""Status of groups at any time, from the histories in the tables, as the job computed it or would have. Times in ms.

Commits and changes of groups count if a batch that was complete at that time had read them. Open transactions and expiry times
have no history: they are read from the tables of that batch. Where `maintain` has removed those, the rules about them find
nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import (
    DEFAULT_SETTINGS,
    CommitEvent,
    ExpiryEvent,
    GroupHistory,
    PendingCommit,
    Status,
    StatusSettings,
    evaluate,
    evidence_at,
)
from coordinator_core.state.era import Era
from coordinator_core.state.membership import DEAD
from pipelines.errors import UsageError
from pipelines.lag.group_events import OFFSET_CHANGES, GroupNow, change_time, commit_events, membership_changes, membership_events
from pipelines.lag.group_statuses import GROUPS, members_of, pending_commits
from pipelines.lag.samples_at import samples_until
from pipelines.lag.status_rows import status_row, status_schema
from pipelines.query.engine import Snapshot
from pipelines.tables.store import is_in
from pipelines.timestamps import at_ms as timestamp
from pipelines.timestamps import to_ms

_GROUP_NAMES = "SELECT DISTINCT group_id FROM {table}"
_OFFSETS = """
SELECT group_id, topic, partition, committed_offset, leader_epoch, metadata, commit_timestamp, record_timestamp, producer_id,
       topic_id, log_partition, log_offset, batch_id
FROM offsets
"""
_EXPIRIES = "SELECT group_id, topic, partition, expires_at FROM expiring_offsets WHERE expires_at IS NOT NULL"

_Row = dict[str, Any]


def group_status_at(
    snapshot: Snapshot, at: datetime, groups: Collection[str] | None = None, settings: StatusSettings = DEFAULT_SETTINGS
) -> pa.Table:
    """Status of groups at a time until the batch of `snapshot`, with the columns of `group_status` except `batch_id`.

    Groups that did not exist have the status NOTFOUND; without `groups` they are left out.

    Raises:
        UsageError: no batch was complete at that time.
    """
    at_ms = to_ms(at)
    names = _all_groups(snapshot) if groups is None else sorted(set(groups))
    rows = []
    for history in group_histories(snapshot, at_ms, names):
        evidence = evidence_at(history, at_ms, settings)
        status = evaluate(evidence)
        if groups is not None or status.status is not Status.NOTFOUND:
            rows.append(status_row(status, evidence))
    return pa.Table.from_pylist(rows, status_schema("group_status"))


def group_histories(snapshot: Snapshot, at_ms: int, groups: Sequence[str]) -> Iterator[GroupHistory]:
    """The history of each group as it was known at a time."""
    tables = _Tables(snapshot, at_ms, groups)
    for group in groups:
        yield tables.history(group)


class _Tables:
    """The rows of some groups in all histories, by group."""

    def __init__(self, snapshot: Snapshot, at_ms: int, groups: Sequence[str]) -> None:
        self._at_ms = at_ms
        self._then = snapshot.as_of(timestamp(at_ms))
        self._until = self._then.batch.batch_id
        self._hides_offsets = Era.named(snapshot.batch.era).hides_offsets_without_group
        self._named = named = is_in("group_id", groups)
        self._changes = _rows_by_group(membership_changes(snapshot, named))
        self._commits = _by_group(
            snapshot, f"{OFFSET_CHANGES} WHERE {named} AND batch_id <= {self._until} ORDER BY batch_id, log_offset"
        )
        self._offsets = _by_group(snapshot, f"{_OFFSETS} WHERE {named} AND batch_id <= {self._until}")
        self._offsets_then = self._of_then(f"{_OFFSETS} WHERE {named}")
        self._expiries = self._of_then(f"{_EXPIRIES} AND {named}")
        self._groups = _by_group(snapshot, f"{GROUPS} WHERE {named}")
        self._members = members_of(snapshot, set(groups))
        try:
            self._pending = pending_commits(self._then)
        except UsageError:
            self._pending = {}
        topics = {row["topic"] for rows in (*self._commits.values(), *self._offsets.values()) for row in rows}
        self._samples = samples_until(snapshot, at_ms, topics)

    def _of_then(self, sql: str) -> dict[str, list[_Row]]:
        """Rows of the tables at that time; none where they cannot be read any more."""
        try:
            return _by_group(self._then, sql)
        except UsageError:
            return {}

    def history(self, group: str) -> GroupHistory:
        """The history of one group."""
        changes = self._changes.get(group, [])
        now = GroupNow(next(iter(self._groups.get(group, ())), None), self._members.get(group, {}))
        commits = self._commits_of(group, changes)
        partitions = {commit.partition for commit in commits}
        memberships = membership_events(changes, now, self._until)
        return GroupHistory(
            group,
            tuple(commit._replace(at_ms=min(commit.at_ms, self._at_ms)) for commit in commits),
            {partition: taken for partition, taken in self._samples.items() if partition in partitions},
            tuple(event._replace(at_ms=min(event.at_ms, self._at_ms)) for event in memberships),
            tuple(
                min(change_time(row), self._at_ms) for row in changes if row["is_rebalance"] and row["batch_id"] <= self._until
            ),
            tuple(
                ExpiryEvent(self._at_ms, TopicPartition(row["topic"], row["partition"]), to_ms(row["expires_at"]))
                for row in self._expiries.get(group, ())
            ),
            tuple(self._open_commit(commit) for commit in self._pending.get(group, ())),
        )

    def _open_commit(self, commit: PendingCommit) -> PendingCommit:
        return commit._replace(since_ms=min(commit.since_ms, self._at_ms))

    def _commits_of(self, group: str, changes: Sequence[_Row]) -> list[CommitEvent]:
        """Commits and removals; none of a group that is deleted, if the era hides its offsets."""
        rows = self._commits.get(group, [])
        in_history = {_key(row) for row in rows}
        stored = [_as_change(row) for row in self._offsets.get(group, ()) if _key(row) not in in_history]
        ordered = sorted([*stored, *rows], key=_position)
        if self._hides_offsets and self._is_deleted(ordered, changes):
            return []
        ids = {(*_key(row), row["log_offset"]): row["topic_id"] for row in self._offsets_then.get(group, ())}
        return [
            event._replace(topic_id=ids.get((*_key(row), row["log_offset"]))) for row in ordered for event in commit_events([row])
        ]

    def _is_deleted(self, commits: Sequence[_Row], changes: Sequence[_Row]) -> bool:
        """True if the newest operation of the group is its deletion; a commit or a group record creates it again."""
        known = [row for row in changes if row["batch_id"] <= self._until]
        deletions = [_position(row) for row in known if row["state"] == DEAD]
        others = [_position(row) for row in known if row["state"] != DEAD]
        others += [_position(row) for row in commits if row["change"] in ("commit", "rewind")]
        return bool(deletions) and max(deletions) > max(others, default=(-1, -1))


def _all_groups(snapshot: Snapshot) -> list[str]:
    union = " UNION ".join(_GROUP_NAMES.format(table=table) for table in ("groups", "offsets", "offset_history", "group_history"))
    names: list[str] = snapshot.query(f"SELECT group_id FROM ({union}) g ORDER BY group_id")["group_id"].to_pylist()
    return names


def _by_group(snapshot: Snapshot, sql: str) -> dict[str, list[_Row]]:
    return _rows_by_group(snapshot.query(sql).to_pylist())


def _rows_by_group(rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for row in rows:
        found.setdefault(row["group_id"], []).append(row)
    return found


def _as_change(row: _Row) -> _Row:
    """A row of `offsets` as one of OFFSET_CHANGES, for an offset whose history has been removed."""
    committed_at = row["commit_timestamp"] or row["record_timestamp"] or timestamp(0)
    return {**row, "change": "commit", "min_offset": None, "previous_offset": None, "committed_at": committed_at}


def _key(row: _Row) -> tuple[object, ...]:
    return row["topic"], row["partition"]


def _position(row: _Row) -> tuple[int, int]:
    return row["batch_id"], row["log_offset"]
