"""Events of groups from the tables: memberships, rebalances and jumps of offsets, in the terms of `GroupHistory`. Times in ms."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from coordinator_core.health import CommitEvent, MembershipEvent
from coordinator_core.state.classic_group import CONSUMER_PROTOCOL_TYPE
from pipelines.lag.columns import select
from pipelines.lag.tables.spare_members import MemberNow, spare_members
from pipelines.query.engine import Snapshot
from pipelines.query.histories import REMOVALS
from pipelines.query.rebalances import IS_REBALANCE
from pipelines.runtime.timestamps import to_ms

_MEMBERSHIP_CHANGES = f"""
SELECT *, {IS_REBALANCE} AS is_rebalance
FROM membership_history
WHERE {{condition}} ORDER BY batch_id, log_offset
"""
#: Members, and whether they have partitions.
MEMBERS = """
SELECT m.*, a.member_id IS NOT NULL AS has_partitions
FROM members m
LEFT JOIN (SELECT DISTINCT group_id, member_id FROM assignments) a ON a.group_id = m.group_id AND a.member_id = m.member_id
"""

_Row = Mapping[str, Any]


class GroupNow(NamedTuple):
    """A group as the tables have it now: its row of `groups`, its members by member id, and numbers of partitions by topic."""

    row: _Row | None
    members: Mapping[str, MemberNow]
    partitions: Mapping[str, int] = MappingProxyType({})

    @property
    def has_record(self) -> bool:
        """True unless the group exists by its offsets alone."""
        return self.row is not None and self.row["group_type"] != "simple"

    @property
    def knows_partitions(self) -> bool:
        """False for a classic group of another protocol type than that of consumers."""
        return self.row is None or self.row["group_type"] != "classic" or self.row["protocol_type"] == CONSUMER_PROTOCOL_TYPE


def membership_changes(snapshot: Snapshot, condition: str) -> list[dict[str, Any]]:
    """Rows of `membership_history`, oldest first; none if the batch was written before the table existed."""
    if "membership_history" not in snapshot.batch.versions:
        return []
    rows: list[dict[str, Any]] = select(snapshot, _MEMBERSHIP_CHANGES.format(condition=condition)).to_pylist()
    return rows


def membership_events(changes: Sequence[_Row], now: GroupNow, until_batch: int | None = None) -> tuple[MembershipEvent, ...]:
    """Memberships of one group over its last rows of `membership_changes`: until now, or until a batch.

    State and number of members before the first row are in that row. All of these members count as having partitions.
    """
    if not changes:
        if not now.has_record:
            return ()
        assert now.row is not None
        counts = len(now.members), sum(member.has_partitions for member in now.members.values())
        event = MembershipEvent(change_time(now.row), now.row["state"], *counts, now.knows_partitions)
        unreadable = sum(member.is_unreadable for member in now.members.values())
        event = event._replace(unreadable=unreadable)
        return (with_idle_members(event, now.members, now.partitions),)
    first, events, known = changes[0], [], now.knows_partitions
    if first["previous_state"] is not None:
        members = first["previous_member_count"] or 0
        events.append(MembershipEvent(0, first["previous_state"], members, members, known))
    for row in changes:
        if until_batch is None or row["batch_id"] <= until_batch:
            counts = row["member_count"], row["members_with_partitions"]
            event = MembershipEvent(change_time(row), row["state"], *counts, known, row["batch_id"], log_offset=_place(row))
            # a row of an earlier layout lacks the column
            events.append(event._replace(unreadable=row.get("members_unreadable") or 0))
    return tuple(events)


def with_idle_members(event: MembershipEvent, members: Mapping[str, MemberNow], partitions: Mapping[str, int]) -> MembershipEvent:
    """The event with the number of spare members at that time, and the name of the only other one without partitions, if any."""
    spare = spare_members(members, partitions)
    event = event._replace(spare=len(spare))
    idle = [member for name, member in members.items() if member.is_idle and name not in spare]
    return event if len(idle) != 1 else event._replace(idle_client=idle[0].client_id, idle_host=idle[0].host)


def change_time(row: _Row) -> int:
    """Time of the record of a row; 0 for none."""
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
            events.append(event._replace(offset=row["previous_offset"], leader_epoch=0, of_several=False))
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
    is_removal = row["change"] in REMOVALS
    return CommitEvent(
        to_ms(row["committed_at"]),
        TopicPartition(row["topic"], row["partition"]),
        None if is_removal else row["committed_offset"],
        leader_epoch=row["leader_epoch"],
        metadata=row["metadata"] or "",
        transactional=row["producer_id"] is not None,
        batch_id=row["batch_id"],
        of_several=row["commits"] > 1,
        commits=row["commits"],
        log_offset=_place(row),
    )


def _place(row: _Row) -> int | None:
    """The place of a row among those of its batch; None for a poll, which finds what changed before it in no order."""
    place: int | None = None if row["log_partition"] == POLLED_PARTITION else row["log_offset"]
    return place
