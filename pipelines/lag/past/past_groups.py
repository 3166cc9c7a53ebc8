"""What the tables had of groups at a past time, from the histories of later tables. Times in ms.

Commits and changes of groups count if a batch that was complete at that time had read them. Pending commits, expiry times,
owners, subscriptions and positions that fell behind have no history: they are read from the tables of that batch. Where
`maintain` has removed those, the rules about them find nothing, sentences name no owner, and the offsets of all topics count.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Int64s
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import NONE, CommitEvent, MembershipEvent, OpenTransaction, PendingCommit, StatusSettings
from coordinator_core.state.era import Era
from coordinator_core.state.membership import DEAD
from pipelines.lag.tables.blocked_history import blocked_at
from pipelines.lag.tables.blocking_transactions import greatest_pending_offsets
from pipelines.lag.tables.group_events import (
    GroupNow,
    change_time,
    commit_events,
    membership_changes,
    membership_events,
    with_idle_members,
)
from pipelines.lag.tables.group_statuses import GROUPS, expiries, members_of, pending_commits
from pipelines.lag.tables.offset_changes import OFFSET_CHANGES
from pipelines.lag.tables.spare_members import MemberNow, partitions_of_topics
from pipelines.lag.tables.unconsumed_positions import UnconsumedPositions, unconsumed_positions
from pipelines.query.engine import Snapshot
from pipelines.query.positions import POSITIONS
from pipelines.runtime.errors import UsageError
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import is_in

_OFFSETS = """
SELECT group_id, topic, partition, committed_offset, leader_epoch, metadata, commit_timestamp, record_timestamp, producer_id,
       topic_id, log_partition, log_offset, batch_id
