"""What a member does about each error, without a coordinator: the responses are made up."""

import pytest
from member_crowd import HERE, found

from coordinator_core.assignors import (
    Assignment,
    ClusterMetadata,
    CooperativeStickyAssignor,
    RangeAssignor,
    StickyAssignor,
    Subscription,
    TopicPartition,
    assignment_bytes,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import FindCoordinatorRequest
from coordinator_core.coordinator.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.coordinator.messages.offsets import OffsetCommitResponse, OffsetFetchResponse, OffsetToCommit
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
from coordinator_core.state import offsets

BACKOFF, INTERVAL, SESSION = 100, 3_000, 45_000
METADATA = ClusterMetadata.of_counts({"t": 2})
MINE = (TopicPartition("t", 0), TopicPartition("t", 1))
PARTITION = offsets.TopicPartition("t", 0)
GONE = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE]


def a_member(assignor=None, **more):
    return GroupMember(MemberSettings("g", (assignor or RangeAssignor(),), **more), ["t"], METADATA)


def only(effects):
    """The one request among the effects."""
    (request,) = effects.requests
    return request


def joining(member, now=0):
    """The JoinGroup of a member that found its coordinator."""
    find = only(member.wake(now))
    return only(member.receive(find, found(find), now))


def joined(member, now=0, generation=1, leader="m"):
    """The SyncGroup of a member that got into a generation."""
    join = joining(member, now)
    members = (JoinGroupMember("m", None, join.protocols[0].metadata),) if leader == "m" else ()
    response = JoinGroupResponse(ErrorCode.NONE, "m", generation, "consumer", join.protocols[0].name, leader, False, members)
    return only(member.receive(join, response, now))


def stable(assignor=None, now=0, **more):
    """A member, leader of its group, that owns everything."""
    member = a_member(assignor, **more)
    sync = joined(member, now)
    effects = member.receive(sync, SyncGroupResponse(ErrorCode.NONE, None, None, sync.assignments["m"]), now)
    assert effects.events == (PartitionsAssigned(MINE),)
    assert member.state is MemberState.STABLE
    return member


def heartbeat(member, now=INTERVAL):
    request = only(member.wake(now))
    assert isinstance(request, HeartbeatRequest)
    return request


def test_finding_the_coordinator():
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


def test_a_group_that_cannot_be_found():
    member = a_member()
    find = only(member.wake(0))

    effects = member.receive(find, found(find, ErrorCode.INVALID_GROUP_ID), 0)
    problem = "FindCoordinator of group 'g' failed: INVALID_GROUP_ID"
    assert effects.events == (MemberFailed(problem, ErrorCode.INVALID_GROUP_ID),)
    assert member.next_wake() is None


def test_a_member_asks_for_its_id_first():
    member = a_member()
    join = joining(member)
    again = only(member.receive(join, JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, "given"), 0))

    assert (join.member_id, again.member_id) == ("", "given")
    assert again.protocols == join.protocols


def test_join_while_loading_is_tried_again_later():
    member = a_member()
    join = joining(member)

    assert member.receive(join, JoinGroupResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ""), 10).requests == ()
    assert member.next_wake() == 10 + BACKOFF
    assert only(member.wake(10 + BACKOFF)) == join


def test_join_while_the_group_is_written_is_tried_again_at_once():
    member = a_member()
    join = joining(member)

    assert only(member.receive(join, JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, ""), 10)) == join


@pytest.mark.parametrize("error", GONE)
def test_join_at_somebody_who_does_not_coordinate(error):
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
def test_join_that_fails_for_good(error):
    member = a_member()
    (failed,) = member.receive(joining(member), JoinGroupResponse(error, ""), 0).events

    assert (failed.error, member.state) == (error, MemberState.FAILED)
    assert member.wake(10**9).requests == ()


def test_the_leader_assigns_and_others_do_not():
    assert read_assignment(joined(a_member()).assignments["m"]) == Assignment(MINE)
    assert joined(a_member(), leader="somebody else").assignments == {}


