"""Answers of brokers as values: what the describe requests and OffsetFetch report about one group.

The arguments are parts of response messages, of any version that the client library reads. Text in them is hostile: it is kept as
it is, and never interpreted. A missing group is `None`, another error is a `CoordinatorFailure`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from coordinator_core.group_polls.group_poll import (
    AssignedTopic,
    ClassicGroupAnswer,
    ClassicMemberAnswer,
    ConsumerGroupAnswer,
    ConsumerMemberAnswer,
    PolledOffset,
    ShareGroupAnswer,
    ShareMemberAnswer,
    StreamsGroupAnswer,
    StreamsMemberAnswer,
    SubtopologyAnswer,
    TasksAnswer,
    TopicPartitionKey,
    TopologyAnswer,
)
from coordinator_core.protocol.error_code import ErrorCode

A = TypeVar("A")
M = TypeVar("M", ClassicMemberAnswer, ConsumerMemberAnswer, ShareMemberAnswer, StreamsMemberAnswer)

#: State of a group that the coordinator does not know, before DescribeGroups 6 (KIP-1043).
DEAD = "Dead"
#: `OffsetFetchResponse.INVALID_OFFSET`: no commit.
_NO_COMMIT = -1

#: Another coordinator answers for the group, or will soon: look it up again.
MOVING_ERRORS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


@dataclass(frozen=True, slots=True)
class CoordinatorFailure:
    """The error code that a coordinator gives for a group or a transactional id."""

    code: int

    @property
    def is_moving(self) -> bool:
        """True if a lookup of the coordinator may help."""
        return self.code in MOVING_ERRORS

    @property
    def reason(self) -> str:
        """Kafka's name of the code, or its number."""
        return ErrorCode(self.code).name if self.code in frozenset(ErrorCode) else f"error {self.code}"


class FetchedOffsets(NamedTuple):
    """Committed offsets of a group, partitions without a commit, and those with an error (its code)."""

    offsets: dict[TopicPartitionKey, PolledOffset]
    without_commit: frozenset[TopicPartitionKey]
    failed: dict[TopicPartitionKey, int]


def _of_existing_group(read: Callable[[Any], A]) -> Callable[[Any], A | CoordinatorFailure | None]:
    """Read a group only if the answer has one."""

    @wraps(read)
    def answer(group: Any) -> A | CoordinatorFailure | None:
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not group.error_code and group.group_state == DEAD):
            return None
        return CoordinatorFailure(group.error_code) if group.error_code else read(group)

    return answer


@_of_existing_group
def classic_group_answer(group: Any) -> ClassicGroupAnswer:
    """A group of DescribeGroupsResponse."""
    members = (
        ClassicMemberAnswer(
            each.member_id,
            getattr(each, "group_instance_id", None),
            each.client_id,
            each.client_host,
            bytes(each.member_metadata or b""),
            bytes(each.member_assignment or b""),
        )
        for each in group.members or ()
    )
    return ClassicGroupAnswer(group.group_state, group.protocol_type or "", group.protocol_data or "", _by_id(members))


@_of_existing_group
def consumer_group_answer(group: Any) -> ConsumerGroupAnswer:
    """A group of ConsumerGroupDescribeResponse. A group of another type is not found."""
    members = (
        ConsumerMemberAnswer(
            each.member_id,
            each.instance_id,
            each.rack_id,
            each.member_epoch,
            each.client_id,
            each.client_host,
            tuple(sorted(each.subscribed_topic_names or ())),
            each.subscribed_topic_regex or None,
            _assigned(each.assignment),
            _assigned(each.target_assignment),
        )
        for each in group.members or ()
    )
    return ConsumerGroupAnswer(group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name, _by_id(members))


@_of_existing_group
def share_group_answer(group: Any) -> ShareGroupAnswer:
    """A group of ShareGroupDescribeResponse. A group of another type is not found."""
    members = (
        ShareMemberAnswer(
            each.member_id,
            each.rack_id,
            each.member_epoch,
            each.client_id,
            each.client_host,
            tuple(sorted(each.subscribed_topic_names or ())),
            _assigned(each.assignment),
        )
        for each in group.members or ()
    )
    return ShareGroupAnswer(group.group_state, group.group_epoch, group.assignment_epoch, _by_id(members))


@_of_existing_group
def streams_group_answer(group: Any) -> StreamsGroupAnswer:
    """A group of StreamsGroupDescribeResponse. A group of another type is not found."""
    members = (
        StreamsMemberAnswer(
            each.member_id,
            each.instance_id,
            each.rack_id,
            each.member_epoch,
            each.client_id,
            each.client_host,
            each.topology_epoch,
            each.process_id,
            None if each.user_endpoint is None else (each.user_endpoint.host, each.user_endpoint.port),
            tuple(sorted((tag.key, tag.value) for tag in each.client_tags or ())),
            _tasks(each.assignment),
            _tasks(each.target_assignment),
        )
        for each in group.members or ()
    )
    return StreamsGroupAnswer(
        group.group_state, group.group_epoch, group.assignment_epoch, _topology(group.topology), _by_id(members)
    )


def _by_id(members: Iterable[M]) -> tuple[M, ...]:
    return tuple(sorted(members, key=lambda member: member.member_id))


def _topology(topology: Any) -> TopologyAnswer | None:
    if topology is None:
        return None
    if topology.subtopologies is None:
        return TopologyAnswer(topology.epoch, None)
    found = (
        SubtopologyAnswer(
            each.subtopology_id,
            tuple(sorted(each.source_topics or ())),
            tuple(sorted(each.repartition_sink_topics or ())),
            tuple(sorted(topic.name for topic in each.repartition_source_topics or ())),
        )
        for each in topology.subtopologies
    )
    return TopologyAnswer(topology.epoch, tuple(sorted(found, key=lambda each: each.subtopology_id)))


def _tasks(assignment: Any) -> TasksAnswer:
    if assignment is None:
        return TasksAnswer()
    kinds = (assignment.active_tasks, assignment.standby_tasks, assignment.warmup_tasks)
    return TasksAnswer(
        *(tuple(sorted((each.subtopology_id, tuple(sorted(each.partitions or ()))) for each in kind or ())) for kind in kinds)
    )


def _assigned(assignment: Any) -> tuple[AssignedTopic, ...]:
    topics = (assignment.topic_partitions if assignment is not None else None) or ()
    return tuple(sorted((UUID(int=each.topic_id.int), tuple(sorted(each.partitions or ()))) for each in topics))


def fetched_offsets(group: Any) -> FetchedOffsets | CoordinatorFailure:
    """A group of OffsetFetchResponse, or all of it before version 8."""
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return FetchedOffsets({}, frozenset(), {})
    if group.error_code:
        return CoordinatorFailure(group.error_code)
    offsets: dict[TopicPartitionKey, PolledOffset] = {}
    absent: set[TopicPartitionKey] = set()
    failed: dict[TopicPartitionKey, int] = {}
    for key, part in _parts(group.topics or ()):
        if part.error_code:
            failed[key] = part.error_code
        elif part.committed_offset == _NO_COMMIT:
            absent.add(key)
        else:
            offsets[key] = PolledOffset(part.committed_offset, part.committed_leader_epoch, part.metadata or "")
    return FetchedOffsets(offsets, frozenset(absent), failed)


def _parts(topics: Iterable[Any]) -> Iterable[tuple[TopicPartitionKey, Any]]:
    for topic in topics:
        for part in topic.partitions or ():
            yield TopicPartitionKey(topic.name, part.partition_index), part
