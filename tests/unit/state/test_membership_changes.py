"""Changes of members and owners between two views of a group."""

from itertools import pairwise
from uuid import UUID

import pytest
from log_builder import GROUP, Log, member

from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer import ConsumerGroupCurrentMemberAssignmentValue
from coordinator_core.codec.messages.modern import TopicPartitions
from coordinator_core.state.membership import DEAD, MembershipChanges, membership_changes
from coordinator_core.state.views import GroupView


def changes(log: Log) -> list[MembershipChanges]:
    """The changes that each record makes."""
    views: list[GroupView | None] = [None]
    for end in range(1, log.end + 1):
        part = Log()
        part.records = log.records[:end]
        views.append(part.load("4").group(GROUP))
    return [membership_changes(before, after) for before, after in pairwise(views)]


def owned(found: MembershipChanges) -> list[tuple[str, str | UUID | None, tuple[int, ...], tuple[int, ...]]]:
    return [(each.member.member_id, each.topic or each.topic_id, each.gained, each.lost) for each in found.ownership]


def test_life_of_a_classic_group() -> None:
    log = Log()
    log.group([member("m1", topics=["foo"])], generation=1)
    log.group([member("m1", topics=["bar"]), member("m2", topics=["foo"])], generation=2)
    log.group(generation=3)
    log.group_tombstone()
    created, joined, emptied, deleted = changes(log)
    assert created.membership is not None
    assert created.membership.previous_generation is created.membership.previous_member_count is None
    assert owned(created) == [("m1", "foo", (0,), ())]
    assert joined.membership is not None
    assert joined.membership[4:6] == (2, 1)
    assert joined.membership[8:] == (2, 1, 2, 1, 0, 0, 1, False, 2, 1, 1, None)
    assert owned(joined) == [("m1", "bar", (0,), ()), ("m1", "foo", (), (0,)), ("m2", "foo", (0,), ())]
    assert emptied.membership is not None
    assert (emptied.membership.state, emptied.membership.members_left, emptied.membership.partitions_lost) == ("Empty", 2, 2)
    assert deleted.membership is not None
    assert (deleted.membership.state, deleted.membership.generation, deleted.membership.previous_member_count) == (DEAD, 3, 0)


def test_a_static_member_keeps_its_partitions_under_a_new_id() -> None:
    log = Log()
    log.group([member("old", instance_id="i")], generation=1)
    log.group([member("new", instance_id="i")], generation=1)
    _, found = changes(log)
    assert found.membership is not None
    assert found.membership[10:] == (1, 0, 0, 1, 0, False, 0, 0, 0, None)
    assert owned(found) == [("new", "foo", (0,), ()), ("old", "foo", (), (0,))]


def test_topics_are_known_by_their_ids() -> None:
    log = Log()
    log.consumer_member()
    for partitions in ((0, 1), (1, 2)):
        topics = (TopicPartitions(UUID(int=1), partitions),)
        log.modern(8, ConsumerGroupCurrentMemberAssignmentValue(1, 0, 0, topics))
    *_, first, second = changes(log)
    assert owned(first) == [("m1", UUID(int=1), (0, 1), ())]
    assert owned(second) == [("m1", UUID(int=1), (2,), (0,))]
    assert second.membership is not None
    assert (second.membership.partitions_gained, second.membership.partitions_transferred) == (1, 0)


@pytest.mark.parametrize("members", [[], [member()]])
def test_the_same_view_has_no_changes(members: list[MemberMetadata]) -> None:
    log = Log()
    log.group(members, generation=4)
    log.group(members, generation=4)
    assert changes(log)[-1] == MembershipChanges(None, ()) == membership_changes(None, None)
