"""Recent changes of groups, kept from sample to sample: rebalances, memberships, jumps of offsets. Times in ms."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.health import MembershipEvent, OffsetJump, StatusSettings, offset_jumps
from coordinator_core.health.group_rules import STORM_LOOK_BACK
from coordinator_core.health.offset_syncs import LOOK_BACK
from pipelines.lag.columns import milliseconds, select
from pipelines.lag.tables.group_events import (
    GroupNow,
    change_time,
    jump_events,
    membership_changes,
    membership_events,
)
from pipelines.lag.tables.offset_changes import MAY_BE_JUMP, OFFSET_CHANGES, ChangesAfter, possible_jumps
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.tables.store import timestamp_literal

_LAST_CHANGES = "SELECT group_id, max(record_timestamp) AS changed_at FROM membership_history GROUP BY group_id"
_JUMPS = f"SELECT * FROM ({OFFSET_CHANGES}) h WHERE {MAY_BE_JUMP} AND committed_at >= {{since}}"
#: A group has one log partition in a batch, so offsets of the log order its rows.
_IN_ORDER = [("batch_id", "ascending"), ("log_offset", "ascending")]


class RecentChanges:
    """Changes within the windows of the rules, until the batch of the last `refresh`."""

    def __init__(self, settings: StatusSettings) -> None:
        self._settings = settings
        self._kept_ms = max(STORM_LOOK_BACK * settings.storm_window_ms, LOOK_BACK * settings.jump_window_ms)
        self._read_until: int | None = None
        #: Version of `membership_history` at the last `refresh`.
        self._memberships_version: int | None = None
        self._last_change: dict[str, int] = {}
        self._changes: dict[str, list[dict[str, Any]]] = {}
        self._commits: dict[str, list[dict[str, Any]]] = {}

    def refresh(self, snapshot: Snapshot, changes_after: ChangesAfter, states: pa.Table, now_ms: int) -> None:
        """Add the changes until the batch of `snapshot`. `states` has the columns `group_id` and `member_count` of all groups."""
        since = timestamp_literal(timestamp(now_ms - self._kept_ms))
        self._add_memberships(snapshot, since)
        self._forget(self._changes, now_ms, change_time)
        if self._read_until is None:
            commits = select(snapshot, _JUMPS.format(since=since))
        else:
            commits = possible_jumps(changes_after(snapshot, self._read_until))
        for row in self._possible(commits, states).sort_by(_IN_ORDER).to_pylist():
            self._commits.setdefault(row["group_id"], []).append(row)
        self._forget(self._commits, now_ms, lambda row: row["committed_at"].timestamp() * 1000)
        self._read_until = snapshot.batch.batch_id

    def _add_memberships(self, snapshot: Snapshot, since: str) -> None:
        """Add the changes of memberships; at first those since a time."""
        version = snapshot.batch.versions.get("membership_history")
        if version == self._memberships_version:
            return
        if self._read_until is None:
            rows = select(snapshot, _LAST_CHANGES)
            self._last_change = dict(zip(rows["group_id"].to_pylist(), milliseconds(rows["changed_at"]).tolist(), strict=True))
        added = f"record_timestamp >= {since}" if self._read_until is None else f"batch_id > {self._read_until}"
        for row in membership_changes(snapshot, added):
            self._changes.setdefault(row["group_id"], []).append(row)
            self._last_change[row["group_id"]] = change_time(row)
        self._memberships_version = version

    def _possible(self, commits: pa.Table, states: pa.Table) -> pa.Table:
        """Without the commits of consumers that send no leader epoch: their groups had members all the time."""
        with_members = states.filter(pc.greater(states["member_count"], 0))["group_id"].to_pylist()
        steady = pa.array([group for group in with_members if group not in self._changes], pa.string())
        by_member = pc.and_(pc.is_in(commits["group_id"], steady), pc.not_equal(commits["change"], "rewind"))
        return commits.filter(pc.invert(by_member))

    def _forget(self, rows: dict[str, list[dict[str, Any]]], now_ms: int, time_of: Any) -> None:
        """Remove rows older than the windows."""
        for group, of_group in list(rows.items()):
            kept = [row for row in of_group if now_ms - time_of(row) < self._kept_ms]
            if kept:
                rows[group] = kept
            else:
                del rows[group]

    def membership(self, group: str, now: GroupNow) -> MembershipEvent | None:
        """The present membership, and the time since which it is unchanged."""
        newest = membership_events((), now)
        if not newest or group not in self._last_change:
            return newest[-1] if newest else None
        return newest[-1]._replace(at_ms=self._last_change[group])

    def rebalances(self, group: str) -> tuple[int, ...]:
        """Times of the recent rebalances of a group."""
        return tuple(change_time(row) for row in self._changes.get(group, ()) if row["is_rebalance"])

    def jumps(self, group: str, now: GroupNow) -> tuple[OffsetJump, ...]:
        """Recent rewinds and resets of a group."""
        if group not in self._commits:
            return ()
        return offset_jumps(jump_events(self._commits[group]), membership_events(self._changes.get(group, ()), now))

    def groups_with_storms(self, now_ms: int) -> set[str]:
        """Groups with enough rebalances for the rule to fire."""
        counts: Counter[str] = Counter()
        for group, rows in self._changes.items():
            recent = [row for row in rows if row["is_rebalance"]]
            counts[group] = sum(now_ms - change_time(row) < self._settings.storm_window_ms for row in recent)
        return {group for group, count in counts.items() if count >= self._settings.storm_rebalances}

    def groups_with_jumps(self) -> set[str]:
        """Groups with a commit that may be a jump."""
        return set(self._commits)
