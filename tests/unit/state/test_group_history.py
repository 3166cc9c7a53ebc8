"""Changes between two views of a group."""

from itertools import pairwise
from uuid import UUID

import pytest
from log_builder import GROUP, Log, member

from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer import ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMetadataValue
from coordinator_core.codec.messages.modern import TopicPartitions
from coordinator_core.state.history import Change, changes
from coordinator_core.state.views import GroupView


def views(log: Log) -> list[GroupView | None]:
    """The view of the group after each record of the log, with None before the first."""
    found: list[GroupView | None] = [None]
    for end in range(1, log.end + 1):
        part = Log()
        part.records = log.records[:end]
        found.append(part.load("4").group(GROUP))
    return found


def test_life_of_a_classic_group() -> None:
    log = Log()
    log.group([member("m1", topics=["foo"])], generation=1, leader="m1")
    log.group([member("m1", topics=["bar"]), member("m2")], generation=2, leader="m1")
    log.group([member("m2")], generation=3, leader="m2")
    log.group(generation=4)
    log.group_tombstone()
    steps = views(log)
    assert [[(c.change, c.member_id) for c in changes(before, after)] for before, after in pairwise(steps)] == [
        [("group_created", None), ("member_joined", "m1")],
        [("rebalance", None), ("member_joined", "m2"), ("subscription_changed", "m1"), ("assignment_changed", "m1")],
        [("rebalance", None), ("leader_changed", None), ("member_left", "m1")],
        [
            ("rebalance", None),
            ("state_changed", None),
            ("protocol_changed", None),
            ("leader_changed", None),
            ("member_left", "m2"),
        ],
        [("group_deleted", None)],
    ]


def test_details_are_for_people() -> None:
    log = Log()
    log.group([member("m1")], generation=1, leader="m1")
    log.group(generation=2)
    _, stable, empty = views(log)
    assert changes(None, stable)[1] == Change("member_joined", "m1", "client /127.0.0.1: foo 0")
    assert changes(stable, empty)[:2] == (Change("rebalance", None, "1 → 2"), Change("state_changed", None, "Stable → Empty"))
    assert changes(empty, None) == (Change("group_deleted", None, "was classic, Empty, generation 2"),)


def test_polls_know_no_generation_of_a_classic_group() -> None:
    """Other members or owners take a rebalance; a static member that returns under a new id does not."""
    log = Log()
    for members in (
        [member("m1", instance_id="i1")],
        [member("m2", instance_id="i1")],
        [member("m2", instance_id="i1", topics=["bar"])],
        [member("m2", instance_id="i1", topics=["bar"]), member("m3")],
        [],
    ):
        log.group(members, generation=-1, leader=None)
    _, *steps = views(log)
    found = [
        [change.detail for change in changes(before, after) if change.change == "rebalance"] for before, after in pairwise(steps)
    ]
    assert [len(details) for details in found] == [0, 1, 1, 1]
    assert found[1] == ["other members or owners than at the last poll"]


def test_conversion_of_a_group() -> None:
    log = Log()
    log.group(generation=0, protocol_type="")
    log.modern(3, ConsumerGroupMetadataValue(1))
    _, before, after = views(log)
    assert Change("type_changed", None, "simple → consumer") in changes(before, after)


def test_topics_without_name_go_by_their_id() -> None:
    log = Log()
    log.consumer_member()
    log.modern(8, ConsumerGroupCurrentMemberAssignmentValue(1, 0, 0, (TopicPartitions(UUID(int=1), (0, 1)),)))
    *_, before, after = views(log)
    assert changes(before, after) == (Change("assignment_changed", "m1", "AAAAAAAAAAAAAAAAAAAAAQ 0,1"),)


@pytest.mark.parametrize("members", [[], [member()]])
def test_the_same_view_has_no_changes(members: list[MemberMetadata]) -> None:
    log = Log()
    log.group(members)
    _, view = views(log)
    assert changes(view, view) == changes(None, None) == ()
