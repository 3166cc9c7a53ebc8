"""The volatile part of a classic group (`GroupMetadata`, `ClassicGroup`): members, votes, generations.

The durable state of a group is in `coordinator_core.state`. Parked requests, pending members and a rebalance in progress are
here, and are lost with the process.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from coordinator_core.codec import Malformed, subscribed_topics
from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator.group.members import Member
from coordinator_core.group_coordinator.group.states import VALID_PREVIOUS_STATES, ClassicGroupState, check_transition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import JoinGroupMember, Protocol
from coordinator_core.state.classic_group import CONSUMER_PROTOCOL_TYPE


class ClassicGroup:
    """One group. Times are in ms; `state_timestamp` is None if the time of the last transition is unknown.

    Methods keep the group consistent and raise ValueError where they cannot. The handlers decide whether a request is permitted.
    """

    def __init__(self, group_id: str, now_ms: int | None) -> None:
        self.group_id = group_id
        self.state = ClassicGroupState.EMPTY
        self.state_timestamp = now_ms
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation = 0
        self.leader: str | None = None
        #: The rebalance in preparation began with an Empty group: it is delayed, and does not end early (KIP-134).
        self.initial_rebalance = False
        #: A member joined during the delay.
        self.new_member_added = False
        #: Generation whose assignment is being appended, or None.
        self.storing_generation: int | None = None
        #: Member ids that were returned with MEMBER_ID_REQUIRED and not used yet (KIP-394).
        self.pending_members: set[str] = set()
        #: Members of the generation that have not sent SyncGroup yet.
        self.pending_sync: set[str] = set()
        self._members: dict[str, Member] = {}
        self._static: dict[str, str] = {}
        self._supporters: Counter[str] = Counter()
        self._awaiting_join = 0
        self._subscriptions: tuple[bytes, ...] | None = None

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __len__(self) -> int:
        return len(self._members)

    @property
    def members(self) -> Collection[Member]:
        """All members, in the order in which they joined."""
        return self._members.values()

    def member(self, member_id: str) -> Member:
        """Returns the member with this id. Raises KeyError for an unknown one."""
        return self._members[member_id]

    def static_member_id(self, group_instance_id: str) -> str | None:
        """Returns the current member id of an instance; None if the instance is not a member."""
        return self._static.get(group_instance_id)

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Returns NONE for a known member. An instance that has another member id now is fenced (KIP-345)."""
        if group_instance_id is not None:
            current = self._static.get(group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self else ErrorCode.UNKNOWN_MEMBER_ID

    def validate_generation(self, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """Checks the member as `validate_member`, then the generation (`validateCurrentMember`)."""
        error = self.validate_member(member_id, group_instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    # ---- states

    def is_in(self, *states: ClassicGroupState) -> bool:
        """True if the group is in one of these states."""
        return self.state in states

    @property
    def can_rebalance(self) -> bool:
        """True if a rebalance may begin in this state."""
        return self.state in VALID_PREVIOUS_STATES[ClassicGroupState.PREPARING_REBALANCE]

    def transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Changes the state. Raises IllegalTransition, without effect, if the transition is not valid."""
        check_transition(self.group_id, self.state, state)
        self.state = state
        self.state_timestamp = now_ms

    def revive(self, since_ms: int | None) -> None:
        """Reverts Dead to Empty, with its earlier timestamp: the log has refused the tombstones."""
        self.state = ClassicGroupState.EMPTY
        self.state_timestamp = since_ms

    # ---- members

    def add(self, member: Member, reply: ReplyHandle | None = None) -> None:
        """Adds a member, and parks its request if given; the first member is the leader. Raises ValueError."""
        instance_id = member.group_instance_id
        if instance_id is not None and instance_id in self._static:
            raise ValueError(f"instance {instance_id!r} is already a member of group {self.group_id!r}")
        if not self._members:
            self.protocol_type = member.protocol_type
        if self.protocol_type != member.protocol_type:
            raise ValueError(
                f"member {member.member_id!r} has protocol type {member.protocol_type!r}, its group {self.protocol_type!r}"
            )
        if instance_id is not None:
            self._static[instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self._members[member.member_id] = member
        self._supporters.update(member.protocol_names)
        self.pending_members.discard(member.member_id)
        self.park_join(member, reply)

    def remove(self, member_id: str) -> Member | None:
        """Removes a member or a pending member id. If it was the leader, another member is the leader."""
        member = self._members.pop(member_id, None)
        if member is not None:
            self.park_join(member, None)
            self._supporters -= Counter(member.protocol_names)
            if member.group_instance_id is not None:
                self._static.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
        self.pending_members.discard(member_id)
        self.pending_sync.discard(member_id)
        return member

    def update(self, member: Member, protocols: tuple[Protocol, ...], rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        """Replaces the protocols and timeouts of a member that joins again."""
        self._supporters -= Counter(member.protocol_names)
        member.protocols = protocols
        self._supporters.update(member.protocol_names)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename(self, old_member_id: str, new_member_id: str) -> Member:
        """Gives a static member a new id; it keeps everything else (`replaceStaticMember`). ValueError for other members."""
        member = self._members.pop(old_member_id, None)
        if member is None or member.group_instance_id is None:
            raise ValueError(f"group {self.group_id!r} has no static member {old_member_id!r} to replace")
        member.member_id = new_member_id
        self._members[new_member_id] = member
        self._static[member.group_instance_id] = new_member_id
        if self.leader == old_member_id:
            self.leader = new_member_id
        if old_member_id in self.pending_sync:
            self.pending_sync.remove(old_member_id)
            self.pending_sync.add(new_member_id)
        return member

    def park_join(self, member: Member, reply: ReplyHandle | None) -> None:
        """Parks the member's JoinGroup; None removes a parked one."""
        self._awaiting_join += (reply is not None) - (member.awaiting_join is not None)
        member.awaiting_join = reply

    def add_pending_member(self, member_id: str) -> None:
        """Adds a pending member id (KIP-394). ValueError if it is the id of a member."""
        if member_id in self._members:
            raise ValueError(f"{member_id!r} is already a member of group {self.group_id!r}: it cannot be pending")
        self.pending_members.add(member_id)

    def add_pending_sync(self, member_id: str) -> None:
        """Marks that the member must send SyncGroup. ValueError for an unknown member."""
        self._check_member(member_id)
        self.pending_sync.add(member_id)

    def remove_pending_sync(self, member_id: str) -> None:
        """Marks that the member has sent SyncGroup. ValueError for an unknown member."""
        self._check_member(member_id)
        self.pending_sync.discard(member_id)

    @property
    def awaiting_join(self) -> int:
        """Number of members with a parked JoinGroup."""
        return self._awaiting_join

    @property
    def all_joined(self) -> bool:
        """True if all members have a parked JoinGroup and no member id is pending."""
        return self._awaiting_join == len(self._members) and not self.pending_members

    def not_yet_rejoined(self) -> tuple[Member, ...]:
        """Returns the members without a parked JoinGroup."""
        return tuple(member for member in self._members.values() if member.awaiting_join is None)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout of all members; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Makes a member with a parked JoinGroup the leader; returns False if there is none (`maybeElectNewJoinedLeader`)."""
        if self.leader is None:
            return False
        if self._members[self.leader].awaiting_join is None:
            joined = next((m.member_id for m in self._members.values() if m.awaiting_join is not None), None)
            if joined is None:
                return False
            self.leader = joined
        return True

    # ---- protocols and generations

    def supports(self, protocol_type: str, protocols: Iterable[Protocol]) -> bool:
        """True if a member with these protocols may join: all members support at least one of them."""
        names = {name for name, _ in protocols}
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(self._supporters[name] == len(self._members) for name in names)

    def select_protocol(self) -> str:
        """Returns the protocol with most votes, in a tie the one with the first vote. ValueError without members."""
        if not self._members:
            raise ValueError(f"group {self.group_id!r} has no members to vote for a protocol")
        candidates = {name for name, count in self._supporters.items() if count == len(self._members)}
        votes = Counter(member.vote(candidates) for member in self._members.values())
        return votes.most_common(1)[0][0]

    def next_generation(self, now_ms: int) -> None:
        """Begins the next generation with the current members; without members the group is Empty."""
        protocol = self.select_protocol() if self._members else None
        self.transition_to(
            ClassicGroupState.COMPLETING_REBALANCE if self._members else ClassicGroupState.EMPTY,
            now_ms,
        )
        self.generation += 1
        self.protocol_name = protocol
        self.initial_rebalance = False
        self.storing_generation = None
        self.pending_sync.clear()
        self.note_subscriptions()

    def note_subscriptions(self) -> None:
        """Replaces the subscriptions of the group with the current ones of its members."""
        protocol = self.protocol_name
        if self._members and protocol is None:
            self._subscriptions = None
        else:
            self._subscriptions = tuple(m.metadata(protocol or "") for m in self._members.values())

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """Topics of all subscriptions of the generation (`computeSubscribedTopics`); None if unknown, for another protocol type
        or undecodable subscriptions."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or self._subscriptions is None:
            return None
        topics: set[str] = set()
        for subscription in self._subscriptions:
            found = subscribed_topics(subscription)
            if isinstance(found, Malformed):
                return None
            topics.update(found)
        return frozenset(topics)

    def join_members(self) -> tuple[JoinGroupMember, ...]:
        """Returns the members for the leader's JoinGroup response, with their subscriptions for the generation's protocol.

        Raises ValueError outside of a generation.
        """
        if self.protocol_name is None or self.is_in(ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.DEAD):
            raise ValueError(f"group {self.group_id!r} is {self.state}: it has no generation with a protocol")
        name = self.protocol_name
        return tuple(JoinGroupMember(m.member_id, m.group_instance_id, m.metadata(name)) for m in self._members.values())

    # ---- properties for expiry (`ExpiringGroup`)

    @property
    def group_type(self) -> str:
        """ "simple" for a group that never had a member, otherwise "classic"."""
        return "classic" if self.protocol_type or self._members else "simple"

    def _check_member(self, member_id: str) -> None:
        if member_id not in self._members:
            raise ValueError(f"{member_id!r} is not a member of group {self.group_id!r}")

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())
