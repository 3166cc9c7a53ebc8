"""A classic group while it lives (`GroupMetadata`, `ClassicGroup`): members, votes, generations.

What the log has of a group is in `coordinator_core.state`; this is the machine on top of it, and gone with the process: parked
requests, pending members, a rebalance that is under way.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from coordinator_core.codec import Malformed, subscribed_topics
from coordinator_core.coordinator.classic.members import Member
from coordinator_core.coordinator.classic.states import VALID_PREVIOUS_STATES, ClassicGroupState, check_transition
from coordinator_core.coordinator.messages.membership import JoinGroupMember, Protocol
from coordinator_core.coordinator.reply_handle import ReplyHandle
from coordinator_core.state.classic_group import CONSUMER_PROTOCOL_TYPE


class ClassicGroup:
    """One group. Times in ms; `state_timestamp` None when nobody knows since when the state is what it is.

    Methods keep the group consistent and raise ValueError where they would not; what a request may do is decided elsewhere.
    """

    def __init__(self, group_id: str, now_ms: int | None) -> None:
        self.group_id = group_id
        self.state = ClassicGroupState.EMPTY
        self.state_timestamp = now_ms
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation = 0
        self.leader: str | None = None
        #: The rebalance that is being prepared began with an Empty group: it is delayed, and does not end early (KIP-134).
        self.initial_rebalance = False
        #: A member came while it is being delayed.
        self.new_member_added = False
        #: Generation whose assignment is on its way to the log, None when none is.
        self.storing_generation: int | None = None
        #: Members that were given an id and are to come back with it (KIP-394).
        self.pending_members: set[str] = set()
        #: Members of the generation that have not asked for their assignment yet.
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
        """All members, in the order in which they came."""
        return self._members.values()

    def member(self, member_id: str) -> Member:
        """The member of that id; KeyError if there is none."""
        return self._members[member_id]

    def static_member_id(self, group_instance_id: str) -> str | None:
        """Id of the member that is this instance now."""
        return self._static.get(group_instance_id)

    # ---- states

    def is_in(self, *states: ClassicGroupState) -> bool:
        """Is the group in one of these states?"""
        return self.state in states

    @property
    def can_rebalance(self) -> bool:
        """May a rebalance begin now?"""
        return self.state in VALID_PREVIOUS_STATES[ClassicGroupState.PREPARING_REBALANCE]

    def transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Raises IllegalTransition, and changes nothing, if the table of states has no such step."""
        check_transition(self.group_id, self.state, state)
        self.state = state
        self.state_timestamp = now_ms

    def revive(self, since_ms: int | None) -> None:
        """Takes back that the group is Dead: its tombstones are not in the log. It is Empty, since `since_ms` as before."""
        self.state = ClassicGroupState.EMPTY
        self.state_timestamp = since_ms

    # ---- members

    def add(self, member: Member, reply: ReplyHandle | None = None) -> None:
        """A new member, parked with its request if there is one; the first of all leads."""
        instance_id = member.group_instance_id
        if instance_id is not None and instance_id in self._static:
            raise ValueError(f"instance {instance_id!r} is already a member of group {self.group_id!r}")
        if not self._members:
            self.protocol_type = member.protocol_type
        if self.protocol_type != member.protocol_type:
            raise ValueError(f"member {member.member_id!r} is a {member.protocol_type!r}, the group a {self.protocol_type!r}")
        if instance_id is not None:
            self._static[instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self._members[member.member_id] = member
        self._supporters.update(member.protocol_names)
        self.pending_members.discard(member.member_id)
        self.park_join(member, reply)

    def remove(self, member_id: str) -> Member | None:
        """Takes a member, or an id that waits for its member, out of everything. Another member leads if it did."""
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
        """What a member says about itself when it joins again."""
        self._supporters -= Counter(member.protocol_names)
        member.protocols = protocols
        self._supporters.update(member.protocol_names)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename(self, old_member_id: str, new_member_id: str) -> Member:
        """A static member gets another id and keeps everything else (`replaceStaticMember`). ValueError if there is none."""
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
        """Parks the member's JoinGroup; None: it waits no more."""
        self._awaiting_join += (reply is not None) - (member.awaiting_join is not None)
        member.awaiting_join = reply

    def add_pending_member(self, member_id: str) -> None:
        """A member id that was given out. ValueError if it is a member already."""
        if member_id in self._members:
            raise ValueError(f"{member_id!r} is a member of group {self.group_id!r} already, and cannot be pending")
        self.pending_members.add(member_id)

    def add_pending_sync(self, member_id: str) -> None:
        """The member is to send SyncGroup. ValueError if it is no member."""
        self._check_member(member_id)
        self.pending_sync.add(member_id)

    def remove_pending_sync(self, member_id: str) -> None:
        """The member sent SyncGroup. ValueError if it is no member."""
        self._check_member(member_id)
        self.pending_sync.discard(member_id)

    @property
    def awaiting_join(self) -> int:
        """How many members have a JoinGroup parked."""
        return self._awaiting_join

    @property
    def all_joined(self) -> bool:
        """Is nobody missing, and no id that was given out?"""
        return self._awaiting_join == len(self._members) and not self.pending_members

    def not_yet_rejoined(self) -> tuple[Member, ...]:
        """Members without a parked JoinGroup."""
        return tuple(member for member in self._members.values() if member.awaiting_join is None)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest of all members, 0 without members."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Sees to it that a member leads that has joined; False if none has (`maybeElectNewJoinedLeader`)."""
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
        """May a member with these protocols be in the group? One that all members know is enough."""
        names = {name for name, _ in protocols}
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(self._supporters[name] == len(self._members) for name in names)

    def select_protocol(self) -> str:
        """The protocol with most votes; of equal ones that which was voted for first. ValueError without members."""
        if not self._members:
            raise ValueError(f"group {self.group_id!r} has no members to vote for a protocol")
        candidates = {name for name, count in self._supporters.items() if count == len(self._members)}
        votes = Counter(member.vote(candidates) for member in self._members.values())
        return votes.most_common(1)[0][0]

    def next_generation(self, now_ms: int) -> None:
        """Begins the next generation, of those who are members now; without members the group is Empty."""
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
        """From now on, the group is subscribed to what its members are subscribed to now."""
        protocol = self.protocol_name
        if self._members and protocol is None:
            self._subscriptions = None
        else:
            self._subscriptions = tuple(m.metadata(protocol or "") for m in self._members.values())

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """Topics of all subscriptions of the generation; None when unknown (`computeSubscribedTopics`): another protocol type,
        or bytes that are no subscription."""
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
        """The members as their leader gets to know them, with their subscriptions for the protocol of the generation."""
        if self.protocol_name is None or self.is_in(ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.DEAD):
            raise ValueError(f"group {self.group_id!r} is {self.state}: its members are not settled")
        name = self.protocol_name
        return tuple(JoinGroupMember(m.member_id, m.group_instance_id, m.metadata(name)) for m in self._members.values())

    # ---- what expiry asks (`ExpiringGroup`)

    @property
    def group_type(self) -> str:
        """ "simple" while it never had a member, "classic" after that."""
        return "classic" if self.protocol_type or self._members else "simple"

    def _check_member(self, member_id: str) -> None:
        if member_id not in self._members:
            raise ValueError(f"{member_id!r} is no member of group {self.group_id!r}")

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())
