"""Events of groups from the tables: memberships, rebalances and jumps of offsets, in the terms of `GroupHistory`. Times in ms."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import CommitEvent, MembershipEvent
from pipelines.lag.commit_windows import COMMITTED_AT
from pipelines.timestamps import to_ms

#: Rows of `group_history` that describe a change of the group; an anomaly changes nothing.
GROUP_CHANGES = """
SELECT group_id, change, member_id, state, detail, record_timestamp, log_offset, batch_id
FROM group_history WHERE change <> 'anomaly'
"""
#: Rows of `offset_history`.
OFFSET_CHANGES = f"""
SELECT group_id, topic, partition, change, committed_offset, previous_offset, min_offset, leader_epoch, metadata, producer_id,
       {COMMITTED_AT} AS committed_at, log_partition, log_offset, batch_id
FROM offset_history
"""
#: Members, and whether they have partitions.
MEMBERS = """
SELECT m.group_id, m.member_id, a.member_id IS NOT NULL AS has_partitions
FROM members m
LEFT JOIN (SELECT DISTINCT group_id, member_id FROM assignments) a ON a.group_id = m.group_id AND a.member_id = m.member_id
"""
_REMOVED = ("group_deleted", "expire")
_NO_PARTITIONS = "no partitions"

_Row = Mapping[str, Any]


class GroupNow(NamedTuple):
    """A group as the tables have it now: its row of `groups`, and its members with whether they have partitions."""

    row: _Row | None
    members: Mapping[str, bool]

    @property
    def has_record(self) -> bool:
        """True unless the group exists by its offsets alone."""
        return self.row is not None and self.row["group_type"] != "simple"


def membership_events(changes: Sequence[_Row], now: GroupNow, until_batch: int | None = None) -> tuple[MembershipEvent, ...]:
    """Memberships of one group over its last rows of GROUP_CHANGES, oldest first: until now, or until a batch.

    Members and state before the first row follow from the rows until now: rows of a member that begin with anything but its
    join show an earlier member.
    """
    if not changes:
        if not now.has_record:
            return ()
        assert now.row is not None
        return (_event(max(0, to_ms(now.row["record_timestamp"])), now.row["state"], now.members),)
    members = _members_before(changes, now.members)
    events = []
    if changes[0]["change"] != "group_created":
        events.append(_event(0, _state_before(changes), members))
    for _, of_record in groupby(changes, key=lambda row: row["log_offset"]):
        rows = list(of_record)
        if until_batch is not None and rows[0]["batch_id"] > until_batch:
            break
        for row in rows:
            _apply(row, members)
        state = "Dead" if rows[-1]["change"] in _REMOVED else rows[-1]["state"]
        events.append(_event(change_time(rows[0]), state or "Dead", members))
    return tuple(events)


def change_time(row: _Row) -> int:
    """Time of a row of GROUP_CHANGES; 0 for none."""
    return max(0, to_ms(row["record_timestamp"]))


def commit_events(rows: Iterable[_Row]) -> tuple[CommitEvent, ...]:
    """The commits and removals of rows of OFFSET_CHANGES, which are in the order of batches."""
    events: list[CommitEvent] = []
    for row in rows:
        events += _events_of(row)
    return tuple(events)


def jump_events(rows: Iterable[_Row]) -> tuple[CommitEvent, ...]:
    """Commits of selected rows of OFFSET_CHANGES, with the commits before them where rows are left out."""
    events: list[CommitEvent] = []
    last: dict[TopicPartition, int | None] = {}
    for row in rows:
        event = _commit(row)
        if row["previous_offset"] is not None and last.get(event.partition) != row["previous_offset"]:
            # as a member commits, so that it does not count as a jump
            events.append(event._replace(offset=row["previous_offset"], leader_epoch=0))
        events += _events_of(row)
        last[event.partition] = event.offset
    return tuple(events)


def _events_of(row: _Row) -> tuple[CommitEvent, ...]:
    """A rewind is two commits. A lower offset without a rewind follows a removal in the same batch."""
    event = _commit(row)
    if row["change"] == "rewind":
        return event.after_rewind(row["min_offset"])
    if row["change"] == "commit" and row["previous_offset"] is not None and row["committed_offset"] < row["previous_offset"]:
        return (event._replace(offset=None), event)
    return (event,)


def _commit(row: _Row) -> CommitEvent:
    is_removal = row["change"] in ("tombstone", "expire")
    return CommitEvent(
        to_ms(row["committed_at"]),
        TopicPartition(row["topic"], row["partition"]),
        None if is_removal else row["committed_offset"],
        leader_epoch=row["leader_epoch"],
        metadata=row["metadata"] or "",
        transactional=row["producer_id"] is not None,
    )


def _event(at_ms: int, state: str, members: Mapping[str, bool]) -> MembershipEvent:
    return MembershipEvent(at_ms, state, len(members), sum(members.values()))


def _members_before(changes: Iterable[_Row], now: Mapping[str, bool]) -> dict[str, bool]:
    first: dict[str, str] = {}
    for row in changes:
        if row["member_id"] is not None:
            first.setdefault(row["member_id"], row["change"])
    unchanged = {member: flag for member, flag in now.items() if member not in first}
    # rows do not have the assignment before a change
    return unchanged | {member: True for member, change in first.items() if change != "member_joined"}


def _state_before(changes: Iterable[_Row]) -> str:
    state = None
    for row in changes:
        if row["change"] == "state_changed":
            return str(row["detail"]).partition(" → ")[0]
        state = state or row["state"]
    return state or "Dead"


def _apply(row: _Row, members: dict[str, bool]) -> None:
    match row["change"]:
        case "member_joined":
            # the description is CLIENT HOST: ASSIGNMENT; no topic contains a colon
            members[row["member_id"]] = _has_partitions(row["detail"].rpartition(": ")[2])
        case "assignment_changed":
            members[row["member_id"]] = _has_partitions(row["detail"])
        case "member_left":
            members.pop(row["member_id"], None)
        case "group_deleted" | "expire":
            members.clear()


def _has_partitions(assignment: str) -> bool:
    return assignment != _NO_PARTITIONS and any(part.rpartition(" ")[2] for part in assignment.split("; "))
