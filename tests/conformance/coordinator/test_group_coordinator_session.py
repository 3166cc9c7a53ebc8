"""SyncGroup, Heartbeat and the sessions of members, as in Kafka's `GroupCoordinatorTest`; each test names the cases
it mirrors."""

import pytest
from coordinator_harness import CONSUMER, DELAY_MS, GROUP, LEADER, OTHER_GROUP, TIMEOUT_MS, Harness, errors
from expecting import expect

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.group_coordinator.timers import HeartbeatTimeout, TimerKey, TimerKind
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.state.classic_group import LoadedClassicGroup

PARTITION = TopicPartition("topic", 0)


def test_syncing_with_a_dead_group(at: Harness) -> None:
    """testSyncDeadGroup"""
    at.dead_group()
    assert at.sync("memberId", 1).error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_syncing_with_the_wrong_coordinator(at: Harness) -> None:
    """testSyncGroupNotCoordinator"""
    assert at.sync("memberId", 1, group=OTHER_GROUP).error is ErrorCode.NOT_COORDINATOR


def test_syncing_with_no_group(at: Harness) -> None:
    """testSyncGroupFromUnknownGroup"""
    assert at.sync("memberId", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_syncing_as_nobody(at: Harness) -> None:
    """testSyncGroupFromUnknownMember"""
    assert at.sync("blah", at.stable_member().generation).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_syncing_with_another_generation(at: Harness) -> None:
    """testSyncGroupFromIllegalGeneration"""
    joined = at.joined()
    assert at.sync(joined.member_id, joined.generation + 1).error is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "error"),
    [
        ("whatever", None, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (None, "whatever", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (None, None, ErrorCode.NONE),
        (CONSUMER, "range", ErrorCode.NONE),
    ],
)
def test_protocol_type_and_name(at: Harness, protocol_type: str | None, protocol_name: str | None, error: ErrorCode) -> None:
    """testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent, testSyncGroupReturnsAnErrorWhenProtocolNameIsInconsistent,
    testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided, testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent"""
    calls = [at.join(), at.join()]
    at.advance(DELAY_MS + 1)
    at.advance(DELAY_MS + 1)
    leader, follower = (call.response for call in calls)
    for member in (leader, follower):
        synced = at.sync(member.member_id, 1, protocol_type=protocol_type, protocol_name=protocol_name).response
        assert synced.error is error
        expected = (CONSUMER, "range") if error is ErrorCode.NONE else (None, None)
        assert (synced.protocol_type, synced.protocol_name) == expected


def test_an_assignment_of_nothing(at: Harness) -> None:
    """testSyncGroupEmptyAssignment"""
    joined = at.joined()
    synced = at.sync(joined.member_id, 1).response
    assert (synced.error, synced.assignment) == (ErrorCode.NONE, b"")
    assert at.heartbeat(joined.member_id, 1) is ErrorCode.NONE


def test_followers_get_what_the_leader_assigned(at: Harness) -> None:
    """testSyncGroupFollowerAfterLeader, testSyncGroupLeaderAfterFollower"""
    for follower_first in (False, True):
        one = Harness(at.era)
        leader, follower = one.two_joined(one.stable_member().member_id)
        early = one.sync(follower.member_id, 2) if follower_first else None
        led = one.sync(leader.member_id, 2, {leader.member_id: b"\0", follower.member_id: b"\1"}).response
        followed = (early or one.sync(follower.member_id, 2)).response
        assert (led.error, led.assignment) == (ErrorCode.NONE, b"\0")
        assert (followed.error, followed.assignment) == (ErrorCode.NONE, b"\1")


def test_a_leader_that_fails_before_it_assigns(at: Harness) -> None:
    """testLeaderFailureInSyncGroup"""
    _, follower = at.two_joined(at.stable_member().member_id)
    waiting = at.sync(follower.member_id, 2)
    at.advance(TIMEOUT_MS + 100)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def three_joined(at: Harness) -> list[str]:
    """Three members of generation 1 before their SyncGroup; the leader first."""
    ids = [at.join(known=True).response.member_id for _ in range(3)]
    calls = [at.join(member_id, known=True) for member_id in ids]
    at.advance(DELAY_MS + 1)
    at.advance(DELAY_MS + 1)
    assert {call.error for call in calls} == {ErrorCode.NONE}
    at.advance(TIMEOUT_MS // 2)
    assert [at.heartbeat(member_id, 1) for member_id in ids] == [ErrorCode.NONE] * 3
    return ids


def test_nobody_syncs(at: Harness) -> None:
    """testRebalanceTimesOutWhenSyncRequestIsNotReceived"""
    ids = three_joined(at)
    at.advance(TIMEOUT_MS // 2 + 1)
    assert [at.heartbeat(member_id, 1) for member_id in ids] == [ErrorCode.UNKNOWN_MEMBER_ID] * 3


def test_only_the_leader_syncs(at: Harness) -> None:
    """testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers"""
    leader, *followers = three_joined(at)
    assert at.sync(leader, 1).error is ErrorCode.NONE
    assert at.heartbeat(leader, 1) is ErrorCode.NONE
    at.advance(TIMEOUT_MS // 2 + 1)
    assert at.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert [at.heartbeat(member_id, 1) for member_id in followers] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_only_followers_sync(at: Harness) -> None:
    """testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders"""
    leader, *followers = three_joined(at)
    waiting = [at.sync(member_id, 1) for member_id in followers]
    at.advance(TIMEOUT_MS // 2 + 1)
    assert {call.error for call in waiting} == {ErrorCode.REBALANCE_IN_PROGRESS}
    assert at.heartbeat(leader, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert [at.heartbeat(member_id, 1) for member_id in followers] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2


def test_everybody_syncs(at: Harness) -> None:
    """testRebalanceDoesNotTimeOutWhenAllSyncAreReceived"""
    ids = three_joined(at)
    assert [at.sync(member_id, 1).error for member_id in ids] == [ErrorCode.NONE] * 3
    assert TimerKey(TimerKind.SYNC, GROUP) not in at.shard.context.timers
    for wait_ms in (TIMEOUT_MS // 2 - 1, TIMEOUT_MS // 2):
        at.advance(wait_ms)
        assert [at.heartbeat(member_id, 1) for member_id in ids] == [ErrorCode.NONE] * 3


def test_heartbeats_to_the_wrong_place(at: Harness) -> None:
    """testHeartbeatWrongCoordinator, testHeartbeatUnknownGroup, testHeartbeatDeadGroup"""
    assert at.heartbeat("memberId", -1, group=OTHER_GROUP) is ErrorCode.NOT_COORDINATOR
    assert at.heartbeat("memberId", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    at.dead_group()
    assert at.heartbeat("memberId", 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_heartbeat_of_an_empty_group(at: Harness) -> None:
    """testHeartbeatEmptyGroup"""
    member_id = at.stable_member().member_id
    at.leave(member_id)
    assert at.state is ClassicGroupState.EMPTY
    assert at.heartbeat(member_id, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_of_a_group(at: Harness) -> None:
    """testHeartbeatUnknownConsumerExistingGroup, testHeartbeatIllegalGeneration, testValidHeartbeat"""
    member_id = at.stable_member().member_id
    assert at.heartbeat("memberId", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert at.heartbeat(member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    assert at.heartbeat(member_id, 1) is ErrorCode.NONE


def test_heartbeat_before_the_assignment(at: Harness) -> None:
    """testHeartbeatRebalanceInProgress: despite its name, the group is CompletingRebalance and the error NONE."""
    assert at.heartbeat(at.joined().member_id, 1) is ErrorCode.NONE


def test_heartbeat_while_others_join(at: Harness) -> None:
    """testHeartbeatDuringRebalanceCausesRebalanceInProgress"""
    joined = at.joined()
    at.join()
    assert at.heartbeat(joined.member_id, joined.generation) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_session_ends(at: Harness) -> None:
    """testSessionTimeout"""
    member_id = at.stable_member().member_id
    at.advance(TIMEOUT_MS + 100)
    assert at.heartbeat(member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("by_commit", [False, True])
def test_heartbeats_and_commits_keep_a_session(at: Harness, by_commit: bool) -> None:
    """testHeartbeatMaintainsSession, testCommitMaintainsSession, testGenericGroupOffsetCommitMaintainsSession"""
    member_id = at.stable_member(session_ms=1000, rebalance_ms=1000).member_id
    at.advance(500)
    if by_commit:
        assert errors(at.commit({PARTITION: 0}, member_id, 1).response) == {ErrorCode.NONE}
    else:
        assert at.heartbeat(member_id, 1) is ErrorCode.NONE
    at.advance(600)
    assert at.heartbeat(member_id, 1) is ErrorCode.NONE


def test_a_session_ends_while_others_join(at: Harness) -> None:
    """testSessionTimeoutDuringRebalance"""
    member_id = at.stable_member(session_ms=1000, rebalance_ms=2000).member_id
    other = at.join()
    at.advance(500)
    assert at.heartbeat(member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    at.advance(1100)
    assert at.heartbeat(member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert other.error is ErrorCode.NONE


def test_a_rebalance_that_a_static_member_misses(at: Harness) -> None:
    """testRebalanceCompletesBeforeMemberJoins"""
    first = at.stable_member(instance=LEADER, session_ms=1000, rebalance_ms=1200).member_id
    call = at.join()
    for _ in range(2):
        at.advance(TIMEOUT_MS)
        assert at.heartbeat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    at.advance(TIMEOUT_MS)
    other = call.response
    assert other.error is ErrorCode.NONE
    assert at.sync(other.member_id, other.generation).error is ErrorCode.NONE
    assert at.heartbeat(first, 1) is ErrorCode.ILLEGAL_GENERATION
    seen = []
    for _ in range(3):
        at.advance(TIMEOUT_MS - 1)
        seen.append(at.heartbeat(other.member_id, other.generation))
    assert seen == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS]
    again = at.join(other.member_id).response
    assert at.sync(again.member_id, again.generation).error is ErrorCode.NONE
    for _ in range(20):
        at.advance(TIMEOUT_MS - 1)
        assert at.heartbeat(again.member_id, again.generation) is ErrorCode.NONE


def test_a_heartbeat_timer_of_a_dead_group_does_nothing(at: Harness) -> None:
    """testCompleteHeartbeatWithGroupDead"""
    _, leader, _ = at.static_pair()
    group = at.group()
    group.transition_to(ClassicGroupState.DEAD, at.now_ms)
    at.advance(TIMEOUT_MS + 1)
    assert leader in group


def test_a_heartbeat_timer_of_somebody_who_is_gone_does_nothing(at: Harness) -> None:
    """testCompleteHeartbeatWithMemberAlreadyRemoved"""
    generation, leader, follower = at.static_pair()
    at.group().remove(leader)
    at.advance(TIMEOUT_MS - 1)
    assert at.heartbeat(follower, generation) is ErrorCode.NONE
    at.advance(2)
    assert at.state is ClassicGroupState.STABLE


def test_a_cancelled_timer_never_fires(at: Harness) -> None:
    """Beside the cases: neither a cancelled timer nor the old deadline of a timer that was reset."""
    timers = at.shard.context.timers
    timers.clear()
    one, two = TimerKey(TimerKind.HEARTBEAT, GROUP, "1"), TimerKey(TimerKind.HEARTBEAT, GROUP, "2")
    timers.schedule(one, 10, HeartbeatTimeout(GROUP, "1"))
    timers.schedule(two, 20, HeartbeatTimeout(GROUP, "2"))
    timers.schedule(one, 30, HeartbeatTimeout(GROUP, "again"))
    assert timers.cancel(two)
    assert (timers.pop_due(29), timers.deadline(one), timers.deadline(two)) == (None, 30, None)
    assert timers.pop_due(30) == HeartbeatTimeout(GROUP, "again")
    timers.schedule(one, 50, HeartbeatTimeout(GROUP, "late"))
    timers.schedule(one, 40, HeartbeatTimeout(GROUP, "early"))
    assert timers.next_deadline() == 40
    assert timers.pop_due(100) == HeartbeatTimeout(GROUP, "early")
    assert (timers.pop_due(100), timers.next_deadline(), len(timers)) == (None, None, 0)


def test_a_second_assignment_of_a_generation_is_ignored_while_the_first_is_written(at: Harness) -> None:
    """Beside the cases: the log and the members have the same assignment, and both requests are answered."""
    member_id = at.joined().member_id
    at.hold = True
    first = at.sync(member_id, 1, {member_id: b"first"})
    second = at.sync(member_id, 1, {member_id: b"second"})
    assert (first.error, second.answered) == (ErrorCode.REBALANCE_IN_PROGRESS, False)
    at.release()
    assert second.response.assignment == b"first"
    assert expect(LoadedClassicGroup, at.loaded().registry.groups[GROUP]).value.members[0].assignment == b"first"
