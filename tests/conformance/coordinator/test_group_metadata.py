"""A single group, as in Kafka's `GroupMetadataTest` (Scala, 3.9) and `ClassicGroupTest` (Java); each test names the
cases it mirrors."""

from collections.abc import Callable

import pytest
from coordinator_harness import CONSUMER, GROUP, START_MS, Call, Harness, errors

from coordinator_core.codec import encode_subscription
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolSubscription
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator.classic.rebalance import answer_join, answer_sync
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.members import Member
from coordinator_core.group_coordinator.group.states import VALID_PREVIOUS_STATES, ClassicGroupState, IllegalGroupTransition
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import JoinGroupResponse, Protocol, SyncGroupResponse

EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState
FOO = TopicPartition("foo", 0)
DAY_MS = 24 * 60 * 60 * 1000
INSTANCE = "instance"

#: The steps from a new group to each state.
PATHS = {
    EMPTY: [],
    PREPARING_REBALANCE: [PREPARING_REBALANCE],
    COMPLETING_REBALANCE: [PREPARING_REBALANCE, COMPLETING_REBALANCE],
    STABLE: [PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE],
    DEAD: [PREPARING_REBALANCE, DEAD],
}


@pytest.fixture
def group() -> ClassicGroup:
    return ClassicGroup(GROUP, START_MS)


def member(
    member_id: str = "memberId",
    *protocols: str | Protocol,
    instance: str | None = None,
    protocol_type: str = CONSUMER,
) -> Member:
    named = tuple(each if isinstance(each, Protocol) else Protocol(each, b"") for each in protocols or ("range", "roundrobin"))
    return Member(member_id, instance, "clientId", "clientHost", 60_000, 10_000, protocol_type, named)


def subscription(*topics: str) -> Protocol:
    return Protocol("range", encode_subscription(ConsumerProtocolSubscription(topics)))


def in_state(state: ClassicGroupState) -> ClassicGroup:
    found = ClassicGroup(GROUP, START_MS)
    for step in PATHS[state]:
        found.transition_to(step, START_MS)
    return found


def result() -> ResultBuilder:
    return ResultBuilder(GroupCoordinatorShard(0, CoordinatorConfig(), str).context, START_MS, lambda: 1)


@pytest.mark.parametrize(
    ("state", "can"), [(STABLE, True), (COMPLETING_REBALANCE, True), (EMPTY, True), (PREPARING_REBALANCE, False), (DEAD, False)]
)
def test_which_groups_can_rebalance(state: ClassicGroupState, can: bool) -> None:
    """testCanRebalanceWhenStable, testCanRebalanceWhenCompletingRebalance, testCannotRebalanceWhenPreparingRebalance,
    testCannotRebalanceWhenDead"""
    assert in_state(state).can_rebalance is can


@pytest.mark.parametrize("before", ClassicGroupState)
@pytest.mark.parametrize("after", ClassicGroupState)
def test_every_transition(before: ClassicGroupState, after: ClassicGroupState) -> None:
    """testStableToPreparingRebalanceTransition, testStableToDeadTransition, testAwaitingRebalanceToPreparingRebalanceTransition,
    testPreparingRebalanceToDeadTransition, testPreparingRebalanceToEmptyTransition, testEmptyToDeadTransition,
    testAwaitingRebalanceToStableTransition, testEmptyToStableIllegalTransition, testStableToStableIllegalTransition,
    testEmptyToAwaitingRebalanceIllegalTransition, testPreparingRebalanceToPreparingRebalanceIllegalTransition,
    testPreparingRebalanceToStableIllegalTransition, testAwaitingRebalanceToAwaitingRebalanceIllegalTransition,
    testDeadToDeadIllegalTransition (which is legal, despite its name), testDeadToStableIllegalTransition,
    testDeadToPreparingRebalanceIllegalTransition, testDeadToAwaitingRebalanceIllegalTransition"""
    allowed = {
        (PREPARING_REBALANCE, EMPTY),
        (EMPTY, PREPARING_REBALANCE),
        (COMPLETING_REBALANCE, PREPARING_REBALANCE),
        (STABLE, PREPARING_REBALANCE),
        (PREPARING_REBALANCE, COMPLETING_REBALANCE),
        (COMPLETING_REBALANCE, STABLE),
        *((state, DEAD) for state in ClassicGroupState),
    }
    found = in_state(before)
    if (before, after) in allowed:
        found.transition_to(after, START_MS + 1)
        assert (found.state, found.state_timestamp) == (after, START_MS + 1)
    else:
        with pytest.raises(IllegalGroupTransition, match=f"is {before}; {after} may only follow"):
            found.transition_to(after, START_MS + 1)
        assert (found.state, found.state_timestamp) == (before, START_MS)
    assert VALID_PREVIOUS_STATES.keys() == set(ClassicGroupState)


