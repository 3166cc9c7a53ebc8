"""Listing, describing and deleting groups, and requests while loading, as in Kafka's `GroupCoordinatorTest`; each test
names the cases it mirrors."""

from coordinator_harness import CONSUMER, GROUP, LEADER, OTHER_GROUP, Harness, errors

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.describe import merge_lists
from coordinator_core.group_coordinator.find import NO_NODE, find_coordinators
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    CoordinatorType,
    FindCoordinatorRequest,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    Node,
)

PARTITION = TopicPartition("topic", 0)


def test_requests_while_loading(at: Harness) -> None:
    """testRequestHandlingWhileLoadingInProgress; SyncGroup gets the retriable error of each coordinator."""
    other = at.coordinator.partition_for(OTHER_GROUP)
    shard = at.coordinator.shards[other] = GroupCoordinatorShard(other, at.config, str)
    assert shard.begin_load(1, at.now_ms)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for instance in (None, "instance"):
        assert at.join("memberId", group=OTHER_GROUP, instance=instance).error is loading
    waits = ErrorCode.REBALANCE_IN_PROGRESS if at.era == "3" else loading
    assert at.sync("memberId", 1, group=OTHER_GROUP).error is waits
    assert errors(at.commit({PARTITION: 15}, "memberId", 1, group=OTHER_GROUP).response) == {loading}
    assert at.heartbeat("memberId", 1, group=OTHER_GROUP) is ErrorCode.NONE
    assert at.describe(OTHER_GROUP).error is loading
    assert at.send(ListGroupsRequest(), other).error is loading
    assert at.delete(OTHER_GROUP).error is loading
    assert at.describe(GROUP).error is ErrorCode.NONE
    shard.finish_load(at.now_ms)
    assert at.describe(OTHER_GROUP).error is ErrorCode.NONE


def test_a_coordinator_that_is_not_active_answers_so(at: Harness) -> None:
    """Beside the cases: before start and after shutdown; an invalid group id is checked first."""
    at.coordinator.active = False
    assert at.join().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert at.join(group="").error is ErrorCode.INVALID_GROUP_ID


def test_list_includes_groups_of_every_state(at: Harness) -> None:
    """testListGroupsIncludesStableGroups, testListGroupsIncludesRebalancingGroups"""
    joined = at.joined()
    assert at.list().groups == (ListedGroup(GROUP, CONSUMER, "CompletingRebalance", "classic"),)
    at.sync(joined.member_id, 1)
    assert at.list().groups == (ListedGroup(GROUP, CONSUMER, "Stable", "classic"),)


def test_list_by_state(at: Harness) -> None:
    """testListGroupsWithStates, testIsInStates"""
    everything = {state.value for state in ClassicGroupState}
    joined = at.joined()
    for state, then in (
        ("CompletingRebalance", lambda: at.sync(joined.member_id, 1)),
        ("Stable", lambda: at.leave(joined.member_id)),
        ("Empty", lambda: None),
    ):
        assert [len(at.list({state}).groups), len(at.list({state.upper()}).groups)] == [1, 1]
        assert at.list(everything - {state}).groups == ()
        then()


def test_list_by_type(at: Harness) -> None:
    """testListGroupsWithTypes"""
    at.stable_member()
    found = [len(at.list(types=types).groups) for types in ({"classic"}, {"consumer"}, {"Invalid"}, set(), {"Classic"})]
    assert found == [1, 0, 0, 1, 1]


def test_lists_of_log_partitions_are_merged() -> None:
    """Beside the cases: a log partition that is loading is reported, those of other coordinators are not."""
    some = ListGroupsResponse(ErrorCode.NONE, (ListedGroup(GROUP, CONSUMER, "Stable", "classic"),))
    other = ListGroupsResponse(ErrorCode.NOT_COORDINATOR)
    loading = ListGroupsResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert merge_lists([some, other], lists_while_loading=False) == some
    assert merge_lists([some, loading], lists_while_loading=False) == loading
    partial = ListGroupsResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, some.groups)
    assert merge_lists([some, loading], lists_while_loading=True) == partial


def test_describing_with_the_wrong_coordinator(at: Harness) -> None:
    """testDescribeGroupWrongCoordinator"""
    assert at.describe(OTHER_GROUP).error is ErrorCode.NOT_COORDINATOR


def test_describing_no_group(at: Harness) -> None:
    """testDescribeGroupInactiveGroup; an error since v6 (KIP-1043)."""
    described = at.describe()
    assert (described.error, described.state, described.protocol_type, described.members) == (ErrorCode.NONE, "Dead", "", ())
    assert at.describe(missing_is_error=True).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_describing_a_stable_group(at: Harness) -> None:
    """testDescribeGroupStableForDynamicMember, testDescribeGroupStableForStaticMember"""
    for instance in (None, LEADER):
        one = Harness(at.era)
        joined = one.stable_member(instance=instance)
        described = one.describe()
        assert (described.error, described.state) == (ErrorCode.NONE, "Stable")
        assert (described.protocol_type, described.protocol) == (CONSUMER, "range")
        assert [(m.member_id, m.group_instance_id) for m in described.members] == [(joined.member_id, instance)]


