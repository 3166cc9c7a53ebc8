"""Static members (KIP-345, KIP-814), as in Kafka's `GroupCoordinatorTest`; each test names the cases it mirrors."""

from typing import Any

import pytest
from coordinator_harness import (
    CONSUMER,
    DELAY_MS,
    FOLLOWER,
    GROUP,
    LEADER,
    RANGE,
    RANGE_OR_ROUND_ROBIN,
    TIMEOUT_MS,
    Harness,
    errors,
)

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import Protocol

EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState
ROUND_ROBIN = (Protocol("roundrobin", b""),)
BOTH = RANGE_OR_ROUND_ROBIN


def seen(response: Any) -> tuple[ErrorCode, int, set[str | None]]:
    """Error, generation and the instances that the response names."""
    return response.error, response.generation, {member.group_instance_id for member in response.members}


def test_static_member_joins_as_first_member(at: Harness) -> None:
    """staticMemberJoinAsFirstMember"""
    assert at.joined(instance="i").error is ErrorCode.NONE


def test_an_unknown_member_id_of_a_known_instance(at: Harness) -> None:
    """staticMemberReJoinWithExplicitUnknownMemberId"""
    assert at.joined(instance="i").error is ErrorCode.NONE
    assert at.join("unknown", instance="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_a_duplicate_fences_a_follower_that_waits_to_join(at: Harness) -> None:
    """staticMemberFenceDuplicateRejoinedFollower"""
    _, _, follower = at.static_pair()
    at.join()
    assert at.state is PREPARING_REBALANCE
    old = at.join(follower, instance=FOLLOWER)
    duplicate = at.join(instance=FOLLOWER)
    assert seen(old.response) == (ErrorCode.FENCED_INSTANCE_ID, -1, set())
    assert old.response.protocol_type is None
    assert (duplicate.answered, at.state) == (False, PREPARING_REBALANCE)


def test_a_duplicate_fences_a_follower_that_waits_for_its_assignment(at: Harness) -> None:
    """staticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged"""
    generation, leader, follower = at.static_pair()
    first = at.join(leader, instance=LEADER)
    assert at.state is PREPARING_REBALANCE
    second = at.join(follower, instance=FOLLOWER)
    assert seen(first.response) == (ErrorCode.NONE, generation + 1, {LEADER, FOLLOWER})
    assert seen(second.response) == (ErrorCode.NONE, generation + 1, set())
    assert (second.response.leader, at.state) == (leader, COMPLETING_REBALANCE)
    old_sync = at.sync(follower, generation + 1, instance=FOLLOWER, protocol_type=CONSUMER, protocol_name="range")
    duplicate = at.join(instance=FOLLOWER)
    assert (old_sync.error, at.state) == (ErrorCode.FENCED_INSTANCE_ID, PREPARING_REBALANCE)
    at.advance(DELAY_MS + 1)
    at.advance(TIMEOUT_MS + 1)
    assert seen(duplicate.response) == (ErrorCode.NONE, generation + 2, {FOLLOWER})
    assert (duplicate.response.leader, at.state) == (duplicate.response.member_id, COMPLETING_REBALANCE)


def test_a_duplicate_that_joins_first_fences_the_old_one(at: Harness) -> None:
    """staticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged"""
    generation, leader, follower = at.static_pair()
    first = at.join(leader, instance=LEADER)
    duplicate = at.join(instance=FOLLOWER)
    old = at.join(follower, instance=FOLLOWER)
    assert seen(first.response) == (ErrorCode.NONE, generation + 1, {LEADER, FOLLOWER})
    assert seen(duplicate.response) == (ErrorCode.NONE, generation + 1, set())
    assert duplicate.response.member_id != follower
    assert seen(old.response) == (ErrorCode.FENCED_INSTANCE_ID, -1, set())
    assert at.state is COMPLETING_REBALANCE


def test_a_known_member_id_joins_again_and_syncs(at: Harness) -> None:
    """staticMemberRejoinWithKnownMemberId"""
    member_id = at.joined(instance="i").member_id
    again = at.join(member_id, instance="i").response
    assert (again.error, at.state) == (ErrorCode.NONE, COMPLETING_REBALANCE)
    synced = at.sync(member_id, again.generation, instance="i", protocol_type=CONSUMER, protocol_name="range")
    assert (synced.error, at.state) == (ErrorCode.NONE, STABLE)


@pytest.mark.parametrize("skip", [True, False])
def test_the_leader_comes_back_without_a_member_id(at: Harness, skip: bool) -> None:
    """staticMemberRejoinWithLeaderIdAndUnknownMemberId"""
    generation, leader, _ = at.static_pair()
    again = at.join(instance=LEADER, protocols=BOTH, skip=skip).response
    assert seen(again) == (ErrorCode.NONE, generation, {LEADER, FOLLOWER} if skip else set())
    assert (again.skip_assignment, again.leader) == (skip, again.member_id if skip else leader)
    assert at.state is STABLE
    assert at.join(leader, instance=LEADER, protocols=BOTH).error is ErrorCode.FENCED_INSTANCE_ID
    assert at.sync(leader, generation, instance=LEADER).error is ErrorCode.FENCED_INSTANCE_ID
    assert at.sync(leader, generation).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_leader_comes_back_and_the_follower_does_not(at: Harness) -> None:
    """staticMemberRejoinWithLeaderIdAndKnownMemberId"""
    generation, leader, _ = at.static_pair(session_ms=TIMEOUT_MS // 2)
    call = at.join(leader, instance=LEADER, protocols=BOTH)
    at.advance(TIMEOUT_MS + 1)
    assert at.group().static_member_id(FOLLOWER) is None
    assert seen(call.response) == (ErrorCode.NONE, generation + 1, {LEADER})
    assert (call.response.leader, at.state) == (leader, COMPLETING_REBALANCE)


def test_the_leader_comes_back_to_a_dead_group(at: Harness) -> None:
    """staticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup"""
    _, leader, _ = at.static_pair()
    at.group().transition_to(DEAD, at.now_ms)
    assert at.join(leader, instance=LEADER).error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_the_leader_comes_back_to_an_empty_group(at: Harness) -> None:
    """staticMemberRejoinWithLeaderIdAndUnexpectedEmptyGroup"""
    _, leader, follower = at.static_pair()
    at.leave(leader, follower)
    assert at.state is EMPTY
    assert at.join(leader, instance=LEADER).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_with_other_protocols_rebalances(at: Harness) -> None:
    """staticMemberRejoinWithFollowerIdAndChangeOfProtocol; a leader that does not rejoin loses the leadership."""
    generation, _, follower = at.static_pair(session_ms=2 * TIMEOUT_MS)
    call = at.join(follower, instance=FOLLOWER, protocols=ROUND_ROBIN, session_ms=2 * TIMEOUT_MS)
    at.advance(TIMEOUT_MS + 1)
    assert at.group().static_member_id(LEADER) is not None
    assert seen(call.response) == (ErrorCode.NONE, generation + 1, {LEADER, FOLLOWER})
    assert (call.response.member_id, call.response.leader, at.state) == (follower, follower, COMPLETING_REBALANCE)


def test_a_new_id_with_a_change_of_the_selected_protocol_rebalances(at: Harness) -> None:
    """staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged"""
    generation, _, follower = at.static_pair(session_ms=2 * TIMEOUT_MS)
    assert at.group().select_protocol() == "range"
    call = at.join(instance=FOLLOWER, protocols=ROUND_ROBIN)
    at.advance(TIMEOUT_MS + 1)
    response = call.response
    assert seen(response) == (ErrorCode.NONE, generation + 1, {LEADER, FOLLOWER})
    assert response.member_id == at.group().leader != follower
    assert (response.protocol_name, at.state) == ("roundrobin", COMPLETING_REBALANCE)


def test_a_new_id_that_the_log_does_not_take(at: Harness) -> None:
    """staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchangedPersistenceFailure"""
    generation, leader, follower = at.static_pair()
    at.append_error = ErrorCode.MESSAGE_TOO_LARGE
    refused = at.join(instance=FOLLOWER, protocols=RANGE).response
    at.append_error = None
    assert seen(refused) == (ErrorCode.UNKNOWN_SERVER_ERROR, generation, set())
    assert (refused.member_id, refused.leader, refused.protocol_type) == ("", leader, CONSUMER)
    assert at.state is STABLE
    assert at.join(follower, instance=FOLLOWER, protocols=BOTH).error is ErrorCode.NONE
    synced = at.sync(follower, generation, instance=FOLLOWER).response
    assert (synced.error, synced.assignment) == (ErrorCode.NONE, b"of follower")


def test_timeouts_that_the_log_does_not_take(at: Harness) -> None:
    """staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsButCannotPersistChange"""
    generation, _, _ = at.static_pair()
    at.append_error = ErrorCode.MESSAGE_TOO_LARGE
    refused = at.join(instance=FOLLOWER, protocols=BOTH, session_ms=2 * TIMEOUT_MS, rebalance_ms=2 * TIMEOUT_MS).response
    assert seen(refused) == (ErrorCode.UNKNOWN_SERVER_ERROR, generation, set())
    assert {(m.session_timeout_ms, m.rebalance_timeout_ms) for m in at.group().members} == {(TIMEOUT_MS, TIMEOUT_MS)}


def test_timeouts_that_the_log_takes(at: Harness) -> None:
    """staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsAndPersistChange"""
    generation, _, _ = at.static_pair()
    longer: dict[str, Any] = {"session_ms": 2 * TIMEOUT_MS, "rebalance_ms": 2 * TIMEOUT_MS, "protocols": BOTH}
    assert seen(at.join(instance=FOLLOWER, **longer).response) == (ErrorCode.NONE, generation, set())
    again = at.join(instance=LEADER, **longer).response
    assert seen(again) == (ErrorCode.NONE, generation, {LEADER, FOLLOWER})
    assert (again.skip_assignment, again.leader, at.state) == (True, again.member_id, STABLE)
    assert {(m.session_timeout_ms, m.rebalance_timeout_ms) for m in at.group().members} == {(2 * TIMEOUT_MS, 2 * TIMEOUT_MS)}


def test_a_new_id_with_other_protocols_and_the_same_choice(at: Harness) -> None:
    """staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged"""
    generation, _, follower = at.static_pair()
    again = at.join(instance=FOLLOWER, protocols=RANGE).response
    assert seen(again) == (ErrorCode.NONE, generation, set())
    assert (again.member_id != follower, at.state) == (True, STABLE)
    assert at.join(follower, instance=FOLLOWER, protocols=RANGE).error is ErrorCode.FENCED_INSTANCE_ID
    assert at.sync(follower, generation, instance=FOLLOWER).error is ErrorCode.FENCED_INSTANCE_ID
    synced = at.sync(again.member_id, generation, instance=FOLLOWER).response
    assert (synced.error, synced.assignment) == (ErrorCode.NONE, b"of follower")


def test_the_leader_rebalances_and_the_follower_changes_after_that(at: Harness) -> None:
    """staticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeofProtocol"""
    generation, leader, follower = at.static_pair()
    first = at.join(leader, instance=LEADER, protocols=BOTH)
    second = at.join(follower, instance=FOLLOWER, protocols=BOTH)
    assert seen(first.response) == (ErrorCode.NONE, generation + 1, {LEADER, FOLLOWER})
    assert seen(second.response) == (ErrorCode.NONE, generation + 1, set())
    changed = at.join(follower, instance=FOLLOWER, protocols=RANGE)
    assert at.state is PREPARING_REBALANCE
    at.advance(TIMEOUT_MS + 1)
    assert seen(changed.response) == (ErrorCode.NONE, generation + 2, {FOLLOWER})
    assert changed.response.leader == follower


def test_a_follower_comes_back_without_a_member_id(at: Harness) -> None:
    """staticMemberRejoinAsFollowerWithUnknownMemberId"""
    generation, _, follower = at.static_pair()
    again = at.join(instance=FOLLOWER, protocols=BOTH).response
    assert seen(again) == (ErrorCode.NONE, generation, set())
    assert (again.member_id != follower, at.state) == (True, STABLE)
    synced = at.sync(again.member_id, generation).response
    assert (synced.error, synced.assignment) == (ErrorCode.NONE, b"of follower")


def test_a_follower_comes_back_unchanged(at: Harness) -> None:
    """staticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange"""
    generation, leader, follower = at.static_pair()
    again = at.join(follower, instance=FOLLOWER, protocols=BOTH).response
    assert seen(again) == (ErrorCode.NONE, generation, set())
    assert (again.leader, again.member_id, at.state) == (leader, follower, STABLE)


def test_the_member_id_of_another_instance(at: Harness) -> None:
    """staticMemberRejoinAsFollowerWithMismatchedMemberId, staticMemberRejoinAsLeaderWithMismatchedMemberId"""
    _, leader, follower = at.static_pair()
    assert at.join(follower, instance=LEADER, protocols=BOTH).error is ErrorCode.FENCED_INSTANCE_ID
    assert at.join(leader, instance=FOLLOWER, protocols=BOTH).error is ErrorCode.FENCED_INSTANCE_ID


def test_every_request_of_a_fenced_member_is_refused(at: Harness) -> None:
    """staticMemberSyncAsLeaderWithInvalidMemberId, staticMemberHeartbeatLeaderWithInvalidMemberId,
    staticMemberCommitOffsetWithInvalidMemberId, testGenericGroupOffsetCommitWithFencedInstanceId,
    testGenericGroupOffsetCommitWithUnknownInstanceId"""
    generation, leader, _ = at.static_pair()
    assert at.sync("invalid", generation, instance=LEADER).error is ErrorCode.FENCED_INSTANCE_ID
    assert at.sync(leader, generation).error is ErrorCode.NONE
    assert at.heartbeat(leader, generation) is ErrorCode.NONE
    assert at.heartbeat("invalid", generation, instance=LEADER) is ErrorCode.FENCED_INSTANCE_ID
    offsets = {TopicPartition("topic", 0): 0}
    assert errors(at.commit(offsets, leader, generation).response) == {ErrorCode.NONE}
    assert errors(at.commit(offsets, "invalid", generation, instance=LEADER).response) == {ErrorCode.FENCED_INSTANCE_ID}
    assert errors(at.commit(offsets, leader, generation, instance="unknown").response) == {ErrorCode.UNKNOWN_MEMBER_ID}


def test_every_comeback_has_another_member_id(at: Harness) -> None:
    """shouldGetDifferentStaticMemberIdAfterEachRejoin"""
    _, leader, _ = at.static_pair()
    ids = [leader]
    for _ in range(5):
        ids.append(at.join(instance=LEADER, protocols=BOTH).response.member_id)
        at.advance(1)
    assert len(set(ids)) == 6
    assert all(member_id.startswith(LEADER) for member_id in ids)


def test_a_known_member_id_of_an_unknown_instance(at: Harness) -> None:
    """staticMemberJoinWithUnknownInstanceIdAndKnownMemberId"""
    _, leader, _ = at.static_pair()
    assert at.join(leader, instance="unknown", protocols=BOTH).error is ErrorCode.UNKNOWN_MEMBER_ID


def stuck(at: Harness) -> int:
    """A static leader that misses several rebalances: 3 members, 2 of them static; returns the generation."""
    _, leader, follower = at.static_pair(session_ms=2 * TIMEOUT_MS)
    dynamic = at.join(protocols=BOTH, session_ms=2 * TIMEOUT_MS)
    at.advance(TIMEOUT_MS + 1)
    response = dynamic.response
    assert (response.error, response.leader, len(response.members)) == (ErrorCode.NONE, response.member_id, 3)
    assert (response.generation, at.state) == (2, COMPLETING_REBALANCE)
    left = at.leave(follower)
    assert (left.error, at.state) == (ErrorCode.NONE, PREPARING_REBALANCE)
    at.advance(TIMEOUT_MS + 1)
    assert [member.member_id for member in at.group().members] == [leader]
    assert (at.group().generation, at.state) == (2, PREPARING_REBALANCE)
    return 2


def test_a_leader_that_never_comes_back_is_gone_with_its_session(at: Harness) -> None:
    """testLeaderFailToRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout"""
    stuck(at)
    at.advance(TIMEOUT_MS + 1)
    assert (len(at.group()), at.group().leader, at.group().generation, at.state) == (0, None, 3, EMPTY)


def test_a_leader_that_comes_back_at_last(at: Harness) -> None:
    """testLeaderRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout"""
    stuck(at)
    again = at.join(instance=LEADER).response
    assert seen(again) == (ErrorCode.NONE, 3, {LEADER})
    assert (at.state, at.group().leader, at.group().generation) == (COMPLETING_REBALANCE, again.member_id, 3)


def test_a_static_follower_may_miss_a_rebalance(at: Harness) -> None:
    """testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout"""
    generation, leader, _ = at.static_pair(session_ms=2 * TIMEOUT_MS)
    new = at.join(instance="new", protocols=BOTH)
    assert at.state is PREPARING_REBALANCE
    first = at.join(leader, instance=LEADER, protocols=BOTH, session_ms=2 * TIMEOUT_MS)
    at.advance(TIMEOUT_MS + 1)
    assert seen(first.response) == (ErrorCode.NONE, generation + 1, {LEADER, FOLLOWER, "new"})
    assert seen(new.response) == (ErrorCode.NONE, generation + 1, set())
    assert (first.response.leader, new.response.leader) == (leader, leader)


def test_a_static_leader_may_miss_a_rebalance_and_leads_no_more(at: Harness) -> None:
    """testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout"""
    generation, _, follower = at.static_pair(session_ms=2 * TIMEOUT_MS)
    calls = [at.join(instance="new", protocols=BOTH)]
    calls.append(at.join(follower, instance=FOLLOWER, protocols=BOTH, session_ms=2 * TIMEOUT_MS))
    at.advance(TIMEOUT_MS + 1)
    responses = [call.response for call in calls]
    led, following = sorted(responses, key=lambda response: response.leader != response.member_id)
    assert seen(led) == (ErrorCode.NONE, generation + 1, {LEADER, FOLLOWER, "new"})
    assert seen(following) == (ErrorCode.NONE, generation + 1, set())
    assert following.leader == led.member_id


def test_a_rejoin_is_answered_when_the_log_has_it(at: Harness) -> None:
    """Beside the cases: a rebalance that begins before the log has the new id includes the join, and answers it once."""
    generation, leader, _ = at.static_pair()
    at.hold = True
    again = at.join(instance=FOLLOWER, protocols=BOTH)
    other = at.join(leader, instance=LEADER, protocols=BOTH)
    assert seen(again.response)[:2] == seen(other.response)[:2] == (ErrorCode.NONE, generation + 1)
    at.release()
    assert at.state is COMPLETING_REBALANCE


def test_two_rejoins_that_the_log_does_not_take(at: Harness) -> None:
    """Beside the cases: the member has again the id that is in the log."""
    _, _, follower = at.static_pair()
    at.hold = True
    calls = [at.join(instance=FOLLOWER, protocols=BOTH) for _ in range(2)]
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.release()
    assert [call.error for call in calls] == [ErrorCode.FENCED_INSTANCE_ID, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert at.group().static_member_id(FOLLOWER) == follower
    assert {m.member_id for m in at.group().members} == {m.member_id for m in at.loaded().groups()[GROUP].members}