def test_votes(group: ClassicGroup) -> None:
    """testSelectProtocol"""
    group.add(member("1", "range", "roundrobin"))
    assert group.select_protocol() == "range"
    group.add(member("2", "roundrobin", "range"))
    assert group.select_protocol() == "range"
    group.add(member("3", "roundrobin", "range"))
    assert group.select_protocol() == "roundrobin"


def test_nobody_votes(group: ClassicGroup) -> None:
    """testSelectProtocolRaisesIfNoMembers"""
    with pytest.raises(ValueError, match="no members to vote"):
        group.select_protocol()


def test_only_what_all_know_is_chosen(group: ClassicGroup) -> None:
    """testSelectProtocolChoosesCompatibleProtocol"""
    group.add(member("1", "range", "roundrobin"))
    group.add(member("2", "roundrobin", "blah"))
    assert group.select_protocol() == "roundrobin"


def test_supported_protocols(group: ClassicGroup) -> None:
    """testSupportsProtocols"""

    def supports(protocol_type: str, *names: str) -> bool:
        return group.supports(protocol_type, [Protocol(name, b"") for name in names])

    assert supports(CONSUMER, "roundrobin", "range")
    group.add(member("1", "range", "roundrobin"))
    group.transition_to(PREPARING_REBALANCE, START_MS)
    assert supports(CONSUMER, "roundrobin", "foo")
    assert supports(CONSUMER, "range", "foo")
    assert not supports(CONSUMER, "foo", "bar")
    group.add(member("2", "roundrobin", "blah"))
    assert supports(CONSUMER, "roundrobin", "foo")
    assert not supports("invalid_type", "roundrobin", "foo")
    assert not supports(CONSUMER, "range", "foo")


def test_offsets_stay_while_an_empty_group_fills() -> None:
    """testOffsetRemovalDuringTransitionFromEmptyToNonEmpty"""
    at = Harness("3")
    joined = at.stable_member(protocols=(subscription("foo"),))
    at.commit({FOO: 37}, joined.member_id, 1)
    at.now_ms += 8 * DAY_MS
    at.leave(joined.member_id)
    assert at.state is EMPTY
    at.take(at.shard.sweep(at.now_ms))
    at.join(protocols=(subscription("foo"),))
    at.take(at.shard.sweep(at.now_ms + 8 * DAY_MS))
    assert (at.state, at.fetched()) == (PREPARING_REBALANCE, {FOO: 37})


def test_a_protocol_counts_once(group: ClassicGroup) -> None:
    """Beside the cases: a protocol that a member lists twice is counted once, also when the member leaves."""
    group.add(member("1", "range", "range"))
    assert group.select_protocol() == "range"
    group.transition_to(PREPARING_REBALANCE, START_MS)
    assert group.supports(CONSUMER, [Protocol("range", b"")])
    group.add(member("2", "range"))
    group.remove("1")
    assert group.select_protocol() == "range"


def test_subscribed_topics(group: ClassicGroup) -> None:
    """testSubscribedTopics, testIsSubscribedToTopic"""
    assert group.subscribed_topics is None
    for protocols, topics in (
        ([subscription("foo")], {"foo"}),
        ([], set()),
        ([Protocol("range", b"")], None),
        ([subscription("foo"), subscription("bar", "foo")], {"foo", "bar"}),
    ):
        group.transition_to(PREPARING_REBALANCE, START_MS)
        for old in tuple(group.members):
            group.remove(old.member_id)
        for number, protocol in enumerate(protocols):
            group.add(member(f"m{number}", protocol))
        group.next_generation(START_MS)
        assert group.subscribed_topics == topics


def test_subscribed_topics_of_others(group: ClassicGroup) -> None:
    """testSubscribedTopicsNonConsumerGroup"""
    group.transition_to(PREPARING_REBALANCE, START_MS)
    group.add(member("m", subscription("foo"), protocol_type="My Protocol"))
    group.next_generation(START_MS)
    assert group.subscribed_topics is None