def test_a_leader_that_is_told_to_skip_the_assignment():
    member = a_member()
    join = joining(member)
    members = (JoinGroupMember("m", None, join.protocols[0].metadata),)
    sync = only(member.receive(join, JoinGroupResponse(ErrorCode.NONE, "m", 1, None, "range", "m", True, members), 0))

    assert (sync.generation, sync.assignments) == (1, {})


def test_a_leader_that_cannot_assign_fails():
    member = a_member()
    response = JoinGroupResponse(ErrorCode.NONE, "m", 1, None, "sticky", "m")
    (failed,) = member.receive(joining(member), response, 0).events

    assert failed == MemberFailed("the coordinator chose assignor 'sticky', this member has range")


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(ErrorCode.REBALANCE_IN_PROGRESS, "m"), (ErrorCode.ILLEGAL_GENERATION, "m"), (ErrorCode.UNKNOWN_MEMBER_ID, "")],
)
def test_sync_that_came_too_late(error, member_id):
    member = a_member()
    again = only(member.receive(joined(member), SyncGroupResponse(error), 0))

    assert isinstance(again, JoinGroupRequest)
    assert again.member_id == member_id


def test_sync_at_a_coordinator_that_loads_anew():
    member = a_member()
    member.receive(joined(member), SyncGroupResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), 10)

    assert member.next_wake() == 10 + member.settings.retry_backoff_ms
    again = only(member.wake(member.next_wake()))
    assert isinstance(again, JoinGroupRequest)
    assert again.member_id == "m"


@pytest.mark.parametrize("error", GONE)
def test_sync_at_somebody_who_does_not_coordinate(error):
    member = a_member()
    member.receive(joined(member), SyncGroupResponse(error), 0)

    find = only(member.wake(BACKOFF))
    assert only(member.receive(find, found(find), BACKOFF)).member_id == "m"


def test_an_assignment_that_nobody_can_read():
    member = a_member()
    (failed,) = member.receive(joined(member, leader=""), SyncGroupResponse(ErrorCode.NONE, None, None, b"?"), 0).events

    assert failed.problem.startswith("assignment of generation 1: malformed")


def test_an_assignment_of_what_is_no_longer_wanted():
    member = a_member()
    sync = joined(member, leader="")
    member.subscribe(["u"])
    effects = member.receive(sync, SyncGroupResponse(ErrorCode.NONE, None, None, assignment_bytes(Assignment(MINE))), 0)

    assert (effects.events, member.owned) == ((), ())
    assert read_subscription(only(effects).protocols[0].metadata).topics == ("u",)


def test_heartbeats_come_one_at_a_time():
    member = stable()
    assert member.next_wake() == INTERVAL
    assert member.wake(INTERVAL - 1).requests == ()

    first = heartbeat(member)
    assert member.wake(2 * INTERVAL).requests == ()
    assert member.next_wake() == SESSION
    member.receive(first, HeartbeatResponse(ErrorCode.NONE), INTERVAL + 1)
    assert member.next_wake() == 2 * INTERVAL


def test_a_rebalance_that_a_heartbeat_tells_of():
    member = stable()
    effects = member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL)

    assert effects.events == (PartitionsRevoked(MINE),)
    assert only(effects).member_id == "m"


def test_a_cooperative_member_says_what_it_keeps():
    member = stable(CooperativeStickyAssignor())
    effects = member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL)

    told = read_subscription(only(effects).protocols[0].metadata)
    assert effects.events == ()
    assert (told.owned_partitions, told.generation_id, told.user_data) == (MINE, 1, b"\x00\x00\x00\x01")


def test_a_sticky_member_says_what_it_had():
    member = stable(StickyAssignor())
    effects = member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL)

    told = read_subscription(only(effects).protocols[0].metadata)
    assert told.owned_partitions == ()
    assert told.user_data == StickyAssignor(MINE, 1).subscription_user_data(["t"])


