"""Records of consumer groups (KIP-848): types 3, 5, 8 and 16 (4, 6 and 7 are in `modern`)."""

from dataclasses import dataclass

from coordinator_core.codec.messages.modern import TopicPartitions
from coordinator_core.codec.messages.offsets import Tags


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataValue:
    """Type 3: the group epoch."""

    epoch: int
    metadata_hash: int = 0
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    name: str
    metadata: bytes
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """Classic protocols and session timeout of a member that uses the classic protocol."""

    session_timeout_ms: int = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadataValue:
    """Type 5. An absent `classic_member_metadata` tag reads as the empty struct, an explicit null as None."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentValue:
    """Type 8. `state`: 0 STABLE, 1 UNREVOKED_PARTITIONS, 2 UNRELEASED_PARTITIONS (`MemberState`)."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[TopicPartitions, ...] = ()
    partitions_pending_revocation: tuple[TopicPartitions, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionKey:
    group_id: str
    regular_expression: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionValue:
    """Type 16: the topics a regular expression resolved to, at a metadata version and time (ms)."""

    topics: tuple[str, ...]
    version: int
    timestamp: int
    unknown_tags: Tags = ()
