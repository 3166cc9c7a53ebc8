"""The records that describe a polled group of KIP-848, KIP-932 or KIP-1071.

A target assignment that no answer has gets no record. Metadata hashes and earlier member epochs are not in answers either; no
column is made of them.
"""

from collections.abc import Iterator
from typing import Any

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
)
from coordinator_core.codec.messages.modern import (
    GroupKey,
    MemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
)
from coordinator_core.codec.messages.share import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
)
from coordinator_core.codec.messages.streams import (
    Endpoint,
    KeyValue,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
    StreamsTopicInfo,
    Subtopology,
    TaskIds,
)
from coordinator_core.codec.records import Value
from coordinator_core.group_polls.group_poll import (
    AssignedTasks,
    AssignedTopic,
    ConsumerGroupAnswer,
    ConsumerMemberAnswer,
    ShareGroupAnswer,
    StreamsGroupAnswer,
    StreamsMemberAnswer,
    TasksAnswer,
    TopologyAnswer,
)
from coordinator_core.state.consumer_group import ConsumerGroup
from coordinator_core.state.modern_group import GroupLayout
from coordinator_core.state.share_group import ShareGroup
from coordinator_core.state.streams_group import TOPOLOGY, StreamsGroup

#: Key and value.
EncodedRecord = tuple[bytes, bytes]
ModernGroupAnswer = ConsumerGroupAnswer | ShareGroupAnswer | StreamsGroupAnswer

_CONSUMER, _SHARE, _STREAMS = ConsumerGroup.layout, ShareGroup.layout, StreamsGroup.layout
LAYOUTS: tuple[GroupLayout, ...] = (_CONSUMER, _SHARE, _STREAMS)
#: States of members of consumer and share groups, and one that is in no answer. Those of streams groups are greater by one.
_STABLE, _UNREVOKED, _UNRELEASED, _UNKNOWN_STATE = 0, 1, 2, 127
_NO_TOPOLOGY = -1
_NOT_READY = "NotReady"


def modern_group_records(group_id: str, answer: ModernGroupAnswer) -> Iterator[EncodedRecord]:
    """The records of a group, each of the version 0."""
    match answer:
        case ConsumerGroupAnswer():
            return _of_consumer_group(group_id, answer)
        case ShareGroupAnswer():
            return _of_share_group(group_id, answer)
        case StreamsGroupAnswer():
            return _of_streams_group(group_id, answer)


def encoded_record(kind: int, key: GroupKey | MemberKey | GroupMetadataKey, value: Value, version: int = 0) -> EncodedRecord:
    """A record with a value."""
    encoded, content = encode(Record(kind, key, value, version))
    assert content is not None, "a record with a value"
    return encoded, content


def _of_consumer_group(group_id: str, answer: ConsumerGroupAnswer) -> Iterator[EncodedRecord]:
    yield encoded_record(_CONSUMER.epoch, GroupKey(group_id), ConsumerGroupMetadataValue(answer.group_epoch))
    yield _target_epoch(_CONSUMER, group_id, answer)
    for each in answer.members:
        key = MemberKey(group_id, each.member_id)
        member = ConsumerGroupMemberMetadataValue(
            each.instance_id,
            each.rack_id,
            each.client_id,
            each.client_host,
            each.subscribed_topic_names,
            each.subscribed_topic_regex,
            server_assignor=answer.assignor or None,
            classic_member_metadata=None,
        )
        yield encoded_record(_CONSUMER.member, key, member)
        yield encoded_record(_CONSUMER.target, key, TargetAssignmentMemberValue(_partitions(each.target)))
        state = _member_state(answer, each, each.assigned, each.target)
        current = ConsumerGroupCurrentMemberAssignmentValue(
            each.member_epoch, each.member_epoch, state, _partitions(each.assigned)
        )
        yield encoded_record(_CONSUMER.current, key, current)


def _of_share_group(group_id: str, answer: ShareGroupAnswer) -> Iterator[EncodedRecord]:
    """A member of the assignment epoch has its target assignment, and is stable (`ShareGroupAssignmentBuilder`)."""
    yield encoded_record(_SHARE.epoch, GroupKey(group_id), ShareGroupMetadataValue(answer.group_epoch, 0))
    yield _target_epoch(_SHARE, group_id, answer)
    for each in answer.members:
        key = MemberKey(group_id, each.member_id)
        member = ShareGroupMemberMetadataValue(each.rack_id, each.client_id, each.client_host, each.subscribed_topic_names)
        yield encoded_record(_SHARE.member, key, member)
        assigned, is_reconciled = _partitions(each.assigned), each.member_epoch == answer.assignment_epoch
        if is_reconciled:
            yield encoded_record(_SHARE.target, key, TargetAssignmentMemberValue(assigned))
        state = _STABLE if is_reconciled else _UNKNOWN_STATE
        current = ShareGroupCurrentMemberAssignmentValue(each.member_epoch, each.member_epoch, state, assigned)
        yield encoded_record(_SHARE.current, key, current)


