"""Streams groups of KIP-1071 (`StreamsGroup`): record types 17 and 19–23.

Tasks are numbered per subtopology; the views show the partitions of the subtopology's source topics that an active task reads.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from coordinator_core.codec.messages.streams import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
    Subtopology,
    TaskIds,
)
from coordinator_core.state.modern_group import JOINING, GroupLayout, ModernGroup
from coordinator_core.state.views import MemberView, TopicAssignment

#: `streams.MemberState` starts at 1, that of consumer and share groups at 0.
MEMBER_STATES = {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"}
TOPOLOGY = 23

_UNKNOWN_MEMBER = StreamsGroupMemberMetadataValue(None, None, "", "", -1, -1, "")
_NOTHING_CURRENT = StreamsGroupCurrentMemberAssignmentValue(JOINING, JOINING, 1)


class StreamsGroup(ModernGroup):
    stable_member = 1
    layout = GroupLayout("streams", epoch=17, member=19, target_metadata=20, target=21, current=22, others=frozenset({TOPOLOGY}))

    @property
    def topology(self) -> StreamsGroupTopologyValue | None:
        value: StreamsGroupTopologyValue | None = self._value(TOPOLOGY)
        return value

    def protocol(self) -> str | None:
        """None: no record names the assignor of a streams group."""
        return None

    def state(self) -> str:
        """State as for consumer groups, but NotReady until the topology is validated (4.2, `validatedTopologyEpoch`)."""
        metadata: StreamsGroupMetadataValue | None = self._value(self.layout.epoch)
        validated = -1 if metadata is None else metadata.validated_topology_epoch
        if self.member_ids() and (self.topology is None or self.topology.epoch != validated):
            return "NotReady"
        return super().state()

    def subscribed_topics(self) -> tuple[str, ...] | None:
        """The source topics if the group has members, else none (`StreamsGroup.isSubscribedToTopic`)."""
        if self.topology is None or not self.member_ids():
            return ()
        return tuple(sorted({topic for sub in self.topology.subtopologies for topic in _source_topics(sub)}))

    def member_view(self, member_id: str, topic_names: Mapping[UUID, str]) -> MemberView:  # noqa: ARG002 - tasks have no topic ids
        member: StreamsGroupMemberMetadataValue = self._value(self.layout.member, member_id) or _UNKNOWN_MEMBER
        current: StreamsGroupCurrentMemberAssignmentValue = self._value(self.layout.current, member_id) or _NOTHING_CURRENT
        target: StreamsGroupTargetAssignmentMemberValue = (
            self._value(self.layout.target, member_id) or StreamsGroupTargetAssignmentMemberValue()
        )
        return MemberView(
            member_id=member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rack_id=member.rack_id,
            session_timeout_ms=None,
            rebalance_timeout_ms=None if member.rebalance_timeout_ms == -1 else member.rebalance_timeout_ms,
            subscribed_topics=self.subscribed_topics(),
            subscribed_regex=None,
            assigned=self._source_partitions(current.active_tasks),
            target=self._source_partitions(target.active_tasks),
            owned=(),
            member_epoch=current.member_epoch,
            member_state=MEMBER_STATES.get(current.state, "UNKNOWN"),
            user_data=None,
            standby_tasks=sum(len(task.partitions) for task in (*current.standby_tasks, *current.warmup_tasks)),
        )

    def _source_partitions(self, tasks: Iterable[TaskIds]) -> tuple[TopicAssignment, ...]:
        topology = self.topology
        sources = {} if topology is None else {s.subtopology_id: _source_topics(s) for s in topology.subtopologies}
        partitions: dict[str | None, set[int]] = {}
        for task in tasks:
            topics: tuple[str | None, ...] = sources.get(task.subtopology_id, (None,))
            for topic in topics:
                partitions.setdefault(topic, set()).update(task.partitions)
        ordered = sorted(partitions, key=lambda topic: (topic is None, topic or ""))
        return tuple(TopicAssignment(topic, None, tuple(sorted(partitions[topic]))) for topic in ordered)


def _source_topics(subtopology: Subtopology) -> tuple[str, ...]:
    return (*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics))
