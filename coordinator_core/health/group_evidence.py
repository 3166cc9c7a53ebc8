"""Evidence of a group at a time: lag and window of each committed partition, membership, jumps. Times in ms.

The rules read nothing else.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.burrow_rules import BurrowRule, CommitWindow
from coordinator_core.health.group_events import MembershipEvent, PendingCommit
from coordinator_core.health.hot_partitions import HotPartition
from coordinator_core.health.offset_jumps import OffsetJump
from coordinator_core.health.open_transactions import OpenTransaction
from coordinator_core.health.partition_lag import PartitionLag
from coordinator_core.health.status import Ownership, StatusSettings
from coordinator_core.health.time_limits import comes, later
from coordinator_core.health.unconsumed import Unconsumed, UnconsumedTopic


class PartitionOwner(NamedTuple):
    """Member that has a partition; both None if no member has it."""

    client_id: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionEvidence:
    """One committed partition.

    - `window`: None if no log end was ever known. `rule`: the first of Burrow's rules that applies to it.
    - `expires_at_ms`: None for never.
    - `blocked_by`: the open transaction that a consumer with read_committed cannot pass; None if there is none.
    - `lost_since_ms`: first sample that showed the log start after the position; None if no record is lost.
    - `owner`: None if it is unknown.
    - `moved_at_ms`: time of the commit that moved the offset to its value; None if it is unknown.
    - `hot`: what makes the partition hot; None if it is not, or the group does not lag there.
    - `is_consumed`: false if no member can read it, so that our rules do not count it.
    """

    partition: TopicPartition
    lag: PartitionLag
    window: CommitWindow | None
    rule: BurrowRule | None = None
    expires_at_ms: int | None = None
    blocked_by: OpenTransaction | None = None
    lost_since_ms: int | None = None
    owner: PartitionOwner | None = None
    moved_at_ms: int | None = None
    is_consumed: bool = True
    hot: HotPartition | None = None


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """Evidence of one group.

    `membership` is its `present_membership`, `rebalances` are the times of all rebalances so far, and `open_commits` the commits
    in transactions that are open at `at_ms`. `unconsumed` are the partitions that no member can read, by topic. `is_polled` if
    polls have found its events: each happened at its time or earlier, and several between two polls count as one.
    """

    group_id: str
    at_ms: int
    settings: StatusSettings
    partitions: tuple[PartitionEvidence, ...] = ()
    membership: MembershipEvent | None = None
    rebalances: tuple[int, ...] = ()
    jumps: tuple[OffsetJump, ...] = ()
    open_commits: tuple[PendingCommit, ...] = ()
    unconsumed: tuple[UnconsumedTopic, ...] = ()
    is_polled: bool = False

    def consumed(self) -> "GroupEvidence":
        """The evidence that counts for our rules: without partitions that no member can read.

        Jumps remain: a party has just moved the offset.
        """
        if not self.unconsumed:
            return self
        topics = {each.topic for each in self.unconsumed if each.reason is Unconsumed.NOT_SUBSCRIBED}
        left_out = {each.partition for each in self.partitions if not each.is_consumed}

        def counts(partition: TopicPartition) -> bool:
            return partition.topic not in topics and partition not in left_out

        return replace(
            self,
            partitions=tuple(each for each in self.partitions if each.is_consumed),
            open_commits=tuple(each for each in self.open_commits if counts(each.partition)),
        )

    @property
    def exists(self) -> bool:
        """True if the group has committed or pending offsets, or a group record."""
        return self.membership is not None or bool(self.partitions or self.open_commits)


def ownership_fields(owner: PartitionOwner | None, membership: MembershipEvent | None) -> dict[str, Any]:
    """The fields of a finding about the owner of its partition.

    It is unknown for other protocols than `consumer`, and if the assignment of a member cannot be read.
    """
    if owner is not None and owner != PartitionOwner():
        return {"client_id": owner.client_id, "member_host": owner.host, "ownership": str(Ownership.MEMBER)}
    if membership is None or owner is None:
        return {}
    if not membership.members:
        return {"ownership": str(Ownership.NO_MEMBERS)}
    is_known = membership.knows_partitions and not membership.unreadable
    return {"ownership": str(Ownership.UNOWNED)} if is_known else {}


def deleted_from(lag: PartitionLag) -> int | None:
    """Time from which on retention deletes unread records; None if it is unknown, does not come, or nothing is unread."""
    if lag.retention_margin_seconds is None or lag.sampled_at_ms is None or not lag.lag:
        return None
    due_ms = later(lag.sampled_at_ms, lag.retention_margin_seconds)
    return due_ms if comes(due_ms) else None


def repeats_since(partition: PartitionEvidence) -> int | None:
    """Since when commits repeat one offset although a record waits: the later of the commit that moved it, and the earliest time
    at which the record may have been there.

    None if it is unknown. `stuck_seconds` counts from the first sample that showed the record, and is a lower bound.
    """
    lag, moved = partition.lag, partition.moved_at_ms
    if moved is None or lag.sampled_at_ms is None or lag.lag_seconds_high is None:
        return moved
    return max(moved, later(lag.sampled_at_ms, -lag.lag_seconds_high))


def waits_since(lag: PartitionLag) -> int | None:
    """Time since which the first unread record has waited for certain: that of the first sample that showed it.

    None if it is unknown or nothing is unread.
    """
    if lag.sampled_at_ms is None or lag.lag_seconds_low is None or not lag.lag:
        return None
    return later(lag.sampled_at_ms, -lag.lag_seconds_low)
