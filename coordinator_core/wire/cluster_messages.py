"""Requests that are about the cluster rather than about a group: who is there, which versions it speaks, which partitions it has.

Versions of the protocol are fields here, as in the coordinator's messages; what a version does not have keeps its default.
Times in ms.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.state.offsets import TopicPartition

#: `ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN`.
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest:
    """None before v3 (KIP-511)."""

    software_name: str | None = None
    software_version: str | None = None

    @property
    def valid(self) -> bool:
        """Whether a broker takes the names; it answers INVALID_REQUEST where it does not."""
        return all(text is None or _SOFTWARE.fullmatch(text) for text in (self.software_name, self.software_version))


class ApiVersionRange(NamedTuple):
    api_key: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse:
    error: ErrorCode
    apis: tuple[ApiVersionRange, ...]


class Broker(NamedTuple):
    """A broker as clients reach it; the rack is known since Metadata v1."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class RequestedTopic(NamedTuple):
    """By name or, since v12, by id: an id that is not zero wins over whatever name there is."""

    name: str | None
    topic_id: UUID = ZERO_UUID


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """`topics` None: all of them."""

    topics: tuple[RequestedTopic, ...] | None = None
    allow_auto_topic_creation: bool = True


class PartitionMetadata(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


class TopicMetadata(NamedTuple):
    name: str | None
    partitions: tuple[PartitionMetadata, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """`error` is told since v13; before, it stands at every topic."""

    brokers: tuple[Broker, ...]
    topics: tuple[TopicMetadata, ...]
    cluster_id: str | None = None
    controller_id: int = -1
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class DescribeClusterRequest:
    """`endpoint_type`: 1 for brokers, 2 for controllers (KIP-919)."""

    endpoint_type: int = 1


@dataclass(frozen=True, slots=True)
class DescribeClusterResponse:
    error: ErrorCode
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[Broker, ...] = ()
    error_message: str | None = None
    endpoint_type: int = 1


class ListOffsetsPosition(IntEnum):
    """Negative timestamps of ListOffsets (`ListOffsetsRequest`)."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """Partition → timestamp in ms, or a negative one that names a position (`ListOffsetsPosition`). Below `lowest_timestamp`
    the version of the request names none."""

    timestamps: Mapping[TopicPartition, int]
    lowest_timestamp: int


class ListedOffset(NamedTuple):
    error: ErrorCode
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    offsets: Mapping[TopicPartition, ListedOffset]


class FetchPartition(NamedTuple):
    """By topic name up to v12, by topic id from v13 on."""

    topic: str
    topic_id: UUID
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """What a consumer wants; sessions are of KIP-227."""

    partitions: tuple[FetchPartition, ...]
    max_wait_ms: int = 0
    min_bytes: int = 0
    session_id: int = 0
    session_epoch: int = -1


class FetchedPartition(NamedTuple):
    """A partition without records: an error, or the end of its log."""

    topic: str
    topic_id: UUID
    partition: int
    error: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class FetchResponse:
    partitions: tuple[FetchedPartition, ...]
    error: ErrorCode = ErrorCode.NONE
    session_id: int = 0


class ProducePartition(NamedTuple):
    """By topic name up to v12, by topic id from v13 on. Its records are not kept."""

    topic: str
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """`acks` 0: the producer takes no response."""

    partitions: tuple[ProducePartition, ...]
    acks: int = -1


class ProducedPartition(NamedTuple):
    """A partition that took nothing; the message is sent since v8 (KIP-467)."""

    topic: str
    topic_id: UUID
    partition: int
    error: ErrorCode
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    partitions: tuple[ProducedPartition, ...]


ClusterRequest = (
    ApiVersionsRequest | MetadataRequest | DescribeClusterRequest | ListOffsetsRequest | FetchRequest | ProduceRequest
)
ClusterResponse = (
    ApiVersionsResponse | MetadataResponse | DescribeClusterResponse | ListOffsetsResponse | FetchResponse | ProduceResponse
)
