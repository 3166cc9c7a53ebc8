"""What the coordinators of a state answer to a poll."""

from collections.abc import Iterable

from coordinator_core.codec.messages.classic import GroupMetadataValue
from coordinator_core.group_polls.group_poll import (
    AssignedTopic,
    ClassicGroupAnswer,
    ClassicMemberAnswer,
    ConsumerGroupAnswer,
    ConsumerMemberAnswer,
    GroupAnswer,
    PolledGroup,
    PolledOffset,
    TopicPartitionKey,
)
from coordinator_core.group_polls.poll_fold import PollFold
from coordinator_core.state.classic_group import LoadedClassicGroup
from coordinator_core.state.group_state import GroupState
from coordinator_core.state.views import GroupView, TopicAssignment


def polled_group(state: GroupState, group_id: str, fold: PollFold) -> PolledGroup:
    """The answer about a group of consumers, which is asked by name for the offsets that the fold has."""
    committed = state.committed(group_id)
    offsets = {TopicPartitionKey(*place): PolledOffset(each.offset, -1, each.metadata) for place, each in committed.items()}
    stored = fold.groups.get(group_id)
    asked = frozenset[TopicPartitionKey]() if stored is None else frozenset(stored.offsets)
    return PolledGroup(_described(state, group_id), offsets, asked - offsets.keys())


def _described(state: GroupState, group_id: str) -> GroupAnswer | None:
    group = state.registry.groups.get(group_id)
    if isinstance(group, LoadedClassicGroup):
        return _classic(group.value)
    view = state.group(group_id)
    return None if view is None else _consumer(view)


def _classic(value: GroupMetadataValue) -> ClassicGroupAnswer:
    members = (
        ClassicMemberAnswer(
            *(each.member_id, each.group_instance_id, each.client_id), each.client_host, each.subscription, each.assignment
        )
        for each in value.members
    )
    return ClassicGroupAnswer("Stable" if value.members else "Empty", value.protocol_type, value.protocol or "", tuple(members))


def _consumer(view: GroupView) -> ConsumerGroupAnswer:
    members = (
        ConsumerMemberAnswer(
            *(each.member_id, each.group_instance_id, each.rack_id, each.member_epoch or 0, each.client_id, each.client_host),
            *(each.subscribed_topics or (), each.subscribed_regex, _by_id(each.assigned), _by_id(each.target or ())),
        )
        for each in view.members
    )
    epoch = view.generation_number
    return ConsumerGroupAnswer(view.state, epoch, epoch, view.protocol or "", tuple(members))


def _by_id(topics: Iterable[TopicAssignment]) -> tuple[AssignedTopic, ...]:
    return tuple((each.topic_id, each.partitions) for each in topics if each.topic_id is not None)
