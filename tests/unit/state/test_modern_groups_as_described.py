"""Groups of the new protocols as brokers of 4.3 describe them, where their records are ambiguous."""

from uuid import UUID

import pytest
from log_builder import Log

from coordinator_core.codec import Record
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
)
from coordinator_core.codec.messages.modern import MemberKey, TargetAssignmentMetadataValue, TopicPartitions
from coordinator_core.codec.messages.share import ShareGroupMemberMetadataValue
from coordinator_core.codec.messages.streams import StreamsGroupMemberMetadataValue
from coordinator_core.codec.records import Value

MEMBERS: dict[int, Value] = {
    5: ConsumerGroupMemberMetadataValue(None, None, "client", "/h", ("t",), classic_member_metadata=None),
    10: ShareGroupMemberMetadataValue(None, "client", "/h", ("t",)),
    19: StreamsGroupMemberMetadataValue(None, None, "client", "/h", -1, 0, "p"),
}


@pytest.mark.parametrize("record_type", MEMBERS)
def test_a_member_without_current_assignment_is_joining(record_type: int) -> None:
    log = Log()
    log.append(Record(record_type, MemberKey("group", "m1"), MEMBERS[record_type], 0))
    view = log.load("4").group("group")
    assert view is not None
    assert view.members[0].member_epoch == 0


def test_a_group_without_epoch_is_at_its_first() -> None:
    log = Log()
    log.modern(6, TargetAssignmentMetadataValue(0))
    view = log.load("4").group("group")
    assert view is not None
    assert view.generation == 1


@pytest.mark.parametrize(("epoch", "state"), [(1, "Reconciling"), (2, "Assigning")])
def test_a_group_without_target_assignment_is_assigning_from_its_second_epoch_on(epoch: int, state: str) -> None:
    log = Log()
    log.append(Record(5, MemberKey("group", "m1"), MEMBERS[5], 0))
    log.modern(3, ConsumerGroupMetadataValue(epoch))
    view = log.load("4").group("group")
    assert view is not None
    assert view.state == state


def test_a_member_still_holds_what_it_is_to_give_back() -> None:
    log = Log()
    both, one = UUID(int=1), UUID(int=2)
    assigned = (TopicPartitions(both, (2,)),)
    revoked = (TopicPartitions(both, (0,)), TopicPartitions(one, (3,)))
    log.append(Record(5, MemberKey("group", "m1"), MEMBERS[5], 0))
    log.modern(8, ConsumerGroupCurrentMemberAssignmentValue(2, 1, 1, assigned, revoked))
    view = log.load("4").group("group")
    assert view is not None
    assert [(each.topic_id, each.partitions) for each in view.members[0].assigned] == [(both, (0, 2)), (one, (3,))]


@pytest.mark.parametrize(
    ("preferred", "chosen"),
    [
        ((None,), "uniform"),
        (("range", None), "range"),
        (("range", "uniform"), "uniform"),
        (("range", "uniform", "range"), "range"),
    ],
)
def test_the_assignor_is_the_one_that_most_members_prefer(preferred: tuple[str | None, ...], chosen: str) -> None:
    log = Log()
    for number, assignor in enumerate(preferred):
        value = ConsumerGroupMemberMetadataValue(
            None, None, "client", "/h", server_assignor=assignor, classic_member_metadata=None
        )
        log.append(Record(5, MemberKey("group", f"m{number}"), value, 0))
    view = log.load("4").group("group")
    assert view is not None
    assert view.protocol == chosen
