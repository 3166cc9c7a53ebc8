"""A poll without the topics that are not read: their offsets, and their partitions in the assignments of members.

Subscriptions are kept, since they are what clients ask for.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from coordinator_core.codec.consumer_protocol import (
    HIGHEST_VERSION,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    protocol_version,
)
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.group_polls.group_poll import (
    AssignedTopic,
    ClassicGroupAnswer,
    ClassicMemberAnswer,
    ConsumerGroupAnswer,
    GroupAnswer,
    GroupPoll,
    PolledGroup,
    ShareGroupAnswer,
    StreamsGroupAnswer,
    SubtopologyAnswer,
)

#: Protocol type of groups whose members have subscriptions and assignments of `ConsumerProtocol`.
_CONSUMER = "consumer"
#: True for a topic that is read, by its name.
_Reads = Callable[[str], bool]


def of_topics(poll: GroupPoll, reads: _Reads) -> GroupPoll:
    """The poll, as far as it is about topics that are read. A topic id without a known name is read."""
    unread = {topic_id for topic_id, name in poll.topic_names.items() if not reads(name)}
    groups = {group_id: _of_group(group, reads, lambda part: part[0] not in unread) for group_id, group in poll.groups.items()}
    return replace(poll, groups=groups, hidden_topics=frozenset(filter(reads, poll.hidden_topics)))


def _of_group(group: PolledGroup, reads: _Reads, reads_part: Callable[[AssignedTopic], bool]) -> PolledGroup:
    offsets = {key: offset for key, offset in group.offsets.items() if reads(key.topic)}
    return replace(
        group,
        description=None if group.description is None else _of_description(group.description, reads, reads_part),
        offsets=offsets,
        without_commit=frozenset(key for key in group.without_commit if reads(key.topic)),
        has_unread_offsets=len(offsets) < len(group.offsets),
    )


def _of_description(answer: GroupAnswer, reads: _Reads, reads_part: Callable[[AssignedTopic], bool]) -> GroupAnswer:
    selected = partial(_selected, reads_part)
    match answer:
        case ClassicGroupAnswer(protocol_type=kind, members=classic):
            return replace(answer, members=tuple(_of_classic(each, reads) for each in classic)) if kind == _CONSUMER else answer
        case ConsumerGroupAnswer(members=modern):
            own = (replace(each, assigned=selected(each.assigned), target=selected(each.target)) for each in modern)
            return replace(answer, members=tuple(own))
        case ShareGroupAnswer(members=sharing):
            return replace(answer, members=tuple(replace(each, assigned=selected(each.assigned)) for each in sharing))
        case StreamsGroupAnswer(topology=topology):
            if topology is None or topology.subtopologies is None:
                return answer
            # tasks are of subtopologies, and these of topics
            subtopologies = tuple(_of_subtopology(each, reads) for each in topology.subtopologies)
            return replace(answer, topology=replace(topology, subtopologies=subtopologies))


def _selected(reads_part: Callable[[AssignedTopic], bool], parts: Iterable[AssignedTopic]) -> tuple[AssignedTopic, ...]:
    return tuple(filter(reads_part, parts))


def _of_subtopology(subtopology: SubtopologyAnswer, reads: _Reads) -> SubtopologyAnswer:
    return replace(
        subtopology,
        source_topics=tuple(filter(reads, subtopology.source_topics)),
        repartition_source_topics=tuple(filter(reads, subtopology.repartition_source_topics)),
    )


def _of_classic(member: ClassicMemberAnswer, reads: _Reads) -> ClassicMemberAnswer:
    """Bytes without an unread topic, and bytes that cannot be read, are kept as they are."""
    assignment, subscription = decode_assignment(member.assignment), decode_subscription(member.subscription)
    if isinstance(assignment, ConsumerProtocolAssignment):
        kept = _read_partitions(assignment.assigned_partitions, reads)
        if kept != assignment.assigned_partitions:
            encoded = encode_assignment(replace(assignment, assigned_partitions=kept), _version(member.assignment))
            member = replace(member, assignment=encoded)
    if isinstance(subscription, ConsumerProtocolSubscription):
        kept = _read_partitions(subscription.owned_partitions, reads)
        if kept != subscription.owned_partitions:
            encoded = encode_subscription(replace(subscription, owned_partitions=kept), _version(member.subscription))
            member = replace(member, subscription=encoded)
    return member


def _read_partitions(parts: tuple[ProtocolTopicPartitions, ...], reads: _Reads) -> tuple[ProtocolTopicPartitions, ...]:
    return tuple(part for part in parts if reads(part.topic))


def _version(data: bytes) -> int:
    return min(protocol_version(data) or 0, HIGHEST_VERSION)
