"""A member's reaction to each error, without a coordinator: the responses are made up."""

from typing import Any

import pytest
from expecting import expect
from member_crowd import HERE, found

from coordinator_core.assignors import (
    Assignment,
    Assignor,
    Cluster,
    CooperativeStickyAssignor,
    RangeAssignor,
    StickyAssignor,
    Subscription,
    assignment_bytes,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import (
    GroupMember,
    MemberFailed,
    MemberSettings,
    MemberState,
    OffsetsCommitted,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
)
from coordinator_core.member.effects import Effects
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import FindCoordinatorRequest
from coordinator_core.protocol.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.protocol.offsets import OffsetCommitResponse, OffsetFetchResponse, OffsetToCommit

BACKOFF, INTERVAL, SESSION = 100, 3_000, 45_000
METADATA = Cluster.of_counts({"t": 2})
MINE = (TopicPartition("t", 0), TopicPartition("t", 1))
PARTITION = TopicPartition("t", 0)
GONE = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE]


def a_member(assignor: Assignor | None = None, **more: Any) -> GroupMember:
    return GroupMember(MemberSettings("g", (assignor or RangeAssignor(),), **more), ["t"], METADATA)


def only(effects: Effects) -> Any:
    """The one request among the effects."""
    (request,) = effects.requests
    return request


def subscription_of(effects: Effects) -> Subscription:
    """The subscription in the JoinGroup among the effects: topics and owned partitions."""
    return expect(Subscription, read_subscription(expect(JoinGroupRequest, only(effects)).protocols[0].metadata))


def joining(member: GroupMember, now: int = 0) -> JoinGroupRequest:
    """The JoinGroup of a member that found its coordinator."""
    find = only(member.wake(now))
    return expect(JoinGroupRequest, only(member.receive(find, found(find), now)))


def joined(member: GroupMember, now: int = 0, generation: int = 1, leader: str = "m") -> SyncGroupRequest:
    """The SyncGroup of a member that has joined a generation."""
    join = joining(member, now)
    members = (JoinGroupMember("m", None, join.protocols[0].metadata),) if leader == "m" else ()
    response = JoinGroupResponse(ErrorCode.NONE, "m", generation, "consumer", join.protocols[0].name, leader, False, members)
    return expect(SyncGroupRequest, only(member.receive(join, response, now)))


def stable(assignor: Assignor | None = None, now: int = 0, **more: Any) -> GroupMember:
    """A member, leader of its group, that owns everything."""
    member = a_member(assignor, **more)
    sync = joined(member, now)
    effects = member.receive(sync, SyncGroupResponse(ErrorCode.NONE, None, None, sync.assignments["m"]), now)
    assert effects.events == (PartitionsAssigned(MINE),)
    assert member.state is MemberState.STABLE
    return member


def heartbeat(member: GroupMember, now: int = INTERVAL) -> HeartbeatRequest:
    request = only(member.wake(now))
    assert isinstance(request, HeartbeatRequest)
    return request


def test_finding_the_coordinator() -> None:
    member = a_member()
    find = only(member.wake(5))
    assert find == FindCoordinatorRequest(("g",))
    assert member.wake(6).requests == ()
    assert member.next_wake() is None

    assert member.receive(find, found(find, ErrorCode.COORDINATOR_NOT_AVAILABLE), 7).requests == ()
    assert member.next_wake() == 7 + BACKOFF
    again = only(member.wake(7 + BACKOFF))
    assert isinstance(only(member.receive(again, found(again), 8 + BACKOFF)), JoinGroupRequest)
    assert member.coordinator == HERE


def test_a_group_that_cannot_be_found() -> None:
    member = a_member()
    find = only(member.wake(0))

    effects = member.receive(find, found(find, ErrorCode.INVALID_GROUP_ID), 0)
    problem = "FindCoordinator of group 'g' failed: INVALID_GROUP_ID"
    assert effects.events == (MemberFailed(problem, ErrorCode.INVALID_GROUP_ID),)
    assert member.next_wake() is None


def test_a_member_asks_for_its_id_first() -> None:
    member = a_member()
    join = joining(member)
    again = only(member.receive(join, JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, "given"), 0))

    assert (join.member_id, again.member_id) == ("", "given")
    assert again.protocols == join.protocols


def test_join_while_loading_is_tried_again_later() -> None:
    member = a_member()
    join = joining(member)

    assert member.receive(join, JoinGroupResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ""), 10).requests == ()
    assert member.next_wake() == 10 + BACKOFF
    assert only(member.wake(10 + BACKOFF)) == join


def test_join_while_the_group_is_written_is_tried_again_at_once() -> None:
    member = a_member()
    join = joining(member)

    assert only(member.receive(join, JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, ""), 10)) == join


