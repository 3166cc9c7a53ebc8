"""Shared state of the handlers of one log partition: the durable state, and the live groups created from it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.behaviour import Behaviour
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.members import Member
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.group_coordinator.in_flight import CommitsInFlight
from coordinator_core.group_coordinator.timers import GroupTimers, TimerKey, TimerKind
from coordinator_core.protocol.membership import Protocol
from coordinator_core.state import classic_group
from coordinator_core.state.group_state import GroupState

#: Generator of unique member ids from a client id or an instance id (`generateMemberId`).
MemberIds = Callable[[str], str]


@dataclass(slots=True)
class CoordinatorContext:
    """State of one log partition.

    Only records change `state`. A live group is created from it when a request first needs the group; a group with members when
    the partition has been loaded, so that their sessions begin.
    """

    config: CoordinatorConfig
    new_member_id: MemberIds
    state: GroupState
    timers: GroupTimers = field(default_factory=GroupTimers)
    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    in_flight: CommitsInFlight = field(default_factory=CommitsInFlight)
    #: Groups that were created since the last record of the partition, in eras that hide them until the next one.
    unlogged: set[str] = field(default_factory=set)

    @property
    def behaviour(self) -> Behaviour:
        """Rules of the configured era about responses and records."""
        return self.config.behaviour

    def find(self, group_id: str) -> ClassicGroup | None:
        """Returns the live group; None if the group does not exist or has another type."""
        group = self.groups.get(group_id)
        if group is None:
            group = self._revive(group_id)
            if group is not None:
                self.groups[group_id] = group
        return group

    def find_visible(self, group_id: str) -> ClassicGroup | None:
        """Returns the live group for a description; None also for one that is not visible yet."""
        return None if group_id in self.unlogged else self.find(group_id)

    def create(self, group_id: str, now_ms: int) -> ClassicGroup:
        """Creates an Empty group."""
        if self.behaviour.hides_unlogged_groups:
            self.unlogged.add(group_id)
        group = self.groups[group_id] = ClassicGroup(group_id, now_ms)
        return group

    def is_foreign(self, group_id: str) -> bool:
        """True if the group exists and is not a classic one."""
        found = self.state.registry.groups.get(group_id)
        return found is not None and not isinstance(found, classic_group.LoadedClassicGroup)

    def known_partitions(self, group_id: str) -> frozenset[TopicPartition]:
        """Returns the partitions with an offset that is committed, pending in a transaction, or being appended."""
        committed: Iterable[TopicPartition] = self.state.offsets.committed_of(group_id)
        return frozenset(committed) | self.state.pending(group_id).keys() | self.in_flight.of(group_id)

    def forget(self, group: ClassicGroup) -> None:
        """Drops the live group and its timers, not its durable state."""
        for key in (
            TimerKey(TimerKind.JOIN, group.group_id),
            TimerKey(TimerKind.SYNC, group.group_id),
            *(TimerKey(TimerKind.HEARTBEAT, group.group_id, member.member_id) for member in group.members),
            *(TimerKey(TimerKind.HEARTBEAT, group.group_id, member_id) for member_id in group.pending_members),
        ):
            self.timers.cancel(key)
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]
            self.unlogged.discard(group.group_id)

    def _revive(self, group_id: str) -> ClassicGroup | None:
        """Creates the live group from the durable state, as the loader does (`GroupMetadata.loadGroup`)."""
        known = self.state.registry.groups.get(group_id)
        if isinstance(known, classic_group.LoadedClassicGroup):
            return _loaded(known)
        if known is None and self.state.has_group(group_id):
            return ClassicGroup(group_id, self.state.now_ms)
        return None


def _loaded(known: classic_group.LoadedClassicGroup) -> ClassicGroup:
    view, value = known.view({}), known.value
    group = ClassicGroup(known.group_id, view.state_timestamp)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    timeouts = {member.member_id: member.rebalance_timeout_ms for member in view.members}
    for member in value.members:
        claimed = member.group_instance_id is not None and group.static_member_id(member.group_instance_id) is not None
        group.add(
            Member(
                member_id=member.member_id,
                group_instance_id=None if claimed else member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=timeouts[member.member_id] or 0,
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type,
                protocols=(Protocol(value.protocol or "", member.subscription),),
                assignment=member.assignment,
            )
        )
    if group.members:
        group.leader = value.leader if value.leader is not None and value.leader in group else group.leader
    if view.state != ClassicGroupState.EMPTY:
        group.state = ClassicGroupState.STABLE
    group.note_subscriptions()
    return group
