"""The replay and clean-up cases of Kafka's `GroupCoordinatorShardTest` (Java, 4.3).

That test checks which manager gets a record; here each case states how the record changes the state. `…WithNullValue` cases
replay a tombstone twice: for a group that does not exist, where it does nothing, and for one that has the record.
"""

from typing import Any
from uuid import UUID

import pytest
from log_builder import GROUP, MEMBER_KEYED, NOW_MS, TOPIC, Log, member, offsets, pending, retention_ms

from coordinator_core.codec import Record
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from coordinator_core.codec.messages.modern import (
    PartitionMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicMetadata,
    TopicPartitions,
)
from coordinator_core.codec.messages.share import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
)
from coordinator_core.codec.messages.streams import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
    Subtopology,
    TaskIds,
)
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.state.anomaly import AnomalyKind
from coordinator_core.state.era import Era
from coordinator_core.state.expiry import expire
from coordinator_core.state.group_state import GroupState
from coordinator_core.state.views import GroupView, TopicAssignment

TOPIC_ID = UUID(int=99)
NAMES = {TOPIC_ID: TOPIC}
PARTITIONS = (TopicPartitions(TOPIC_ID, (2, 0)),)
ASSIGNED = (TopicAssignment(TOPIC, TOPIC_ID, (0, 2)),)
TASKS = (TaskIds("0", (1,)),)
TOPOLOGY = StreamsGroupTopologyValue(3, (Subtopology("0", (TOPIC,)),))


@pytest.fixture
def log() -> Log:
    return Log()


def view(state: GroupState) -> GroupView:
    return state.registry.groups[GROUP].view(NAMES)


CONSUMER_MEMBER = ConsumerGroupMemberMetadataValue(
    "instance", "rack", "client", "/host", (TOPIC,), "f.*", 5000, "range", classic_member_metadata=None
)
STREAMS_MEMBER = StreamsGroupMemberMetadataValue("instance", "rack", "client", "/host", 5000, 3, "process")

#: case → record type, value, resulting fields of the group's view (a member's field with the prefix "member.")
REPLAYED: dict[str, tuple[int, Any, dict[str, Any]]] = {
    "testReplayConsumerGroupMetadata": (
        3,
        ConsumerGroupMetadataValue(10),
        {"group_type": "consumer", "generation": 10, "state": "Empty", "protocol": "uniform", "members": ()},
    ),
    "testReplayConsumerGroupPartitionMetadata": (
        4,
        PartitionMetadataValue((TopicMetadata(TOPIC_ID, TOPIC, 3),)),
        {"group_type": "consumer", "state": "Empty"},
    ),
    "testReplayConsumerGroupMemberMetadata": (
        5,
        CONSUMER_MEMBER,
        {
            "protocol": "range",
            "subscribed_topics": (TOPIC,),
            "member.group_instance_id": "instance",
            "member.rack_id": "rack",
            "member.client_host": "/host",
            "member.subscribed_regex": "f.*",
            "member.rebalance_timeout_ms": 5000,
            "member.session_timeout_ms": None,
        },
    ),
    "testReplayConsumerGroupTargetAssignmentMetadata": (6, TargetAssignmentMetadataValue(7), {"state": "Empty"}),
    "testReplayConsumerGroupTargetAssignmentMember": (
        7,
        TargetAssignmentMemberValue(PARTITIONS),
        {"members": ()},
    ),
    "testReplayConsumerGroupCurrentMemberAssignment": (
        8,
        ConsumerGroupCurrentMemberAssignmentValue(10, 9, 2, PARTITIONS),
        {"member.assigned": ASSIGNED, "member.member_epoch": 10, "member.member_state": "UNRELEASED_PARTITIONS"},
    ),
    "testReplayStreamsGroupMetadata": (17, StreamsGroupMetadataValue(10, 0), {"group_type": "streams", "generation": 10}),
    "testReplayStreamsGroupMemberMetadata": (
        19,
        STREAMS_MEMBER,
        {"member.group_instance_id": "instance", "member.rebalance_timeout_ms": 5000, "state": "NotReady"},
    ),
    "testReplayStreamsGroupTargetAssignmentMetadata": (20, TargetAssignmentMetadataValue(7), {"state": "Empty"}),
    "testReplayStreamsGroupTargetAssignmentMember": (
        21,
        StreamsGroupTargetAssignmentMemberValue(TASKS),
        {"members": ()},
    ),
    "testReplayStreamsGroupCurrentMemberAssignment": (
        22,
        StreamsGroupCurrentMemberAssignmentValue(10, 9, 2, TASKS),
        {
            "member.assigned": (TopicAssignment(None, None, (1,)),),
            "member.member_epoch": 10,
            "member.member_state": "UNREVOKED_TASKS",
        },
    ),
    "testReplayStreamsGroupTopology": (23, TOPOLOGY, {"group_type": "streams", "state": "Empty", "subscribed_topics": ()}),
    "testReplayShareGroupMetadata": (
        11,
        ShareGroupMetadataValue(10, 0),
        {"group_type": "share", "generation": 10, "state": "Empty"},
    ),
    "testReplayShareGroupMemberMetadata": (
        10,
        ShareGroupMemberMetadataValue("rack", "client", "/host", (TOPIC,)),
        {"state": "Stable", "member.rack_id": "rack", "member.subscribed_topics": (TOPIC,)},
    ),
}


