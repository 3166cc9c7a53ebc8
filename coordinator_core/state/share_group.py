"""Share groups of KIP-932 (`ShareGroup`): record types 10–15, and 9 of the early access in 4.0."""

from collections.abc import Mapping
from uuid import UUID

from coordinator_core.codec.messages.modern import TargetAssignmentMemberValue
from coordinator_core.codec.messages.share import ShareGroupCurrentMemberAssignmentValue, ShareGroupMemberMetadataValue
from coordinator_core.state.consumer_group import MEMBER_STATES
from coordinator_core.state.modern_group import JOINING, GroupLayout, ModernGroup
from coordinator_core.state.views import MemberView, by_id

#: The only value of `group.share.assignors`.
ASSIGNOR = "simple"

_UNKNOWN_MEMBER = ShareGroupMemberMetadataValue(None, "", "")
_NOTHING_CURRENT = ShareGroupCurrentMemberAssignmentValue(JOINING, JOINING, 0)


class ShareGroup(ModernGroup):
    layout = GroupLayout(
        "share", epoch=11, member=10, target_metadata=12, target=13, current=14, others=frozenset({9, 15}), topic_metadata=9
    )

    def protocol(self) -> str | None:
        return ASSIGNOR

    def state(self) -> str:
        """Stable with at least one member, else Empty: members of share groups do not reconcile."""
        return "Stable" if self.member_ids() else "Empty"

    def subscribed_topics(self) -> tuple[str, ...] | None:
        return tuple(sorted({t for member in self._values(self.layout.member) for t in member.subscribed_topic_names}))

    def member_view(self, member_id: str, topic_names: Mapping[UUID, str]) -> MemberView:
        member: ShareGroupMemberMetadataValue = self._value(self.layout.member, member_id) or _UNKNOWN_MEMBER
        current: ShareGroupCurrentMemberAssignmentValue = self._value(self.layout.current, member_id) or _NOTHING_CURRENT
        target: TargetAssignmentMemberValue | None = self._value(self.layout.target, member_id)
        if target is None and current.state in MEMBER_STATES:
            target = TargetAssignmentMemberValue()
        return MemberView(
            member_id=member_id,
            group_instance_id=None,
            client_id=member.client_id,
            client_host=member.client_host,
            rack_id=member.rack_id,
            session_timeout_ms=None,
            rebalance_timeout_ms=None,
            subscribed_topics=tuple(sorted(set(member.subscribed_topic_names))),
            subscribed_regex=None,
            assigned=by_id(current.assigned_partitions, topic_names),
            # coordinators log no other state than STABLE: an unknown one is of a poll, whose answers have no target assignment
            target=None if target is None else by_id(target.topic_partitions, topic_names),
            owned=(),
            member_epoch=current.member_epoch,
            member_state=MEMBER_STATES.get(current.state, "UNKNOWN"),
            user_data=None,
        )