def _of_streams_group(group_id: str, answer: StreamsGroupAnswer) -> Iterator[EncodedRecord]:
    topology = answer.topology
    validated = _NO_TOPOLOGY if topology is None or answer.state == _NOT_READY else topology.epoch
    metadata = StreamsGroupMetadataValue(answer.group_epoch, 0, validated_topology_epoch=validated)
    yield encoded_record(_STREAMS.epoch, GroupKey(group_id), metadata)
    if topology is not None:
        yield encoded_record(TOPOLOGY, GroupKey(group_id), _topology(topology))
    yield _target_epoch(_STREAMS, group_id, answer)
    for each in answer.members:
        key = MemberKey(group_id, each.member_id)
        yield encoded_record(_STREAMS.member, key, _streams_member(each))
        yield encoded_record(_STREAMS.target, key, StreamsGroupTargetAssignmentMemberValue(*_tasks(each.target)))
        state = _member_state(answer, each, _all_tasks(each.assigned), _all_tasks(each.target))
        if state != _UNKNOWN_STATE:
            state += StreamsGroup.stable_member
        current = StreamsGroupCurrentMemberAssignmentValue(each.member_epoch, each.member_epoch, state, *_tasks(each.assigned))
        yield encoded_record(_STREAMS.current, key, current)


def _streams_member(member: StreamsMemberAnswer) -> StreamsGroupMemberMetadataValue:
    return StreamsGroupMemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        -1,
        member.topology_epoch,
        member.process_id,
        None if member.user_endpoint is None else Endpoint(*member.user_endpoint),
        tuple(KeyValue(key, value) for key, value in member.client_tags),
    )


def _topology(topology: TopologyAnswer) -> StreamsGroupTopologyValue:
    """Topics by name: their numbers of partitions are not those of the record, which come from the client."""
    subtopologies = (
        Subtopology(
            each.subtopology_id,
            source_topics=each.source_topics,
            repartition_sink_topics=each.repartition_sink_topics,
            repartition_source_topics=tuple(StreamsTopicInfo(name, 0, 0) for name in each.repartition_source_topics),
        )
        for each in topology.subtopologies or ()
    )
    return StreamsGroupTopologyValue(topology.epoch, tuple(subtopologies))


def _target_epoch(layout: GroupLayout, group_id: str, answer: ModernGroupAnswer) -> EncodedRecord:
    value = TargetAssignmentMetadataValue(answer.assignment_epoch)
    return encoded_record(layout.target_metadata, GroupKey(group_id), value)


#: Topic id or subtopology and kind, and partitions.
_Parts = tuple[tuple[Any, tuple[int, ...]], ...]


def _member_state(
    group: ConsumerGroupAnswer | StreamsGroupAnswer,
    member: ConsumerMemberAnswer | StreamsMemberAnswer,
    assigned: _Parts,
    target: _Parts,
) -> int:
    """The state of a member as far as its epoch and its assignments show it (`CurrentAssignmentBuilder`)."""
    if group.state == "Stable" or (member.member_epoch == group.assignment_epoch and assigned == target):
        return _STABLE
    if not _contains(target, assigned):
        return _UNREVOKED
    return _UNRELEASED if member.member_epoch == group.assignment_epoch else _UNKNOWN_STATE


def _contains(whole: _Parts, part: _Parts) -> bool:
    """True if every partition of `part` is in `whole`."""
    found = {name: set(partitions) for name, partitions in whole}
    return all(found.get(name, set()).issuperset(partitions) for name, partitions in part)


def _all_tasks(tasks: TasksAnswer) -> _Parts:
    kinds = (tasks.active, tasks.standby, tasks.warmup)
    return tuple(((number, name), partitions) for number, kind in enumerate(kinds) for name, partitions in kind)


def _tasks(tasks: TasksAnswer) -> tuple[tuple[TaskIds, ...], tuple[TaskIds, ...], tuple[TaskIds, ...]]:
    return _task_ids(tasks.active), _task_ids(tasks.standby), _task_ids(tasks.warmup)


def _task_ids(tasks: tuple[AssignedTasks, ...]) -> tuple[TaskIds, ...]:
    return tuple(TaskIds(subtopology, partitions) for subtopology, partitions in tasks)


def _partitions(topics: tuple[AssignedTopic, ...]) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic_id, partitions) for topic_id, partitions in topics)