@pytest.mark.parametrize("case", REPLAYED)
def test_replay_of_a_value(log: Log, case: str) -> None:
    record_type, value, expected = REPLAYED[case]
    log.modern(record_type, value)
    group = view(log.load("4"))
    found = {
        name: getattr(group.members[0], name.removeprefix("member.")) if name.startswith("member.") else getattr(group, name)
        for name in expected
    }
    assert found == expected


#: case → record type and value that the tombstone removes
TOMBSTONES = {
    f"{case.replace('AssignmentMember', 'AssignmentMemberKey')}WithNullValue": (record_type, value)
    for case, (record_type, value, _) in REPLAYED.items()
}


@pytest.mark.parametrize("case", TOMBSTONES)
def test_replay_of_a_tombstone(log: Log, case: str) -> None:
    record_type, value = TOMBSTONES[case]
    log.modern(record_type, None)
    assert log.load("4").groups() == {}
    log.modern(record_type, value)
    log.modern(record_type, None)
    assert log.load("4").groups() == {}


def test_tombstones_of_members_that_are_not_there(log: Log) -> None:
    """Beside testReplay…WithNullValue: they do nothing (KAFKA-17306)"""
    for record_type in sorted(MEMBER_KEYED):
        log.modern(record_type, None, member="stranger")
    log.consumer_member("m1")
    for record_type in (8, 7, 5):
        log.modern(record_type, None, member="stranger")
    assert [m.member_id for m in view(log.load("4")).members] == ["m1"]


def test_replay_offset_commit(log: Log) -> None:
    """testReplayOffsetCommit, testReplayOffsetCommitWithNullValue"""
    log.commit(0, 100)
    log.commit(1, 101)
    log.offset_tombstone(1)
    assert offsets(log.load("4")) == {0: 100}


def test_replay_transactional_offset_commit(log: Log) -> None:
    """testReplayTransactionalOffsetCommit"""
    log.commit(0, 100, producer=100)
    log.commit(1, 101, producer=101)
    assert pending(log.load("4")) == {0: {100: 100}, 1: {101: 101}}


def test_replay_end_transaction_marker(log: Log) -> None:
    """testReplayEndTransactionMarker: a marker ends the transaction of its producer in its own partition"""
    log.commit(0, 100, producer=100)
    elsewhere = Log(partition=1)
    elsewhere.marker(100)
    log.records += elsewhere.records
    assert pending(log.load("4")) == {0: {100: 100}}
    log.marker(100)
    assert offsets(log.load("4")) == {0: 100}


def test_replay_group_metadata(log: Log) -> None:
    """testReplayGroupMetadata, testReplayGroupMetadataWithNullValue: the tombstone of a classic group removes any group"""
    log.group([member()])
    assert log.load("4").groups()[GROUP].group_type == "classic"
    log.group_tombstone()
    assert log.load("4").groups() == {}
    log.consumer_member(group="modern")
    log.group_tombstone("modern")
    assert log.load("4").groups() == {}


def test_replay_key_cannot_be_null(log: Log) -> None:
    """testReplayKeyCannotBeNull: fatal for a broker, reported here"""
    log.raw(None, b"")
    _, (anomaly,) = log.load_with_anomalies("4")
    assert anomaly.kind is AnomalyKind.UNDECODABLE


