"""Events of groups from the tables: memberships, rebalances and jumps of offsets, in the terms of `GroupHistory`. Times in ms."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import CommitEvent, MembershipEvent
from coordinator_core.state.classic_group import CONSUMER_PROTOCOL_TYPE
from pipelines.lag.columns import select
from pipelines.lag.tables.commit_windows import COMMITTED_AT
from pipelines.query.engine import Snapshot
from pipelines.query.rebalances import IS_REBALANCE
from pipelines.runtime.timestamps import to_ms

_MEMBERSHIP_CHANGES = f"""
SELECT group_id, state, previous_state, member_count, previous_member_count, members_with_partitions,
       {IS_REBALANCE} AS is_rebalance, record_timestamp, log_offset, batch_id
FROM membership_history
WHERE {{condition}} ORDER BY batch_id, log_offset
"""
#: Rows of `offset_history`.
OFFSET_CHANGES = f"""
SELECT group_id, topic, partition, change, committed_offset, previous_offset, commits, min_offset, leader_epoch, metadata,
       producer_id, {COMMITTED_AT} AS committed_at, log_partition, log_offset, batch_id
FROM offset_history
"""
#: Members, and whether they have partitions.
MEMBERS = """
SELECT m.group_id, m.member_id, m.client_id, m.client_host, a.member_id IS NOT NULL AS has_partitions
FROM members m
LEFT JOIN (SELECT DISTINCT group_id, member_id FROM assignments) a ON a.group_id = m.group_id AND a.member_id = m.member_id
"""

_Row = Mapping[str, Any]


class MemberNow(NamedTuple):
    """A member as the tables have it now."""

    has_partitions: bool
    client_id: str | None = None
    host: str | None = None


class GroupNow(NamedTuple):
    """A group as the tables have it now: its row of `groups`, and its members by member id."""

    row: _Row | None
    members: Mapping[str, MemberNow]

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
        return (with_idle_member(event, now.members),)
    first, events, known = changes[0], [], now.knows_partitions
    if first["previous_state"] is not None:
        members = first["previous_member_count"] or 0
        events.append(MembershipEvent(0, first["previous_state"], members, members, known))
    for row in changes:
        if until_batch is None or row["batch_id"] <= until_batch:
            counts = row["member_count"], row["members_with_partitions"]
            events.append(MembershipEvent(change_time(row), row["state"], *counts, known, row["batch_id"]))
    return tuple(events)


def with_idle_member(event: MembershipEvent, members: Mapping[str, MemberNow]) -> MembershipEvent:
    """The event with the name of the member without partitions, if only one of the members at that time has none."""
    idle = [member for member in members.values() if not member.has_partitions]
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
    is_removal = row["change"] in ("tombstone", "expire")
    return CommitEvent(
        to_ms(row["committed_at"]),
        TopicPartition(row["topic"], row["partition"]),
        None if is_removal else row["committed_offset"],
        leader_epoch=row["leader_epoch"],
        metadata=row["metadata"] or "",
        transactional=row["producer_id"] is not None,
        batch_id=row["batch_id"],
        of_several=row["commits"] > 1,
    )
