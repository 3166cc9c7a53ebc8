"""Records of share groups (KIP-932): types 10, 11, 14 and 15 (9, 12 and 13 are in `modern`)."""

from dataclasses import dataclass
from uuid import UUID

from coordinator_core.codec.messages.modern import TopicPartitions
from coordinator_core.codec.messages.offsets import Tags


@dataclass(frozen=True, slots=True)
class ShareGroupMemberMetadataValue:
    """Type 10."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class ShareGroupMetadataValue:
    """Type 11 (as written since 4.1): the group epoch."""

    epoch: int
    metadata_hash: int
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class ShareGroupCurrentMemberAssignmentValue:
    """Type 14. `state` as in type 8; the partitions have no assignment epochs."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[TopicPartitions, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class TopicPartitionsInfo:
    topic_id: UUID
    topic_name: str
    partitions: tuple[int, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class TopicInfo:
    topic_id: UUID
    topic_name: str
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class ShareGroupStatePartitionMetadataValue:
    """Type 15 (as written since 4.1): the share-partitions that have state."""

    initializing_topics: tuple[TopicPartitionsInfo, ...] = ()
    initialized_topics: tuple[TopicPartitionsInfo, ...] = ()
    deleting_topics: tuple[TopicInfo, ...] = ()
    unknown_tags: Tags = ()