def test_replay_consumer_group_regular_expression(log: Log) -> None:
    """testReplayConsumerGroupRegularExpression, testReplayConsumerGroupRegularExpressionTombstone"""
    key = ConsumerGroupRegularExpressionKey(GROUP, "f.*")
    log.consumer_member(topics=("bar",))
    log.append(Record(16, key, ConsumerGroupRegularExpressionValue(("foo", "foo2"), 10, NOW_MS), 0))
    assert view(log.load("4")).subscribed_topics == ("bar", "foo", "foo2")
    log.append(Record(16, key, None, None))
    assert view(log.load("4")).subscribed_topics == ("bar",)


def test_cleanup_group_metadata_for_consumer_group(log: Log) -> None:
    """testCleanupGroupMetadataForConsumerGroup: each group on its own"""
    log.commit(0, 100, group="simple", at=0)
    log.commit(0, 100, at=0)
    log.commit(0, 100, at=0, topic="other")
    log.consumer_member()
    swept = {found.group_id: found for found in expire(log.load("4"), retention_ms("4"))}
    assert (swept["simple"].offsets, swept["simple"].group_removed) == ((TopicPartition(TOPIC, 0),), True)
    assert (swept[GROUP].offsets, swept[GROUP].group_removed) == ((TopicPartition("other", 0),), False)


def test_cleanup_group_metadata_for_share_group(log: Log) -> None:
    """testCleanupGroupMetadataForShareGroup"""
    log.modern(11, ShareGroupMetadataValue(1, 0))
    assert expire(log.load("4"), NOW_MS + 10 * retention_ms("4")) == ()


def test_states_of_a_consumer_group(log: Log) -> None:
    """Beside testReplayConsumerGroup…: Assigning, Reconciling and Stable (`ConsumerGroup.maybeUpdateGroupState`)"""
    log.consumer_member(epoch=2, assignment_epoch=1)
    assert view(log.load("4")).state == "Assigning"
    log.modern(6, TargetAssignmentMetadataValue(3))
    assert view(log.load("4")).state == "Reconciling"
    log.modern(8, ConsumerGroupCurrentMemberAssignmentValue(3, 2, 1))
    assert view(log.load("4")).state == "Reconciling"
    log.modern(8, ConsumerGroupCurrentMemberAssignmentValue(3, 2, 0))
    assert view(log.load("4")).state == "Stable"


def test_states_of_a_streams_group(log: Log) -> None:
    """Beside testReplayStreamsGroup…: NotReady until the group's topology is the validated one"""
    log.modern(19, STREAMS_MEMBER)
    log.modern(17, StreamsGroupMetadataValue(5, 0))
    assert view(log.load("4")).state == "NotReady"
    log.modern(23, TOPOLOGY)
    log.modern(17, StreamsGroupMetadataValue(5, 0, validated_topology_epoch=3))
    assert view(log.load("4")).state == "Assigning"
    log.modern(20, TargetAssignmentMetadataValue(5))
    log.modern(22, StreamsGroupCurrentMemberAssignmentValue(5, 4, 1, TASKS))
    group = view(log.load("4"))
    assert (group.state, group.subscribed_topics) == ("Stable", (TOPIC,))
    assert group.members[0].assigned == (TopicAssignment(TOPIC, None, (1,)),)


def test_targets_of_members(log: Log) -> None:
    """Beside testReplay…TargetAssignmentMember: shown with the member"""
    log.consumer_member()
    log.modern(7, TargetAssignmentMemberValue(PARTITIONS))
    log.modern(10, ShareGroupMemberMetadataValue(None, "client", "/host"), group="share")
    log.modern(13, TargetAssignmentMemberValue(PARTITIONS), group="share")
    log.modern(14, ShareGroupCurrentMemberAssignmentValue(1, 0, 0, PARTITIONS), group="share")
    state = log.load("4")
    assert view(state).members[0].target == ASSIGNED
    shared = state.registry.groups["share"].view({}).members[0]
    assert (shared.target, shared.assigned) == ((TopicAssignment(None, TOPIC_ID, (0, 2)),),) * 2


