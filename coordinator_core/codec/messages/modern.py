"""Records shared by consumer (KIP-848), share (KIP-932) and streams (KIP-1071) groups."""

from dataclasses import dataclass
from uuid import UUID

from coordinator_core.codec.messages.offsets import Tags


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Key of the records that exist once per modern group: types 3, 4, 6, 9, 11, 12, 15, 17, 20, 23."""

    group_id: str


@dataclass(frozen=True, slots=True)
class MemberKey:
    """Key of the records that exist per member of a modern group: types 5, 7, 8, 10, 13, 14, 19, 21, 22."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class TargetAssignmentMetadataValue:
    """Types 6, 12 and 20. `assignment_timestamp` in ms, 0 if the version has none (before 4.3)."""

    assignment_epoch: int
    assignment_timestamp: int = 0
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of one topic, by id; `assignment_epochs` (KIP-1251, 4.3+) is as long as `partitions`, or empty."""

    topic_id: UUID
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class TargetAssignmentMemberValue:
    """Types 7 and 13."""

    topic_partitions: tuple[TopicPartitions, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class PartitionRacks:
    partition: int
    racks: tuple[str, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    topic_id: UUID
    topic_name: str
    num_partitions: int
    partition_metadata: tuple[PartitionRacks, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class PartitionMetadataValue:
    """Types 4 (only tombstones since 4.1) and 9 (4.0 only): the topics a group is subscribed to."""

    topics: tuple[TopicMetadata, ...] = ()
    unknown_tags: Tags = ()
