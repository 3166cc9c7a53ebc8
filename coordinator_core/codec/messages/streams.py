"""Records of streams groups (KIP-1071): types 17, 19, 21, 22 and 23 (20 is in `modern`)."""

from dataclasses import dataclass

from coordinator_core.codec.messages.offsets import Tags


@dataclass(frozen=True, slots=True)
class KeyValue:
    key: str
    value: str
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupMetadataValue:
    """Type 17: group epoch, and the topology epochs that were validated or described (-1: none)."""

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int = -1
    last_assignment_configs: tuple[KeyValue, ...] | None = ()
    stored_description_topology_epoch: int = -1
    failed_description_topology_epoch: int = -1
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupMemberMetadataValue:
    """Type 19."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class TaskIds:
    """Tasks of one subtopology; `assignment_epochs` only on active tasks (4.2+)."""

    subtopology_id: str
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupTargetAssignmentMemberValue:
    """Type 21."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupCurrentMemberAssignmentValue:
    """Type 22. `state`: 1 STABLE, 2 UNREVOKED_TASKS, 3 UNRELEASED_TASKS (`streams.MemberState`)."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()
    active_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    standby_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    warmup_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class StreamsTopicInfo:
    name: str
    partitions: int
    replication_factor: int
    topic_configs: tuple[KeyValue, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Indexes into the topic lists of the subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class Subtopology:
    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[StreamsTopicInfo, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[StreamsTopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupTopologyValue:
    """Type 23."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] = ()
    unknown_tags: Tags = ()
