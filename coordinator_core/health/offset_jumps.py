"""Jumps of committed offsets: rewinds by members, resets by administrators. Times in ms.

The log names no principal. A reset with Kafka's tools commits to an empty group, without leader epoch and metadata; a member
that seeks back commits in a group with members.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.group_history import CommitEvent, MembershipEvent


class JumpedBy(StrEnum):
    """Party that moved a committed offset."""

    MEMBER = "member"
    ADMIN = "admin"
    #: A group without members, but not as Kafka's tools commit: a simple consumer, or a producer in a transaction.
    UNKNOWN = "unknown"


class OffsetJump(NamedTuple):
    at_ms: int
    partition: TopicPartition
    from_offset: int
    to_offset: int
    by: JumpedBy


def offset_jumps(commits: Sequence[CommitEvent], memberships: Sequence[MembershipEvent]) -> tuple[OffsetJump, ...]:
    """Commits that moved an offset back, and every move by an administrator. Both arguments are of one group, oldest first."""
    offsets: dict[TopicPartition, int | None] = {}
    jumps = []
    for commit in commits:
        before, after = offsets.get(commit.partition), commit.offset
        offsets[commit.partition] = after
        if before is None or after is None or before == after:
            continue
        by = _jumped_by(commit, memberships)
        if after < before or by is JumpedBy.ADMIN:
            jumps.append(OffsetJump(commit.at_ms, commit.partition, before, after, by))
    return tuple(jumps)


def _jumped_by(commit: CommitEvent, memberships: Sequence[MembershipEvent]) -> JumpedBy:
    earlier = [event for event in memberships if event.at_ms <= commit.at_ms]
    if not earlier:
        return JumpedBy.UNKNOWN
    if earlier[-1].members > 0:
        return JumpedBy.MEMBER
    from_tool = commit.leader_epoch is None and not commit.metadata and not commit.transactional
    return JumpedBy.ADMIN if earlier[-1].state == "Empty" and from_tool else JumpedBy.UNKNOWN