@pytest.mark.parametrize(("error", "member_id"), [(ErrorCode.ILLEGAL_GENERATION, "m"), (ErrorCode.UNKNOWN_MEMBER_ID, "")])
def test_a_member_that_is_none_any_more(error, member_id):
    member = stable(CooperativeStickyAssignor())
    effects = member.receive(heartbeat(member), HeartbeatResponse(error), INTERVAL)

    assert effects.events == (PartitionsLost(MINE),)
    assert only(effects).member_id == member_id
    assert read_subscription(only(effects).protocols[0].metadata).owned_partitions == ()


def test_a_fenced_member_fails():
    member = stable(group_instance_id="i")
    effects = member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.FENCED_INSTANCE_ID), INTERVAL)

    assert [type(event) for event in effects.events] == [PartitionsLost, MemberFailed]


def test_a_session_without_answers_ends_at_the_coordinator():
    member = stable()
    unanswered = heartbeat(member)

    assert member.wake(SESSION).requests == ()
    assert member.coordinator is None
    assert member.owned == MINE
    find = only(member.wake(SESSION + BACKOFF))
    assert member.receive(find, found(find), SESSION + BACKOFF).requests[0] == unanswered


def test_a_broken_connection_in_a_rebalance_begins_it_again():
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
def test_commits(error, state):
    member = stable()
    request = member.commit({PARTITION: OffsetToCommit(5)})
    assert (request.member_id, request.generation) == ("m", 1)
    effects = member.receive(request, OffsetCommitResponse({PARTITION: error}), 1)

    assert OffsetsCommitted({PARTITION: error}) in effects.events
    assert member.state is state


def test_a_commit_of_a_former_generation_changes_nothing():
    member = stable()
    late = member.commit({PARTITION: OffsetToCommit(5)})
    join = only(member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL))
    sync = only(member.receive(join, JoinGroupResponse(ErrorCode.NONE, "m", 2, None, "range", ""), INTERVAL))
    effects = member.receive(late, OffsetCommitResponse({PARTITION: ErrorCode.ILLEGAL_GENERATION}), INTERVAL)

    assert isinstance(sync, SyncGroupRequest)
    assert effects.requests == ()
    assert member.generation == 2


@pytest.mark.parametrize("error", [*GONE, ErrorCode.REQUEST_TIMED_OUT])
def test_a_commit_at_somebody_who_does_not_coordinate(error):
    member = stable()
    member.receive(member.commit({PARTITION: OffsetToCommit(5)}), OffsetCommitResponse({PARTITION: error}), 0)

    assert (member.coordinator, member.owned) == (None, MINE)


@pytest.mark.parametrize("error", GONE)
def test_a_fetch_at_somebody_who_does_not_coordinate(error):
    member = stable()
    member.receive(member.fetch((PARTITION,)), OffsetFetchResponse(error, {}), 0)

    assert member.coordinator is None


def test_leaving():
    member = stable()
    effects = member.leave()

    assert effects.events == (PartitionsRevoked(MINE),)
    assert isinstance(only(effects), LeaveGroupRequest)
    assert (member.next_wake(), member.leave().requests) == (None, ())


def test_a_static_member_leaves_without_a_word():
    assert stable(group_instance_id="i").leave().requests == ()


def test_leaving_in_a_rebalance_tells_the_coordinator_and_forgets_the_answer():
    member = stable(CooperativeStickyAssignor())
    join = only(member.receive(heartbeat(member), HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS), INTERVAL))
    effects = member.leave()

    assert effects.events == (PartitionsLost(MINE),)
    assert isinstance(only(effects), LeaveGroupRequest)
    assert member.receive(join, JoinGroupResponse(ErrorCode.NONE, "m", 2), INTERVAL).requests == ()


def test_heartbeats_have_to_come_within_the_session():
    with pytest.raises(ValueError, match="heartbeat_interval_ms 10 is not in 1–9, below session_timeout_ms"):
        MemberSettings("g", session_timeout_ms=10, heartbeat_interval_ms=10)


def test_the_rack_goes_with_the_subscription():
    join = joining(a_member(rack_id="r"))

    assert join.protocols[0].metadata == subscription_bytes(Subscription(("t",), rack_id="r"))
