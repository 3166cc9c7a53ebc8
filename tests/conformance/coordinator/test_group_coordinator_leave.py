"""LeaveGroup, as in Kafka's `GroupCoordinatorTest`; each test names the cases it mirrors."""

from typing import Any

from coordinator_harness import FOLLOWER, LEADER, OTHER_GROUP, Harness
from test_group_coordinator_join import with_pending_member

from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import LeavingMember


def seen(response: Any) -> tuple[ErrorCode, list[ErrorCode]]:
    return response.error, [member.error for member in response.members]


def instance(name: str, member_id: str = "") -> LeavingMember:
    return LeavingMember(member_id, name)


def test_leaving_the_wrong_coordinator(at: Harness) -> None:
    """testLeaveGroupWrongCoordinator, testStaticMembersWrongCoordinatorBatchLeaveGroup"""
    at.static_pair()
    assert seen(at.leave("memberId", group=OTHER_GROUP)) == (ErrorCode.NOT_COORDINATOR, [])
    assert seen(at.leave(instance(LEADER), instance(FOLLOWER), group=OTHER_GROUP)) == (ErrorCode.NOT_COORDINATOR, [])


def test_leaving_no_group(at: Harness) -> None:
    """testLeaveGroupUnknownGroup, testStaticMembersUnknownGroupBatchLeaveGroup"""
    left = at.leave("memberId")
    assert seen(left) == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID])
    assert left.error_of_single is ErrorCode.UNKNOWN_MEMBER_ID
    assert seen(at.leave(instance(LEADER), instance(FOLLOWER))) == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID] * 2)


def test_leaving_as_nobody(at: Harness) -> None:
    """testLeaveGroupUnknownConsumerExistingGroup"""
    at.joined()
    assert seen(at.leave("consumerId")) == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID])


def test_leaving_a_dead_group(at: Harness) -> None:
    """testSingleLeaveDeadGroup, testBatchLeaveDeadGroup"""
    at.dead_group()
    assert seen(at.leave("memberId")) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])
    assert seen(at.leave("memberId", "memberId")) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])


def test_leaving(at: Harness) -> None:
    """testValidLeaveGroup"""
    assert seen(at.leave(at.joined().member_id)) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert at.state is ClassicGroupState.EMPTY


def test_leaving_for_an_instance(at: Harness) -> None:
    """testLeaveGroupWithFencedInstanceId, testLeaveGroupStaticMemberWithUnknownMemberId"""
    at.joined(instance=LEADER)
    assert seen(at.leave(instance(LEADER, "some_member"))) == (ErrorCode.NONE, [ErrorCode.FENCED_INSTANCE_ID])
    assert seen(at.leave(instance(LEADER))) == (ErrorCode.NONE, [ErrorCode.NONE])


def test_instances_leave_together(at: Harness) -> None:
    """testStaticMembersValidBatchLeaveGroup"""
    at.static_pair()
    assert seen(at.leave(instance(LEADER), instance(FOLLOWER))) == (ErrorCode.NONE, [ErrorCode.NONE] * 2)
    assert at.state is ClassicGroupState.EMPTY


def test_one_of_them_is_fenced(at: Harness) -> None:
    """testStaticMembersFencedInstanceBatchLeaveGroup"""
    at.static_pair()
    left = at.leave(instance(LEADER), instance(FOLLOWER, "invalid-member"))
    assert seen(left) == (ErrorCode.NONE, [ErrorCode.NONE, ErrorCode.FENCED_INSTANCE_ID])


def test_one_of_them_is_unknown(at: Harness) -> None:
    """testStaticMembersUnknownInstanceBatchLeaveGroup"""
    at.static_pair()
    left = at.leave(instance("unknown-instance"), instance(FOLLOWER))
    assert seen(left) == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE])


def test_one_of_them_is_pending(at: Harness) -> None:
    """testPendingMemberBatchLeaveGroup"""
    pending = with_pending_member(at)
    left = at.leave(instance("unknown-instance"), LeavingMember(pending))
    assert seen(left) == (ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE])


def test_a_member_that_leaves_has_its_parked_requests_answered(at: Harness) -> None:
    """Beside the cases: a JoinGroup, and a SyncGroup, which brokers leave unanswered."""
    _, second = at.two_joined(at.stable_member().member_id)
    waiting = at.sync(second.member_id, 2)
    at.leave(second.member_id)
    assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID
    joining = at.join()
    assert at.state is ClassicGroupState.PREPARING_REBALANCE
    at.leave(next(m.member_id for m in at.group().members if m.is_new))
    assert joining.error is ErrorCode.UNKNOWN_MEMBER_ID
