"""A poll: what the coordinators of a cluster answered about their groups within one round of requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

#: The log partition of all rows that are made from polls; those of the topic begin at 0.
POLLED_PARTITION = -1


class TopicPartitionKey(NamedTuple):
    """A partition of a topic, by name."""

    topic: str
    partition: int


class PolledOffset(NamedTuple):
    """A committed offset as OffsetFetch reports it; `leader_epoch` is -1 for none."""

    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True)
class ClassicMemberAnswer:
    """A member of a classic group. Subscription and assignment are the bytes of the client's protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class ClassicGroupAnswer:
    """A group as DescribeGroups reports it. Only the members of a `Stable` group have subscriptions and assignments."""

    state: str
    protocol_type: str
    protocol: str
    members: tuple[ClassicMemberAnswer, ...]


#: Topic id and partitions.
AssignedTopic = tuple[UUID, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ConsumerMemberAnswer:
    """A member of a group of KIP-848; `assigned` is what it owns, `target` what it will own."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assigned: tuple[AssignedTopic, ...]
    target: tuple[AssignedTopic, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupAnswer:
    """A group as ConsumerGroupDescribe reports it (KIP-848)."""

    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ConsumerMemberAnswer, ...]


@dataclass(frozen=True, slots=True)
class ShareMemberAnswer:
    """A member of a share group. No answer has its target assignment."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    assigned: tuple[AssignedTopic, ...]


@dataclass(frozen=True, slots=True)
class ShareGroupAnswer:
    """A group as ShareGroupDescribe reports it (KIP-932)."""

    state: str
    group_epoch: int
    assignment_epoch: int
    members: tuple[ShareMemberAnswer, ...]


#: Subtopology and partitions.
AssignedTasks = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class TasksAnswer:
    """Tasks of a member of a streams group."""

    active: tuple[AssignedTasks, ...] = ()
    standby: tuple[AssignedTasks, ...] = ()
    warmup: tuple[AssignedTasks, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamsMemberAnswer:
    """A member of a streams group; `assigned` is what it owns, `target` what it will own. `user_endpoint` is host and port."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: tuple[str, int] | None
    client_tags: tuple[tuple[str, str], ...]
    assigned: TasksAnswer
    target: TasksAnswer


@dataclass(frozen=True, slots=True)
class SubtopologyAnswer:
    """A subtopology, by its topics."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopologyAnswer:
    """The topology of a streams group. Its subtopologies are None while source topics are missing."""

    epoch: int
    subtopologies: tuple[SubtopologyAnswer, ...] | None


@dataclass(frozen=True, slots=True)
class StreamsGroupAnswer:
    """A group as StreamsGroupDescribe reports it (KIP-1071)."""

    state: str
    group_epoch: int
    assignment_epoch: int
    topology: TopologyAnswer | None
    members: tuple[StreamsMemberAnswer, ...]


GroupAnswer = ClassicGroupAnswer | ConsumerGroupAnswer | ShareGroupAnswer | StreamsGroupAnswer


@dataclass(frozen=True, slots=True)
class PolledGroup:
    """What the coordinator of a group answered.

    Attributes:
        description: None if the coordinator knows no group of that name
        offsets: committed offsets; an offset of -1 is no commit, and is not among them
        without_commit: partitions that were asked for by name, and have no commit
        has_unread_offsets: there are offsets of topics that are not read
    """

    description: GroupAnswer | None
    offsets: Mapping[TopicPartitionKey, PolledOffset] = field(default_factory=dict)
    without_commit: frozenset[TopicPartitionKey] = frozenset()
    has_unread_offsets: bool = False

    @property
    def is_absent(self) -> bool:
        """True if the coordinator knows neither the group nor an offset of it."""
        return self.description is None and not self.offsets and not self.has_unread_offsets


class ShareOffset(NamedTuple):
    """What the coordinator answered about a partition of a share group.

    Attributes:
        topic, partition: None for an error about the whole group
        start_offset: None before the group has read the partition
        lag: records that are not acknowledged; None if unknown, and from brokers before 4.2
        leader_epoch: None if unknown
        reason: name of the error in place of the offset
        answered_at_ms: time of the answer
    """

    group_id: str
    topic: str | None
    partition: int | None
    start_offset: int | None
    lag: int | None
    leader_epoch: int | None
    reason: str | None
    answered_at_ms: int


@dataclass(frozen=True)
class GroupPoll:
    """The answers of one poll. Times in ms.

    Attributes:
        asked_at_ms: when its first request was sent
        answered_at_ms: when its last answer was received
        groups: the groups whose coordinator answered
        failures: group → the reason why its coordinator gave an error instead
        silent: names of brokers → the reason why they did not answer; nothing is known about their groups
        topic_names: names of topic ids, of the topics that the user may describe
        hidden_topics: topics of known offsets that the user may not describe any more; these offsets were not answered
    """

    asked_at_ms: int
    answered_at_ms: int
    groups: Mapping[str, PolledGroup] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    topic_names: Mapping[UUID, str] = field(default_factory=dict)
    hidden_topics: frozenset[str] = frozenset()

    @property
    def is_complete(self) -> bool:
        """True if every broker answered: then a group that is in no answer may be missing."""
        return not self.silent
