"""Jumps of committed offsets: rewinds by members, resets by administrators. Times in ms.

The log names no principal. A reset with Kafka's tools commits to an empty group, without leader epoch and metadata; a member
that seeks back commits in a group with members.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.group_events import CommitEvent, MembershipEvent


class JumpedBy(StrEnum):
    """Party that moved a committed offset."""

    MEMBER = "member"
    ADMIN = "admin"
    #: A group without members, but not as Kafka's tools commit: a simple consumer, or a producer in a transaction. Also one of
    #: several commits of a batch, or of a poll, in which the group had members for a part of the time.
    UNKNOWN = "unknown"


class OffsetJump(NamedTuple):
    """A move of a committed offset, by so many commits. With `is_least` the offset before was `from_offset` or a later one."""

    at_ms: int
    partition: TopicPartition
    from_offset: int
    to_offset: int
    by: JumpedBy
    is_least: bool = False
    commits: int = 1

    @property
    def hides_origin(self) -> bool:
        """True if the offset before it is known to be greater, and nothing more: it was committed in the same batch."""
        return self.is_least and self.from_offset == self.to_offset + 1


def offset_jumps(commits: Sequence[CommitEvent], memberships: Sequence[MembershipEvent]) -> tuple[OffsetJump, ...]:
    """Commits that moved an offset back, and every move by an administrator. Both arguments are of one group, oldest first.

    Where a commit went back after others of its batch, the offset before it was at least the next one.
    """
    offsets: dict[TopicPartition, int | None] = {}
    jumps = []
    for commit in commits:
        before, after = offsets.get(commit.partition), commit.offset
        offsets[commit.partition] = after
        if after is not None and commit.went_back:
            before = after + 1 if before is None else max(before, after + 1)
        if before is None or after is None or before == after:
            continue
        by = _jumped_by(commit, memberships)
        if after < before or by is JumpedBy.ADMIN:
            is_least = commit.of_several and after < before
            jumps.append(OffsetJump(commit.at_ms, commit.partition, before, after, by, is_least, commit.commits))
    return tuple(jumps)


def _jumped_by(commit: CommitEvent, memberships: Sequence[MembershipEvent]) -> JumpedBy:
    earlier = [event for event in memberships if event.is_before(commit)]
    has_no_place = commit.is_lowest or commit.log_offset is None
    if not earlier or (has_no_place and _came_or_went(commit.batch_id, memberships)):
        return JumpedBy.UNKNOWN
    if earlier[-1].members > 0:
        return JumpedBy.MEMBER
    from_tool = commit.leader_epoch is None and not commit.metadata and not commit.transactional
    return JumpedBy.ADMIN if earlier[-1].state == "Empty" and from_tool else JumpedBy.UNKNOWN


def _came_or_went(batch_id: int | None, memberships: Sequence[MembershipEvent]) -> bool:
    """True if the group had members for a part of the batch only."""
    if batch_id is None:
        return False
    before = [event.members for event in memberships if event.batch_id is None or event.batch_id < batch_id]
    within = [event.members for event in memberships if event.batch_id == batch_id]
    counts = [before[-1] if before else 0, *within] if within else []
    return bool(counts) and min(counts) == 0 and max(counts) > 0
