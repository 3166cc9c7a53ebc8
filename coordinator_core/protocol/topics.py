"""Requests and responses about topics with data: their creation, deletion, offsets, configs and producers. Times in ms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import NodeRequest, Response
from coordinator_core.protocol.configs import ConfigEntry
from coordinator_core.protocol.error_code import ErrorCode


class NewTopic(NamedTuple):
    """A topic to create; -1 stands for the default number of partitions or replicas. `assignments`: partition → nodes."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest(NodeRequest):
    """With `validate_only`, nothing is created."""

    topics: tuple[NewTopic, ...]
    validate_only: bool = False


class CreatedTopic(NamedTuple):
    """Result for one topic; partitions, replicas and configs are sent since v5."""

    name: str
    error: ErrorCode
    error_message: str | None = None
    topic_id: UUID = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1
    configs: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse(Response):
    topics: tuple[CreatedTopic, ...]


class DeletableTopic(NamedTuple):
    """A topic by name or, since v6, by id."""

    name: str | None
    topic_id: UUID = ZERO_UUID


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest(NodeRequest):
    topics: tuple[DeletableTopic, ...]


class DeletedTopic(NamedTuple):
    name: str | None
    topic_id: UUID
    error: ErrorCode
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse(Response):
    topics: tuple[DeletedTopic, ...]


class NewPartitions(NamedTuple):
    """The total number of partitions that a topic gets; `assignments` has the nodes of the new ones."""

    name: str
    total: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsRequest(NodeRequest):
    """With `validate_only`, nothing is created."""

    topics: tuple[NewPartitions, ...]
    validate_only: bool = False


class CreatedPartitions(NamedTuple):
    name: str
    error: ErrorCode
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsResponse(Response):
    topics: tuple[CreatedPartitions, ...]


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest(NodeRequest):
    """Partition → offset before which records are deleted; -1 for the high watermark."""

    offsets: Mapping[TopicPartition, int]


class DeletedRecords(NamedTuple):
    error: ErrorCode
    low_watermark: int = -1


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse(Response):
    partitions: Mapping[TopicPartition, DeletedRecords]


class RequestedEpoch(NamedTuple):
    leader_epoch: int
    current_leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochRequest(NodeRequest):
    epochs: Mapping[TopicPartition, RequestedEpoch]


class EpochEnd(NamedTuple):
    """The greatest leader epoch up to the requested one, and the offset after its last record; -1 for unknown."""

    error: ErrorCode
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochResponse(Response):
    epochs: Mapping[TopicPartition, EpochEnd]


class AlterConfigOperation(IntEnum):
    """`AlterConfigOp.OpType`."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """A change of one config; `operation` is Kafka's number, known here or not."""

    name: str
    operation: int
    value: str | None = None


@dataclass(frozen=True, slots=True)
class AlterConfigsRequest(NodeRequest):
    """IncrementalAlterConfigs for one resource. With `validate_only`, nothing changes."""

    resource_type: int
    resource_name: str
    changes: tuple[ConfigChange, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterConfigsResponse(Response):
    error: ErrorCode
    resource_type: int
    resource_name: str
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeLogDirsRequest(NodeRequest):
    """`topics`: name → partitions; None for all."""

    topics: Mapping[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class DescribeLogDirsResponse(Response):
    """The only log directory: sizes of partitions in bytes, and the space of its volume (v4+)."""

    error: ErrorCode
    log_dir: str = ""
    sizes: Mapping[TopicPartition, int] = field(default_factory=lambda: MappingProxyType({}))
    total_bytes: int = -1
    usable_bytes: int = -1


@dataclass(frozen=True, slots=True)
class DescribeProducersRequest(NodeRequest):
    partitions: tuple[TopicPartition, ...]


class ActiveProducer(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class DescribedProducers(NamedTuple):
    error: ErrorCode
    producers: tuple[ActiveProducer, ...] = ()
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeProducersResponse(Response):
    partitions: Mapping[TopicPartition, DescribedProducers]