def test_describing_a_rebalance(at: Harness) -> None:
    """testDescribeGroupRebalancing"""
    joined = at.joined()
    described = at.describe()
    assert (described.state, described.protocol_type, described.protocol) == ("CompletingRebalance", CONSUMER, "")
    assert [(m.member_id, m.metadata, m.assignment) for m in described.members] == [(joined.member_id, b"", b"")]


def test_deleting_a_group_in_use(at: Harness) -> None:
    """testDeleteNonEmptyGroup, testValidateDeleteGroup"""
    at.joined()
    assert at.delete().error is ErrorCode.NON_EMPTY_GROUP


def test_deleting_what_is_no_group_of_ours(at: Harness) -> None:
    """testDeleteGroupWithInvalidGroupId, testDeleteGroupWithWrongCoordinator, testDeleteGroupsInvalidGroupId"""
    assert at.delete(None).error is ErrorCode.INVALID_GROUP_ID  # type: ignore[arg-type]  # as a client may send it
    assert at.delete(OTHER_GROUP).error is ErrorCode.NOT_COORDINATOR
    assert at.delete().error is ErrorCode.GROUP_ID_NOT_FOUND


def test_deleting_an_empty_group(at: Harness) -> None:
    """testDeleteEmptyGroup, testDeleteGroups"""
    at.leave(at.joined().member_id)
    assert at.delete().error is ErrorCode.NONE
    assert at.describe().state == "Dead"


def test_deleting_an_empty_group_with_offsets(at: Harness) -> None:
    """testDeleteEmptyGroupWithStoredOffsets, testDeleteGroupAllOffsets"""
    joined = at.stable_member()
    assert errors(at.commit({PARTITION: 0}, joined.member_id, 1).response) == {ErrorCode.NONE}
    assert at.describe().members[0].member_id == joined.member_id
    at.leave(joined.member_id)
    assert at.delete().error is ErrorCode.NONE
    assert at.describe().state == "Dead"
    assert at.fetched() == {}
    assert (dict(at.loaded().groups()), at.loaded().snapshot().committed) == ({}, {})


def test_a_group_that_could_not_be_deleted_is_there_again(at: Harness) -> None:
    """Beside the cases: Empty, with all its previous contents."""
    at.leave(at.joined().member_id)
    at.commit({PARTITION: 7})
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert at.delete().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    at.append_error = None
    assert (at.describe().state, at.fetched()) == ("Empty", {PARTITION: 7})
    assert at.group().generation == 2


def test_neither_the_empty_group_nor_its_end_reaches_the_log(at: Harness) -> None:
    """Beside the cases: members that left are not restored from the last record in the log."""
    joined = at.stable_member()
    at.hold = True
    at.leave(joined.member_id)
    deleted = at.delete()
    at.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    at.release()
    assert deleted.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (at.state, at.group().generation, len(at.group())) == (ClassicGroupState.EMPTY, 2, 0)
    at.append_error = None
    assert at.delete().error is ErrorCode.NONE
    assert dict(at.loaded().groups()) == {}


def test_a_commit_on_its_way_goes_with_its_group(at: Harness) -> None:
    """Beside the cases: the tombstones follow it in the log."""
    at.commit({PARTITION: 1})
    at.hold = True
    moving = at.commit({TopicPartition("topic", 1): 2})
    deleted = at.delete()
    at.release()
    assert (errors(moving.response), deleted.error) == ({ErrorCode.NONE}, ErrorCode.NONE)
    assert at.loaded().snapshot().committed == {}


class OneNode:
    """All group coordinators on one node; transaction coordinators do not exist."""

    node = Node(7, "host", 9092)

    def partitions(self, kind: CoordinatorType) -> int | None:
        return 50 if kind is CoordinatorType.GROUP else None

    def leader(self, kind: CoordinatorType, partition: int) -> Node | None:
        return self.node if kind is CoordinatorType.GROUP and partition < 49 else None


def test_finding_coordinators() -> None:
    """Beside the cases: FindCoordinator, of partitions with and without leader, and of topics that do not exist."""
    keys = tuple(f"group-{number}" for number in range(200))
    found = find_coordinators(OneNode(), FindCoordinatorRequest(keys)).coordinators
    assert {(each.error, each.node) for each in found} == {
        (ErrorCode.NONE, OneNode.node),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_NODE),
    }
    [missing] = find_coordinators(OneNode(), FindCoordinatorRequest(("t",), CoordinatorType.TRANSACTION)).coordinators
    assert missing.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