FROM offsets
"""
#: All columns: the tables of an earlier layout lack one of them.
_FALLING = "SELECT * FROM lag WHERE falls_behind_since IS NOT NULL"

T = TypeVar("T")
_Row = dict[str, Any]
#: Group, topic, partition.
_Key = tuple[str, str, int]


class PastGroups:
    """Events of some groups until `at_ms`, and the tables of `then`, the last batch that was complete at that time.

    Raises UsageError if no batch was complete.
    """

    def __init__(self, snapshot: Snapshot, at_ms: int, groups: Sequence[str]) -> None:
        self._at_ms = at_ms
        self._groups_named = groups
        self._newest = snapshot
        self.then = snapshot.as_of(timestamp(at_ms))
        self._until = self.then.batch.batch_id
        self._hides_offsets = Era.named(snapshot.batch.era).hides_offsets_without_group
        self._named = named = is_in("group_id", groups)
        self._changes = _rows_by_group(membership_changes(snapshot, named))
        self._commits = _by_group(
            snapshot, f"{OFFSET_CHANGES} WHERE {named} AND batch_id <= {self._until} ORDER BY batch_id, log_offset"
        )
        self._offsets = _by_group(snapshot, f"{_OFFSETS} WHERE {named} AND batch_id <= {self._until}")
        self._groups = _by_group(snapshot, f"{GROUPS} WHERE {named}")
        self._members = members_of(snapshot, set(groups))
        self._topic_ids = {(*_key(row), *_source(row)): row["topic_id"] for row in self._of_then(_OFFSETS)}
        self._members_then: dict[str, dict[str, MemberNow]] = _if_kept(lambda: members_of(self.then, set(groups)), {})
        self._partitions_then = _if_kept(
            lambda: partitions_of_topics(self.then.query, self.then.batch, set(groups)), dict[str, Mapping[str, int]]()
        )
        self._pending: dict[str, list[PendingCommit]] = _if_kept(lambda: pending_commits(self.then), {})

    def commits(self, group: str) -> list[CommitEvent]:
        """Commits and removals, oldest first; none of a group that is deleted, if the era hides its offsets."""
        rows = self._commits.get(group, [])
        in_history = {_key(row) for row in rows}
        stored = [_as_change(row) for row in self._offsets.get(group, ()) if _key(row) not in in_history]
        ordered = sorted([*stored, *rows], key=_position)
        if self._hides_offsets and self._is_deleted(ordered, self._changes_until(group)):
            return []
        return [
            event._replace(topic_id=self._topic_ids.get((*_key(row), *_source(row))), at_ms=min(event.at_ms, self._at_ms))
            for row in ordered
            for event in commit_events([row])
        ]

    def memberships(self, group: str) -> tuple[MembershipEvent, ...]:
        """Memberships, oldest first."""
        now = GroupNow(next(iter(self._groups.get(group, ())), None), self._members.get(group, {}))
        events = membership_events(self._changes.get(group, []), now, self._until)
        events = tuple(event._replace(at_ms=min(event.at_ms, self._at_ms)) for event in events)
        if not events:
            return ()
        members, last = self._members_then.get(group, {}), events[-1]
        if len(members) != last.members:
            # spare members are known from the table of that time alone, and without it no member is said to lack partitions
            return (*events[:-1], last._replace(spare=last.members))
        return (*events[:-1], with_idle_members(last, members, self._partitions_then.get(group, {})))

    def rebalances(self, group: str) -> tuple[int, ...]:
        """Times of rebalances."""
        return tuple(min(change_time(row), self._at_ms) for row in self._changes_until(group) if row["is_rebalance"])

    def pending(self, group: str) -> tuple[PendingCommit, ...]:
        """Commits in transactions that are open."""
        return tuple(each._replace(since_ms=min(each.since_ms, self._at_ms)) for each in self._pending.get(group, ()))

    def pending_offsets(self, positions: pa.Table) -> Int64s:
        """The greatest offset that open transactions hold for each position; NONE for none."""
        return _if_kept(lambda: greatest_pending_offsets(self.then, positions), np.full(positions.num_rows, NONE))

    @cached_property
    def owners(self) -> Mapping[_Key, tuple[str | None, str | None]]:
        """Client id and host of the owner of each position; both None for none. Empty if they are unknown."""
        rows = self._of_then(POSITIONS)
        return {_key(row): (row["client_id"], row["member_host"]) for row in rows}

    @property
    def knows_owners(self) -> bool:
        """False if the tables of that time cannot be read any more."""
        return bool(self.owners)

    def expiries(self, positions: pa.Table, until_ms: int) -> Int64s:
        """Time at which the offset of each position expires, for those that do until `until_ms`; NONE for others."""
        return _if_kept(lambda: expiries(self.then, positions, until_ms), np.full(positions.num_rows, NONE))

    def unconsumed(self, positions: pa.Table, lag_reason: pa.ChunkedArray, settings: StatusSettings) -> UnconsumedPositions:
        """Positions that no member can read; none where subscriptions cannot be read any more."""
        return _if_kept(
            lambda: unconsumed_positions(self.then, positions, lag_reason, self._at_ms, settings),
            UnconsumedPositions.none(positions.num_rows),
        )

    @cached_property
    def falling(self) -> Mapping[_Key, tuple[int, bool]]:
        """The positions that fell behind: since when, and whether that is the latest possible start."""
        rows = self._of_then(_FALLING)
        return {_key(row): (to_ms(row["falls_behind_since"]), bool(row.get("falls_behind_since_is_latest"))) for row in rows}

    @cached_property
    def blocked_by(self) -> Mapping[str, Mapping[TopicPartition, OpenTransaction]]:
        """By group, the open transactions at its positions, as the last sample found them."""
        if "lag_history" not in self._newest.batch.versions:
            return {}
        return blocked_at(self._newest, timestamp(self._at_ms), self._groups_named)

    def _of_then(self, sql: str) -> list[_Row]:
        """Rows of these groups in a query of the tables at that time; none where they cannot be read any more."""
        return _if_kept(lambda: self._rows_of_then(f"SELECT * FROM ({sql}) t WHERE {self._named}"), [])

    def _rows_of_then(self, sql: str) -> list[_Row]:
        rows: list[_Row] = self.then.query(sql).to_pylist()
        return rows

    def _changes_until(self, group: str) -> list[_Row]:
        return [row for row in self._changes.get(group, ()) if row["batch_id"] <= self._until]

    @staticmethod
    def _is_deleted(commits: Sequence[_Row], changes: Sequence[_Row]) -> bool:
        """True if the newest operation of the group is its deletion; a commit or a group record creates it again."""
        deletions = [_position(row) for row in changes if row["state"] == DEAD]
        others = [_position(row) for row in changes if row["state"] != DEAD]
        others += [_position(row) for row in commits if row["change"] in ("commit", "rewind")]
        return bool(deletions) and max(deletions) > max(others, default=(-1, -1))


def _if_kept(read: Callable[[], T], otherwise: T) -> T:
    """Return what `read` does, or `otherwise` where the tables of that time are removed, or lack a column of now."""
    try:
        return read()
    except UsageError:
        return otherwise


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
    return {**row, "change": "commit", "commits": 1, "min_offset": None, "previous_offset": None, "committed_at": committed_at}


def _key(row: _Row) -> _Key:
    return row["group_id"], row["topic"], row["partition"]


def _position(row: _Row) -> tuple[int, int]:
    return row["batch_id"], row["log_offset"]


def _source(row: _Row) -> tuple[int, int]:
    """The record of a row."""
    return row["log_partition"], row["log_offset"]
