"""What a group of the new protocols counts from before a record says so, as brokers of 4.3 answer it."""

import pytest
from log_builder import Log

from coordinator_core.codec import Record
from coordinator_core.codec.messages.consumer import ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue
from coordinator_core.codec.messages.modern import MemberKey, TargetAssignmentMetadataValue
from coordinator_core.codec.messages.share import ShareGroupMemberMetadataValue
from coordinator_core.codec.messages.streams import StreamsGroupMemberMetadataValue

MEMBERS = {
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