def test_early_tombstones_are_reported(log: Log) -> None:
    """Beside testReplayConsumerGroup…WithNullValue: where the Java coordinator throws, the tombstone still takes effect"""
    log.consumer_member()
    log.modern(7, TargetAssignmentMemberValue(PARTITIONS))
    log.modern(6, None)
    log.modern(5, None)
    log.consumer_member()
    log.modern(3, None)
    state, anomalies = log.load_with_anomalies("4")
    assert state.groups() == {}
    assert [(a.kind, a.offset) for a in anomalies] == [(AnomalyKind.EARLY_TOMBSTONE, o) for o in (5, 6, 6, 11, 11)]
    assert anomalies[0].detail == "the target assignments of 1 members are still there"


def test_records_of_another_type_replace_the_group(log: Log) -> None:
    """Beside testReplay…Metadata: over a group that is not simple the Java coordinator aborts the load"""
    log.group([member()])
    log.modern(4, None)
    log.modern(3, ConsumerGroupMetadataValue(1))
    log.modern(11, ShareGroupMetadataValue(1, 0))
    log.modern(17, None)
    log.group(generation=9)
    state, anomalies = log.load_with_anomalies("4")
    assert [(a.kind, a.offset) for a in anomalies] == [(AnomalyKind.GROUP_TYPE, offset) for offset in (1, 2, 3, 4)]
    assert (state.groups()[GROUP].group_type, state.groups()[GROUP].generation) == ("classic", 9)


def test_modern_groups_take_over_simple_ones(log: Log) -> None:
    """Beside testReplayConsumerGroupMetadata: an empty record of generation 0 is a simple group; share groups may not"""
    log.group(generation=0, protocol_type="")
    log.modern(3, ConsumerGroupMetadataValue(1))
    log.group(generation=0, protocol_type="", group="share")
    log.modern(11, ShareGroupMetadataValue(1, 0), group="share")
    state, (anomaly,) = log.load_with_anomalies("4")
    assert {group_id: group.group_type for group_id, group in state.groups().items()} == {GROUP: "consumer", "share": "share"}
    assert (anomaly.group_id, anomaly.kind) == ("share", AnomalyKind.GROUP_TYPE)


def test_types_of_other_eras_are_left_out(log: Log) -> None:
    """Beside testReplay…: a Scala loader skips every type above 2 (KIP-915), 4.1 and later the types 9 and 18"""
    log.consumer_member()
    log.modern(9, PartitionMetadataValue((TopicMetadata(TOPIC_ID, TOPIC, 3),)))
    scala, skipped = log.load_with_anomalies("3")
    assert (scala.groups(), len(skipped)) == ({}, 5)
    java, (anomaly,) = log.load_with_anomalies("4")
    assert anomaly.kind is AnomalyKind.UNREAD
    assert dict(java.registry.topic_names()) == NAMES


def test_removed_group_with_pending_commits(log: Log) -> None:
    """KAFKA-4704: Scala throws after the pass, with the group in its cache; Java shows the simple group and nothing else"""
    log.group([member()])
    log.group_tombstone()
    log.commit(0, 100, producer=5)
    state, (anomaly,) = log.load_with_anomalies("3")
    assert (anomaly.kind, anomaly.offset) == (AnomalyKind.UNEXPECTED_UNLOAD, 1)
    assert state.groups()[GROUP].group_type == "simple"
    assert log.load("4").groups()[GROUP].group_type == "simple"


def test_duplicate_instance_ids_are_reported(log: Log) -> None:
    """Both coordinators throw at the second member with an instance id"""
    log.group([member("a", instance_id="i"), member("b", instance_id="i")])
    state, (anomaly,) = log.load_with_anomalies("4")
    assert (anomaly.kind, len(state.groups()[GROUP].members)) == (AnomalyKind.DUPLICATE_INSTANCE_ID, 2)


@pytest.mark.parametrize(("name", "timeout"), [("3", -1), ("4", 10_000)])
def test_rebalance_timeout_of_members_without_one(log: Log, name: str, timeout: int) -> None:
    """Scala falls back by version, Java by value"""
    log.group([member(rebalance_timeout=-1)])
    assert log.load(name).groups()[GROUP].members[0].rebalance_timeout_ms == timeout


def test_unknown_era() -> None:
    with pytest.raises(ValueError, match=r"unknown era '5': choose one of 0\.9, 0\.10, 1, 2, 3, 4"):
        Era.named("5")
