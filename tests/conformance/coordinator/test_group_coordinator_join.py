"""JoinGroup of dynamic members, as in Kafka's `GroupCoordinatorTest`; each test names the cases it mirrors."""

from typing import Any

import pytest
from coordinator_harness import CONSUMER, DELAY_MS, GROUP, OTHER_GROUP, RANGE, TIMEOUT_MS, Harness

from coordinator_core.group_coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import Protocol

ROUND_ROBIN = (Protocol("roundrobin", b""),)
MAX_SIZE = 4


def test_join_group_wrong_coordinator(at: Harness) -> None:
    """testJoinGroupWrongCoordinator"""
    assert at.join(group=OTHER_GROUP).error is ErrorCode.NOT_COORDINATOR
    assert at.join(group=OTHER_GROUP, instance="i").error is ErrorCode.NOT_COORDINATOR


def test_a_full_group_takes_nobody(at: Harness) -> None:
    """testJoinGroupShouldReceiveErrorIfGroupOverMaxSize"""
    calls = []
    for number in range(MAX_SIZE):
        calls.append(at.join(rebalance_ms=2 * DELAY_MS))
        if number:
            at.advance(DELAY_MS - 1)
    at.advance(DELAY_MS + 1)
    assert {call.error for call in calls} == {ErrorCode.NONE}
    assert at.join(rebalance_ms=2 * DELAY_MS).error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_with_ids_above_the_limit(at: Harness) -> None:
    """testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember"""
    ids = [at.join(known=True).response.member_id for _ in range(MAX_SIZE + 1)]
    calls = [at.join(member_id, known=True) for member_id in ids]
    at.advance(DELAY_MS + 1)
    at.advance(DELAY_MS + 1)
    errors = [call.error for call in calls]
    assert errors == [ErrorCode.NONE] * MAX_SIZE + [ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert [at.join(member_id, known=True).error for member_id in ids[:MAX_SIZE]] == errors[:MAX_SIZE]
    assert at.join(known=True).error is ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("static", [False, True])
def test_members_above_the_limit(at: Harness, static: bool) -> None:
    """testDynamicMembersJoinGroupWithMaxSize, testStaticMembersJoinGroupWithMaxSize"""
    instances = [f"instance-{number}" if static else None for number in range(MAX_SIZE + 1)]
    calls = [at.join(instance=instance) for instance in instances]
    at.advance(DELAY_MS + 1)
    at.advance(DELAY_MS + 1)
    errors = [call.error for call in calls]
    assert errors == [ErrorCode.NONE] * MAX_SIZE + [ErrorCode.GROUP_MAX_SIZE_REACHED]
    ids = [call.response.member_id for call in calls]
    assert [at.join(i, instance=instance).error for i, instance in zip(ids, instances, strict=True)] == errors


def test_members_can_rejoin_a_full_group_while_it_rebalances(at: Harness) -> None:
    """testDynamicMembersCanReJoinGroupWithMaxSizeWhileRebalancing; a second JoinGroup of a member completes its first one."""
    ids = [at.join(known=True).response.member_id for _ in range(MAX_SIZE + 1)]
    first = [at.join(member_id, known=True) for member_id in ids]
    second = [at.join(member_id, known=True) for member_id in ids]
    at.advance(DELAY_MS + 1)
    at.advance(DELAY_MS + 1)
    assert [call.error for call in second] == [ErrorCode.NONE] * MAX_SIZE + [ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert {call.error for call in first[:MAX_SIZE]} == {ErrorCode.REBALANCE_IN_PROGRESS}


def test_last_to_rejoin_find_no_room_when_the_limit_came_down(at: Harness) -> None:
    """testLastJoiningMembersAreKickedOutWhenReJoiningGroupWithMaxSize"""
    large = Harness(at.era, group_max_size=6)
    calls = [large.join(session_ms=60_000) for _ in range(6)]
    large.advance(DELAY_MS + 1)
    large.advance(TIMEOUT_MS)
    ids = [call.response.member_id for call in calls]
    assert large.sync(calls[0].response.leader, 1).error is ErrorCode.NONE
    small = Harness(at.era)
    small.logs[small.partition] = large.logs[large.partition]
    small.now_ms = large.now_ms
    small.lead(small.partition)
    assert small.state is ClassicGroupState.PREPARING_REBALANCE
    rejoined = [small.join(member_id, session_ms=60_000) for member_id in ids]
    assert [call.error for call in rejoined] == [ErrorCode.NONE] * MAX_SIZE + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2
    assert [member_id in small.group() for member_id in ids] == [True] * MAX_SIZE + [False] * 2


@pytest.mark.parametrize("session_ms", [9, 10 * 60 * 1000 + 1])
def test_session_timeouts_have_bounds(at: Harness, session_ms: int) -> None:
    """testJoinGroupSessionTimeoutTooSmall, testJoinGroupSessionTimeoutTooLarge"""
    assert at.join(session_ms=session_ms).error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_member_id_makes_no_group(at: Harness) -> None:
    """testJoinGroupUnknownConsumerNewGroup"""
    assert at.join("memberId").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert at.join("memberId", instance="i").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_invalid_group_id(at: Harness) -> None:
    """testInvalidGroupId"""
    assert at.join(group="").error is ErrorCode.INVALID_GROUP_ID


def test_valid_join_group(at: Harness) -> None:
    """testValidJoinGroup"""
    joined = at.joined()
    assert (joined.error, joined.generation, joined.leader) == (ErrorCode.NONE, 1, joined.member_id)
    assert [member.member_id for member in joined.members] == [joined.member_id]


def test_inconsistent_protocol_type(at: Harness) -> None:
    """testJoinGroupInconsistentProtocolType"""
    assert at.joined().error is ErrorCode.NONE
    assert at.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_protocol_type_or_no_protocol(at: Harness) -> None:
    """testJoinGroupWithEmptyProtocolType, testJoinGroupWithEmptyGroupProtocol; the group is Empty, as on brokers."""
    assert at.join(protocol_type="").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.join(protocol_type="", instance="i").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.join(protocols=()).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.describe().state == "Empty"


def test_a_new_member_has_its_session_timeout_once_it_is_in_a_generation(at: Harness) -> None:
    """testNewMemberTimeoutCompletion"""
    session_ms = NEW_MEMBER_JOIN_TIMEOUT_MS + 5000
    joined = at.joined(session_ms=session_ms)
    group = at.group()
    assert not any(member.is_new for member in group.members)
    assert at.sync(joined.member_id, 1).error is ErrorCode.NONE
    at.advance(NEW_MEMBER_JOIN_TIMEOUT_MS + 100)
    assert len(group) == 1
    at.advance(session_ms + 100)
    assert len(group) == 0


def test_a_new_member_may_wait_five_minutes(at: Harness) -> None:
    """testNewMemberJoinExpiration"""
    long: dict[str, Any] = {"session_ms": NEW_MEMBER_JOIN_TIMEOUT_MS + 5000, "rebalance_ms": 2 * NEW_MEMBER_JOIN_TIMEOUT_MS}
    first = at.joined(**long)
    call = at.join(**long)
    assert not call.answered
    assert [member.is_new for member in at.group().members] == [False, True]
    at.advance(NEW_MEMBER_JOIN_TIMEOUT_MS + 1)
    assert call.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert [member.member_id for member in at.group().members] == [first.member_id]


@pytest.mark.parametrize("synced", [False, True])
def test_a_new_member_that_fails_later(at: Harness, synced: bool) -> None:
    """testNewMemberFailureAfterJoinGroupCompletion, testNewMemberFailureAfterSyncGroupCompletion"""
    first, second = at.two_joined(at.stable_member().member_id)
    assert (first.error, second.error) == (ErrorCode.NONE, ErrorCode.NONE)
    if synced:
        assert not at.sync(second.member_id, second.generation).answered
        assert at.sync(first.member_id, first.generation).error is ErrorCode.NONE
    at.advance(TIMEOUT_MS + 1)
    assert (at.state, len(at.group())) == (ClassicGroupState.EMPTY, 0)


def test_no_protocol_in_common(at: Harness) -> None:
    """testJoinGroupInconsistentGroupProtocol"""
    first = at.join(protocols=RANGE)
    second = at.join(protocols=ROUND_ROBIN)
    at.advance(DELAY_MS + 1)
    assert first.error is ErrorCode.NONE
    assert second.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_unknown_member_of_a_group(at: Harness) -> None:
    """testJoinGroupUnknownConsumerExistingGroup"""
    assert at.joined().error is ErrorCode.NONE
    assert at.join("memberId").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_joining_a_dead_group(at: Harness) -> None:
    """testJoinGroupUnknownConsumerNewDeadGroup"""
    at.dead_group()
    assert at.join().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert at.join("memberId").error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_second_join_without_protocols(at: Harness) -> None:
    """testJoinGroupSecondJoinInconsistentProtocol"""
    first = at.join(known=True).response
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert at.join(first.member_id, known=True, protocols=()).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert at.joined(first.member_id, known=True).error is ErrorCode.NONE


def test_protocol_type_in_the_response(at: Harness) -> None:
    """testJoinGroupProtocolTypeIsNotProvidedWhenAnErrorOccurs, testJoinGroupReturnsTheProtocolType"""
    refused = at.join("fake-id", instance="leader").response
    assert (refused.error, refused.protocol_type, refused.generation) == (ErrorCode.UNKNOWN_MEMBER_ID, None, -1)
    calls = [at.join(instance="leader"), at.join(instance="follower")]
    at.advance(DELAY_MS + 1)
    at.advance(TIMEOUT_MS + 1)
    assert [(call.error, call.response.protocol_type) for call in calls] == [(ErrorCode.NONE, CONSUMER)] * 2


def test_an_unchanged_follower_does_not_rebalance(at: Harness) -> None:
    """testJoinGroupFromUnchangedFollowerDoesNotRebalance"""
    first, second = at.two_joined(at.stable_member().member_id)
    assert (first.error, second.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert first.generation == second.generation == 2
    assert first.leader == second.leader == first.member_id
    again = at.join(second.member_id).response
    assert (again.error, again.generation) == (ErrorCode.NONE, 2)


def test_an_unchanged_leader_rebalances(at: Harness) -> None:
    """testJoinGroupFromUnchangedLeaderShouldRebalance"""
    first = at.stable_member()
    again = at.join(first.member_id).response
    assert (again.error, again.generation) == (ErrorCode.NONE, 2)


def test_a_second_member_that_never_comes_back(at: Harness) -> None:
    """testSecondMemberPartiallyJoinAndTimeout"""
    first = at.stable_member()
    at.advance(100)
    second = at.join(known=True).response
    group = at.group()
    assert (second.error, len(group.pending_members), group.state) == (ErrorCode.MEMBER_ID_REQUIRED, 1, "Stable")
    at.advance(300)
    assert at.heartbeat(first.member_id, 1) is ErrorCode.NONE
    at.advance(300)
    assert (len(group.pending_members), group.state) == (0, "Stable")
    assert [member.member_id for member in group.members] == [first.member_id]


def with_pending_member(at: Harness) -> str:
    """Two members that have both rejoined, and a third that was given its id and has not sent it since."""
    first, second = at.two_joined(at.stable_member().member_id)
    assert at.sync(first.member_id, first.generation).error is ErrorCode.NONE
    at.join(first.member_id)
    pending = at.join(known=True, session_ms=100).response
    assert pending.error is ErrorCode.MEMBER_ID_REQUIRED
    at.join(second.member_id)
    assert (at.state, len(at.group().pending_members)) == (ClassicGroupState.PREPARING_REBALANCE, 1)
    return str(pending.member_id)


def test_a_pending_member_joins(at: Harness) -> None:
    """testJoinGroupCompletionWhenPendingMemberJoins"""
    pending = with_pending_member(at)
    assert at.join(pending).error is ErrorCode.NONE
    assert (at.state, len(at.group()), at.group().pending_members) == (ClassicGroupState.COMPLETING_REBALANCE, 3, set())


def test_a_pending_member_times_out(at: Harness) -> None:
    """testJoinGroupCompletionWhenPendingMemberTimesOut"""
    with_pending_member(at)
    at.advance(120)
    assert (at.state, len(at.group()), at.group().pending_members) == (ClassicGroupState.COMPLETING_REBALANCE, 2, set())


def test_a_pending_member_leaves(at: Harness) -> None:
    """testPendingMembersLeavesGroup"""
    left = at.leave(with_pending_member(at))
    assert (left.error, [member.error for member in left.members]) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert (at.state, len(at.group()), at.group().pending_members) == (ClassicGroupState.COMPLETING_REBALANCE, 2, set())


def test_generations_count_rebalances(at: Harness) -> None:
    """testGenerationIdIncrementsOnRebalance"""
    first = at.stable_member()
    assert (first.generation, at.join(first.member_id).response.generation) == (1, 2)


def test_the_first_rebalance_is_delayed(at: Harness) -> None:
    """shouldDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup"""
    call = at.join()
    at.advance(DELAY_MS // 2)
    assert not call.answered
    at.advance(DELAY_MS // 2 + 1)
    assert call.error is ErrorCode.NONE


def test_a_new_member_extends_the_delay(at: Harness) -> None:
    """shouldResetRebalanceDelayWhenNewMemberJoinsGroupInInitialRebalance"""
    calls = [at.join(rebalance_ms=3 * DELAY_MS)]
    at.advance(DELAY_MS - 1)
    calls.append(at.join(rebalance_ms=3 * DELAY_MS))
    at.advance(2)
    at.advance(DELAY_MS // 2 + 1)
    assert [call.answered for call in calls] == [False, False]
    at.advance(DELAY_MS // 2)
    assert [call.error for call in calls] == [ErrorCode.NONE, ErrorCode.NONE]


def test_the_delay_ends_with_the_rebalance_timeout(at: Harness) -> None:
    """shouldDelayRebalanceUptoRebalanceTimeout"""
    calls = [at.join(rebalance_ms=2 * DELAY_MS) for _ in range(2)]
    at.advance(DELAY_MS + 1)
    calls.append(at.join(rebalance_ms=2 * DELAY_MS))
    at.advance(DELAY_MS - 1)
    assert [call.answered for call in calls] == [False] * 3
    at.advance(1)
    assert {call.error for call in calls} == {ErrorCode.NONE}


def test_the_group_id_is_that_of_the_shard(at: Harness) -> None:
    """Beside the cases: GROUP and OTHER_GROUP are in different log partitions; else the wrong coordinator would not be tested."""
    assert at.coordinator.partition_for(GROUP) != at.coordinator.partition_for(OTHER_GROUP)