@pytest.mark.parametrize("error", GONE)
def test_join_at_a_broker_that_is_not_the_coordinator(error: ErrorCode) -> None:
    member = a_member()
    join = joining(member)

    assert member.receive(join, JoinGroupResponse(error, ""), 10).requests == ()
    assert member.coordinator is None
    assert isinstance(only(member.wake(10 + BACKOFF)), FindCoordinatorRequest)


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_join_that_fails_for_good(error: ErrorCode) -> None:
    member = a_member()
    (failed,) = member.receive(joining(member), JoinGroupResponse(error, ""), 0).events

    assert (expect(MemberFailed, failed).error, member.state) == (error, MemberState.FAILED)
    assert member.wake(10**9).requests == ()


def test_the_leader_assigns_and_others_do_not() -> None:
    assert read_assignment(joined(a_member()).assignments["m"]) == Assignment(MINE)
    assert joined(a_member(), leader="another-member").assignments == {}


def test_a_leader_that_must_skip_the_assignment() -> None:
    member = a_member()
    join = joining(member)
    members = (JoinGroupMember("m", None, join.protocols[0].metadata),)
    sync = only(member.receive(join, JoinGroupResponse(ErrorCode.NONE, "m", 1, None, "range", "m", True, members), 0))

    assert (sync.generation, sync.assignments) == (1, {})


def test_a_leader_that_cannot_assign_fails() -> None:
    member = a_member()
    response = JoinGroupResponse(ErrorCode.NONE, "m", 1, None, "sticky", "m")
    (failed,) = member.receive(joining(member), response, 0).events

    assert failed == MemberFailed("the coordinator chose assignor 'sticky', but this member has range")


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(ErrorCode.REBALANCE_IN_PROGRESS, "m"), (ErrorCode.ILLEGAL_GENERATION, "m"), (ErrorCode.UNKNOWN_MEMBER_ID, "")],
)
def test_sync_that_came_too_late(error: ErrorCode, member_id: str) -> None:
    member = a_member()
    again = only(member.receive(joined(member), SyncGroupResponse(error), 0))

    assert isinstance(again, JoinGroupRequest)
    assert again.member_id == member_id


def test_sync_at_a_coordinator_that_loads_anew() -> None:
    member = a_member()
    member.receive(joined(member), SyncGroupResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), 10)

    assert member.next_wake() == 10 + member.settings.retry_backoff_ms
    again = only(member.wake(expect(int, member.next_wake())))
    assert isinstance(again, JoinGroupRequest)
    assert again.member_id == "m"


@pytest.mark.parametrize("error", GONE)
def test_sync_at_a_broker_that_is_not_the_coordinator(error: ErrorCode) -> None:
    member = a_member()
    member.receive(joined(member), SyncGroupResponse(error), 0)

    find = only(member.wake(BACKOFF))
    assert only(member.receive(find, found(find), BACKOFF)).member_id == "m"


def test_an_unreadable_assignment() -> None:
    member = a_member()
    (failed,) = member.receive(joined(member, leader=""), SyncGroupResponse(ErrorCode.NONE, None, None, b"?"), 0).events

    assert expect(MemberFailed, failed).problem.startswith("assignment of generation 1: malformed")


def test_an_assignment_of_what_is_no_longer_wanted() -> None:
    member = a_member()
    sync = joined(member, leader="")
    member.subscribe(["u"])
    effects = member.receive(sync, SyncGroupResponse(ErrorCode.NONE, None, None, assignment_bytes(Assignment(MINE))), 0)

    assert (effects.events, member.owned) == ((), ())
    assert subscription_of(effects).topics == ("u",)


def test_heartbeats_come_one_at_a_time() -> None:
    member = stable()
    assert member.next_wake() == INTERVAL
    assert member.wake(INTERVAL - 1).requests == ()

    first = heartbeat(member)
    assert member.wake(2 * INTERVAL).requests == ()
    assert member.next_wake() == SESSION
    member.receive(first, HeartbeatResponse(ErrorCode.NONE), INTERVAL + 1)
    assert member.next_wake() == 2 * INTERVAL


def test_a_rebalance_that_a_heartbeat_tells_of() -> None:
    member = stable()
    effects = member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL)

    assert effects.events == (PartitionsRevoked(MINE),)
    assert only(effects).member_id == "m"


def test_a_cooperative_member_says_what_it_keeps() -> None:
    member = stable(CooperativeStickyAssignor())
    effects = member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL)

    subscription = subscription_of(effects)
    assert effects.events == ()
    assert (subscription.owned_partitions, subscription.generation_id, subscription.user_data) == (MINE, 1, b"\x00\x00\x00\x01")


def test_a_sticky_member_says_what_it_had() -> None:
    member = stable(StickyAssignor())
    effects = member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL)

    subscription = subscription_of(effects)
    assert subscription.owned_partitions == ()
    assert subscription.user_data == StickyAssignor(MINE, 1).subscription_user_data(["t"])


