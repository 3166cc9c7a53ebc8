"""Hypothesis strategies for logs of groups that live: members come and go, partitions move, offsets are committed and reset."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import strategies as st
from log_builder import NOW_MS, Log

from coordinator_core.codec import encode_assignment, encode_subscription
from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
)
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.codec.messages.modern import TargetAssignmentMetadataValue, TopicPartitions

PARTITIONS = (0, 1, 2)
TOPIC_ID = UUID(int=77)
#: Member → client; m1 and m9 are one static member before and after a restart.
CLIENTS = {"m1": "a", "m2": "b", "m3": "b", "m9": "a"}
_STATIC = {"m1": "i", "m9": "i"}

Step = Callable[["Life"], object]


@dataclass
class Life:
    """One group and its log. Every call appends records with the time of the log, which moves on between calls."""

    log: Log
    group_id: str
    generation: int = 0
    is_modern: bool = False
    has_record: bool = False
    members: dict[str, str] = field(default_factory=dict)
    owners: dict[int, str] = field(default_factory=dict)

    def classic(self, members: dict[str, str], owners: dict[int, str], *, next_generation: bool) -> None:
        """A record of the whole classic group; `members` maps ids to topics of the subscription."""
        if self.is_modern:
            self.delete()
        self.has_record, self.members, self.generation = True, members, self.generation + next_generation
        self.owners = {partition: member for partition, member in owners.items() if member in members}
        records = [self._member(member, topics) for member, topics in sorted(members.items())]
        state_time = NOW_MS + 1000 * self.log.end - 300
        self.log.group(records, group=self.group_id, generation=self.generation, protocol="range", timestamp=state_time)

    def _member(self, member: str, topics: str) -> MemberMetadata:
        owned = tuple(partition for partition, owner in sorted(self.owners.items()) if owner == member)
        assigned = (ProtocolTopicPartitions("foo", owned),) if owned else ()
        subscription = encode_subscription(ConsumerProtocolSubscription((topics,)), 1)
        assignment = encode_assignment(ConsumerProtocolAssignment(assigned), 0)
        return MemberMetadata(member, _STATIC.get(member), CLIENTS[member], "/h", 60_000, 10_000, subscription, assignment)

    def join(self, member: str, topics: str) -> None:
        """A member of the consumer protocol joins or changes its subscription: a new epoch."""
        if not self.is_modern:
            self.delete()
            self.is_modern = self.has_record = True
        self.members[member] = topics
        value = ConsumerGroupMemberMetadataValue(
            _STATIC.get(member), None, CLIENTS[member], "/h", (topics,), classic_member_metadata=None
        )
        self.log.modern(5, value, group=self.group_id, member=member)
        self.bump(0)

    def bump(self, metadata_hash: int) -> None:
        """A new group epoch and its target."""
        if self.is_modern:
            self.generation += 1
            self.log.modern(3, ConsumerGroupMetadataValue(self.generation, metadata_hash), group=self.group_id)
            self.log.modern(6, TargetAssignmentMetadataValue(self.generation), group=self.group_id)

    def own(self, member: str, partitions: frozenset[int]) -> None:
        """The member reconciles: it gives up partitions, and takes those that have no owner."""
        if not self.is_modern or member not in self.members:
            return
        free = {partition for partition in partitions if self.owners.get(partition, member) == member}
        self.owners = {p: m for p, m in self.owners.items() if m != member} | dict.fromkeys(free, member)
        assigned = (TopicPartitions(TOPIC_ID, tuple(sorted(free))),) if free else ()
        value = ConsumerGroupCurrentMemberAssignmentValue(self.generation, 0, 0, assigned)
        self.log.modern(8, value, group=self.group_id, member=member)

    def leave(self, member: str) -> None:
        if self.is_modern and member in self.members:
            del self.members[member]
            self.owners = {partition: owner for partition, owner in self.owners.items() if owner != member}
            for record_type in (8, 5):
                self.log.modern(record_type, None, group=self.group_id, member=member)
            self.bump(0)

    def delete(self) -> None:
        if self.is_modern:
            for member in tuple(self.members):
                self.leave(member)
            for record_type in (6, 3):
                self.log.modern(record_type, None, group=self.group_id)
        elif self.has_record:
            self.log.group_tombstone(self.group_id)
        self.members, self.owners, self.generation = {}, {}, 0
        self.is_modern = self.has_record = False


_names = st.sampled_from(sorted(CLIENTS))
_topics = st.sampled_from(["foo", "foo", "bar"])
_owners = st.dictionaries(st.sampled_from(PARTITIONS), _names, max_size=3)


@st.composite
def _classic(draw: st.DrawFn) -> Step:
    members = draw(st.dictionaries(_names, _topics, max_size=3))
    if "m1" in members:
        members.pop("m9", None)
    owners, is_next = draw(_owners), draw(st.sampled_from([True, True, True, False]))
    return lambda life: life.classic(members, owners, next_generation=is_next)


@st.composite
def _join(draw: st.DrawFn) -> Step:
    member, topics = draw(st.sampled_from(["m1", "m2", "m3"])), draw(_topics)
    return lambda life: life.join(member, topics)


@st.composite
def _own(draw: st.DrawFn) -> Step:
    member, partitions = draw(st.sampled_from(["m1", "m2", "m3"])), draw(st.frozensets(st.sampled_from(PARTITIONS)))
    return lambda life: life.own(member, partitions)


@st.composite
def _leave(draw: st.DrawFn) -> Step:
    member = draw(_names)
    return lambda life: life.leave(member)


@st.composite
def _bump(draw: st.DrawFn) -> Step:
    metadata_hash = draw(st.integers(0, 2))
    return lambda life: life.bump(metadata_hash)


@st.composite
def _commit(draw: st.DrawFn) -> Step:
    partition, offset, epoch = draw(st.integers(0, 1)), draw(st.integers(0, 9)), draw(st.sampled_from([-1, -1, 3]))
    return lambda life: life.log.commit(
        partition, offset, group=life.group_id, topic="foo", leader_epoch=epoch, at=NOW_MS + 1000 * life.log.end
    )


@st.composite
def _tombstone(draw: st.DrawFn) -> Step:
    partition = draw(st.integers(0, 1))
    return lambda life: life.log.offset_tombstone(partition, group=life.group_id, topic="foo")


_modern = st.one_of(_join(), _own(), _own(), _own(), _leave(), _bump())
_membership = st.one_of(_classic(), _classic(), _modern, _modern, st.just(Life.delete))


@st.composite
def lives(draw: st.DrawFn, *, commits: bool = False, max_size: int = 30) -> Log:
    """A log of two groups, after a record of another one. Record times grow by a second per record."""
    log = Log(partition=3)
    log.commit(0, 1, group="other")
    both = [Life(log, "a"), Life(log, "b")]
    kinds = st.one_of(_membership, _commit(), _commit(), _commit(), _tombstone()) if commits else _membership
    for index, step in draw(st.lists(st.tuples(st.integers(0, 1), kinds), min_size=1, max_size=max_size)):
        step(both[index])
    log.records = [record._replace(timestamp=NOW_MS + 1000 * record.offset) for record in log.records]
    return log
