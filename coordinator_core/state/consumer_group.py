"""Consumer groups of KIP-848 (`ConsumerGroup`): record types 3–8 and 16."""

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from coordinator_core.codec.messages.modern import TargetAssignmentMemberValue, TopicPartitions
from coordinator_core.state.modern_group import JOINING, GroupLayout, ModernGroup
from coordinator_core.state.views import MemberView, by_id

MEMBER_STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}
#: First entry of `group.consumer.assignors`: the default for members that name no assignor.
DEFAULT_ASSIGNOR = "uniform"

_UNKNOWN_MEMBER = ConsumerGroupMemberMetadataValue(None, None, "", "", classic_member_metadata=None)
_NOTHING_CURRENT = ConsumerGroupCurrentMemberAssignmentValue(JOINING, JOINING, 0)


class ConsumerGroup(ModernGroup):
    layout = GroupLayout(
        "consumer", epoch=3, member=5, target_metadata=6, target=7, current=8, others=frozenset({4, 16}), topic_metadata=4
    )

    def protocol(self) -> str | None:
        """The server-side assignor that most members name.

        In a tie, the order of a hash table decides in a broker; here the default wins, then the order of names.
        """
        named: Counter[str] = Counter(m.server_assignor for m in self._values(self.layout.member) if m.server_assignor)
        return min(named, key=lambda name: (-named[name], name != DEFAULT_ASSIGNOR, name)) if named else DEFAULT_ASSIGNOR

    def subscribed_topics(self) -> tuple[str, ...] | None:
        """Topics subscribed to by name, and those that the regular expressions resolved to."""
        topics = {topic for member in self._values(self.layout.member) for topic in member.subscribed_topic_names}
        topics.update(topic for resolved in self._values(16) for topic in resolved.topics)
        return tuple(sorted(topics))

    def member_view(self, member_id: str, topic_names: Mapping[UUID, str]) -> MemberView:
        member: ConsumerGroupMemberMetadataValue = self._value(self.layout.member, member_id) or _UNKNOWN_MEMBER
        current: ConsumerGroupCurrentMemberAssignmentValue = self._value(self.layout.current, member_id) or _NOTHING_CURRENT
        target: TargetAssignmentMemberValue = self._value(self.layout.target, member_id) or TargetAssignmentMemberValue()
        classic = member.classic_member_metadata
        return MemberView(
            member_id=member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rack_id=member.rack_id,
            session_timeout_ms=classic.session_timeout_ms if classic is not None and classic.supported_protocols else None,
            rebalance_timeout_ms=None if member.rebalance_timeout_ms == -1 else member.rebalance_timeout_ms,
            subscribed_topics=tuple(sorted(set(member.subscribed_topic_names))),
            subscribed_regex=member.subscribed_topic_regex or None,
            assigned=by_id(_assigned(current), topic_names),
            target=by_id(target.topic_partitions, topic_names),
            owned=(),
            member_epoch=current.member_epoch,
            member_state=MEMBER_STATES.get(current.state, "UNKNOWN"),
            user_data=None,
        )


def _assigned(current: ConsumerGroupCurrentMemberAssignmentValue) -> tuple[TopicPartitions, ...]:
    """Assigned partitions, including those pending revocation (which brokers describe as assigned since 4.3)."""
    assigned: dict[UUID, tuple[int, ...]] = {}
    for topic in (*current.assigned_partitions, *current.partitions_pending_revocation):
        assigned[topic.topic_id] = (*assigned.get(topic.topic_id, ()), *topic.partitions)
    return tuple(TopicPartitions(topic_id, partitions) for topic_id, partitions in assigned.items())