def test_the_next_generation(group: ClassicGroup) -> None:
    """testInitNextGeneration"""
    group.transition_to(PREPARING_REBALANCE, START_MS)
    group.add(member("m", "roundrobin"), "reply")
    assert (group.generation, group.protocol_name) == (0, None)
    group.next_generation(START_MS)
    assert (group.state, group.generation, group.protocol_name) == (COMPLETING_REBALANCE, 1, "roundrobin")


def test_the_next_generation_of_nobody(group: ClassicGroup) -> None:
    """testInitNextGenerationEmptyGroup"""
    group.transition_to(PREPARING_REBALANCE, START_MS)
    group.next_generation(START_MS)
    assert (group.state, group.generation, group.protocol_name) == (EMPTY, 1, None)


def test_a_commit_is_there_when_the_log_has_it(at: Harness) -> None:
    """testOffsetCommit, testHasPendingNonTxnOffsets"""
    at.hold = True
    at.commit({FOO: 37})
    assert at.shard.context.in_flight.of(GROUP) == {FOO}
    assert at.fetch(FOO, stable=False).offsets[FOO].offset == -1
    at.release()
    assert (at.shard.context.in_flight.of(GROUP), at.fetched()) == (frozenset(), {FOO: 37})


def test_a_commit_that_fails(at: Harness) -> None:
    """testOffsetCommitFailure"""
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.commit({FOO: 37})
    assert (at.shard.context.in_flight.of(GROUP), at.fetched()) == (frozenset(), {})


@pytest.mark.parametrize("first_fails", [True, False])
def test_a_commit_behind_another(at: Harness, first_fails: bool) -> None:
    """testOffsetCommitFailureWithAnotherPending, testOffsetCommitWithAnotherPending"""
    at.hold = True
    at.commit({FOO: 37})
    at.commit({FOO: 57})
    (_, first), (_, second) = at.held
    at.held.clear()
    if first_fails:
        at.take(at.shard.append_failed(first, ErrorCode.NOT_ENOUGH_REPLICAS, at.now_ms))
    else:
        at.take(at.shard.appended(first, 4, at.now_ms))
    assert at.shard.context.in_flight.of(GROUP) == {FOO}
    assert at.fetch(FOO, stable=False).offsets[FOO].offset == (-1 if first_fails else 37)
    at.take(at.shard.appended(second, 5, at.now_ms))
    assert (at.shard.context.in_flight.of(GROUP), at.fetched()) == (frozenset(), {FOO: 57})


@pytest.mark.parametrize("transaction_first", [True, False])
@pytest.mark.parametrize("control_type", [ControlType.COMMIT, ControlType.ABORT])
def test_the_later_commit_wins(at: Harness, transaction_first: bool, control_type: ControlType) -> None:
    """testConsumerBeatsTransactionalOffsetCommit, testTransactionBeatsConsumerOffsetCommit,
    testTransactionalCommitIsAbortedAndConsumerCommitWins"""
    sends: list[Callable[[], Call]] = [lambda: at.commit_in_transaction(13, {FOO: 37}), lambda: at.commit({FOO: 57})]
    for send in sends if transaction_first else reversed(sends):
        assert errors(send().response) == {ErrorCode.NONE}
    assert at.shard.context.state.pending(GROUP).keys() == {FOO}
    at.end_transaction(13, control_type)
    wins = control_type is ControlType.COMMIT and not transaction_first
    assert (at.fetched(), at.shard.context.state.pending(GROUP)) == ({FOO: 37 if wins else 57}, {})


def test_a_transactional_commit_that_fails_leaves_nothing(at: Harness) -> None:
    """testFailedTxnOffsetCommitLeavesNoPendingState, testHasPendingTxnOffsets"""
    at.hold = True
    at.commit_in_transaction(13, {FOO: 37})
    assert at.shard.context.in_flight.of(GROUP) == {FOO}
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.release()
    assert (at.shard.context.in_flight.of(GROUP), at.shard.context.state.pending(GROUP)) == (frozenset(), {})


def test_what_a_member_says_of_itself(group: ClassicGroup) -> None:
    """testUpdateMember"""
    added = member()
    group.add(added)
    group.update(added, (Protocol("roundrobin", b""),), 120_000, 20_000)
    assert (group.rebalance_timeout_ms, added.session_timeout_ms, group.select_protocol()) == (120_000, 20_000, "roundrobin")


def test_replacing_nobody(group: ClassicGroup) -> None:
    """testReplaceGroupInstanceWithNonExistingMember"""
    with pytest.raises(ValueError, match="no static member 'memberId' to replace"):
        group.rename("memberId", "newMemberId")