@pytest.mark.parametrize(("error", "member_id"), [(ErrorCode.ILLEGAL_GENERATION, "m"), (ErrorCode.UNKNOWN_MEMBER_ID, "")])
def test_a_member_that_is_none_any_more(error: ErrorCode, member_id: str) -> None:
    member = stable(CooperativeStickyAssignor())
    effects = member.receive(heartbeat(member), HeartbeatResponse(error), INTERVAL)

    assert effects.events == (PartitionsLost(MINE),)
    assert only(effects).member_id == member_id
    assert subscription_of(effects).owned_partitions == ()


def test_a_fenced_member_fails() -> None:
    member = stable(group_instance_id="i")
    effects = member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.FENCED_INSTANCE_ID), INTERVAL)

    assert [type(event) for event in effects.events] == [PartitionsLost, MemberFailed]


def test_a_session_without_answers_ends_at_the_coordinator() -> None:
    member = stable()
    unanswered = heartbeat(member)

    assert member.wake(SESSION).requests == ()
    assert member.coordinator is None
    assert member.owned == MINE
    find = only(member.wake(SESSION + BACKOFF))
    assert member.receive(find, found(find), SESSION + BACKOFF).requests[0] == unanswered


def test_a_broken_connection_in_a_rebalance_begins_it_again() -> None:
    member = a_member()
    sync = joined(member)
    member.disconnected(10)
    assert member.receive(sync, SyncGroupResponse(ErrorCode.NONE), 11).requests == ()

    find = only(member.wake(10 + BACKOFF))
    assert isinstance(find, FindCoordinatorRequest)
    assert only(member.receive(find, found(find), 10 + BACKOFF)).member_id == "m"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ErrorCode.NONE, MemberState.STABLE),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, MemberState.STABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, MemberState.STABLE),
        (ErrorCode.REBALANCE_IN_PROGRESS, MemberState.PREPARING_REBALANCE),
        (ErrorCode.ILLEGAL_GENERATION, MemberState.PREPARING_REBALANCE),
        (ErrorCode.UNKNOWN_MEMBER_ID, MemberState.PREPARING_REBALANCE),
    ],
)
def test_commits(error: ErrorCode, state: MemberState) -> None:
    member = stable()
    request = member.commit({PARTITION: OffsetToCommit(5)})
    assert (request.member_id, request.generation) == ("m", 1)
    effects = member.receive(request, OffsetCommitResponse({PARTITION: error}), 1)

    assert OffsetsCommitted({PARTITION: error}) in effects.events
    assert member.state is state


def test_a_commit_of_a_former_generation_changes_nothing() -> None:
    member = stable()
    late = member.commit({PARTITION: OffsetToCommit(5)})
    join = only(member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL))
    sync = only(member.receive(join, JoinGroupResponse(ErrorCode.NONE, "m", 2, None, "range", ""), INTERVAL))
    effects = member.receive(late, OffsetCommitResponse({PARTITION: ErrorCode.ILLEGAL_GENERATION}), INTERVAL)

    assert isinstance(sync, SyncGroupRequest)
    assert effects.requests == ()
    assert member.generation == 2


@pytest.mark.parametrize("error", [*GONE, ErrorCode.REQUEST_TIMED_OUT])
def test_a_commit_at_a_broker_that_is_not_the_coordinator(error: ErrorCode) -> None:
    member = stable()
    member.receive(member.commit({PARTITION: OffsetToCommit(5)}), OffsetCommitResponse({PARTITION: error}), 0)

    assert (member.coordinator, member.owned) == (None, MINE)


@pytest.mark.parametrize("error", GONE)
def test_a_fetch_at_a_broker_that_is_not_the_coordinator(error: ErrorCode) -> None:
    member = stable()
    member.receive(member.fetch((PARTITION,)), OffsetFetchResponse(error, {}), 0)

    assert member.coordinator is None


def test_leaving() -> None:
    member = stable()
    effects = member.leave()

    assert effects.events == (PartitionsRevoked(MINE),)
    assert isinstance(only(effects), LeaveGroupRequest)
    assert (member.next_wake(), member.leave().requests) == (None, ())


def test_a_static_member_leaves_without_a_word() -> None:
    assert stable(group_instance_id="i").leave().requests == ()


def test_leaving_in_a_rebalance_tells_the_coordinator_and_forgets_the_answer() -> None:
    member = stable(CooperativeStickyAssignor())
    join = only(member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL))
    effects = member.leave()

    assert effects.events == (PartitionsLost(MINE),)
    assert isinstance(only(effects), LeaveGroupRequest)
    assert member.receive(join, JoinGroupResponse(ErrorCode.NONE, "m", 2), INTERVAL).requests == ()


def test_heartbeats_have_to_come_within_the_session() -> None:
    with pytest.raises(ValueError, match="heartbeat_interval_ms is 10: use 1–9, below session_timeout_ms"):
        MemberSettings("g", session_timeout_ms=10, heartbeat_interval_ms=10)


def test_the_rack_goes_with_the_subscription() -> None:
    join = joining(a_member(rack_id="r"))

    assert join.protocols[0].metadata == subscription_bytes(Subscription(("t",), rack_id="r"))