def test_replacing_an_instance(group: ClassicGroup) -> None:
    """testReplaceGroupInstance: the new id leads; the fencing of parked requests is in the tests of static members."""
    group.add(member(instance=INSTANCE))
    group.add_pending_sync("memberId")
    group.rename("memberId", "newMemberId")
    assert (group.leader, group.static_member_id(INSTANCE), group.pending_sync) == ("newMemberId", "newMemberId", {"newMemberId"})


def test_answering_a_parked_join(group: ClassicGroup) -> None:
    """testInvokeJoinCallback, testNotInvokeJoinCallback, testCompleteJoinFuture, testNotCompleteJoinFuture"""
    waiting, other = member("1"), member("2")
    group.add(waiting, "reply")
    assert group.all_joined
    group.add(other)
    assert not group.all_joined
    at = result()
    response = JoinGroupResponse(ErrorCode.NONE, "1")
    assert [answer_join(at, group, each, response) for each in (waiting, waiting, other)] == [True, False, False]
    assert ([answer.reply for answer in at.answers], group.awaiting_join) == (["reply"], 0)


def test_answering_a_parked_sync(group: ClassicGroup) -> None:
    """testInvokeSyncCallback, testNotInvokeSyncCallback, testCompleteSyncFuture, testNotCompleteSyncFuture"""
    waiting = member()
    group.add(waiting)
    at = result()
    assert not answer_sync(at, waiting, SyncGroupResponse(ErrorCode.NONE))
    park(waiting, "reply")
    assert answer_sync(at, waiting, SyncGroupResponse(ErrorCode.NONE))
    assert ([answer.reply for answer in at.answers], waiting.awaiting_sync) == (["reply"], None)


def park(waiting: Member, reply: ReplyHandle) -> None:
    waiting.awaiting_sync = reply


def test_who_leads(group: ClassicGroup) -> None:
    """testElectNewJoinedLeader, testMaybeElectNewJoinedLeaderChooseExisting"""
    assert not group.elect_joined_leader()
    first, second = member("1"), member("2")
    group.add(first)
    group.add(second)
    assert (group.elect_joined_leader(), group.leader) == (False, "1")
    group.park_join(second, "reply")
    assert (group.elect_joined_leader(), group.leader) == (True, "2")
    group.park_join(first, "reply")
    assert (group.elect_joined_leader(), group.leader) == (True, "2")


def test_a_member_cannot_be_pending(group: ClassicGroup) -> None:
    """testCannotAddPendingMemberIfStable"""
    group.add(member())
    with pytest.raises(ValueError, match="cannot be pending"):
        group.add_pending_member("memberId")


def test_a_pending_member_joins(group: ClassicGroup) -> None:
    """testRemovalFromPendingAfterMemberIsStable"""
    group.add_pending_member("memberId")
    assert "memberId" not in group
    group.add(member())
    assert ("memberId" in group, group.pending_members) == (True, set())


def test_a_pending_member_goes(group: ClassicGroup) -> None:
    """testRemovalFromPendingWhenMemberIsRemoved"""
    group.add_pending_member("memberId")
    group.remove("memberId")
    assert group.pending_members == set()


def test_an_instance_is_there_once(group: ClassicGroup) -> None:
    """testCannotAddStaticMemberIfAlreadyPresent"""
    group.add(member("1", instance=INSTANCE))
    with pytest.raises(ValueError, match="'instance' is already a member"):
        group.add(member("2", instance=INSTANCE))
    assert len(group) == 1


def test_nobody_has_no_pending_sync(group: ClassicGroup) -> None:
    """testCannotAddPendingSyncOfUnknownMember, testCannotRemovePendingSyncOfUnknownMember"""
    for change in (group.add_pending_sync, group.remove_pending_sync):
        with pytest.raises(ValueError, match="is not a member"):
            change("memberId")


def test_pending_syncs(group: ClassicGroup) -> None:
    """testCanAddAndRemovePendingSyncMember, testRemovalFromPendingSyncWhenMemberIsRemoved,
    testNewGenerationClearsPendingSyncMembers"""

    def rebalance() -> None:
        group.transition_to(PREPARING_REBALANCE, START_MS)
        group.next_generation(START_MS)

    ends: tuple[Callable[[], object], ...] = (
        lambda: group.remove_pending_sync("memberId"),
        lambda: group.remove("memberId"),
        rebalance,
    )
    for end in ends:
        if "memberId" not in group:
            group.add(member())
        group.add_pending_sync("memberId")
        assert group.pending_sync == {"memberId"}
        end()
        assert group.pending_sync == set()
