"""Requests and responses about the cluster: its brokers, API versions, topics and partitions.

As in the coordinator's messages, a field that a protocol version lacks has its default.
Times in ms.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import NodeRequest, Response
from coordinator_core.protocol.error_code import ErrorCode

#: `ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN`.
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest(NodeRequest):
    """The fields are None before v3 (KIP-511)."""

    software_name: str | None = None
    software_version: str | None = None

    @property
    def valid(self) -> bool:
        """Whether brokers accept the names; otherwise they answer INVALID_REQUEST."""
        return all(text is None or _SOFTWARE.fullmatch(text) for text in (self.software_name, self.software_version))


class ApiVersionRange(NamedTuple):
    api_key: int
    lowest: int
    highest: int


class FinalizedFeature(NamedTuple):
    """A feature of the cluster with its level; the node supports the levels 0 up to it."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse(Response):
    """`features` are the finalized ones, since v3 (KIP-584)."""

    error: ErrorCode
    apis: tuple[ApiVersionRange, ...]
    features: tuple[FinalizedFeature, ...] = ()


class AclOperation(IntEnum):
    """Operations that a client may be allowed (`AclOperation`)."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Broker(NamedTuple):
    """A broker with its advertised address; the rack exists since Metadata v1."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class RequestedTopic(NamedTuple):
    """A topic by name or, since v12, by id: a nonzero id takes precedence over the name."""

    name: str | None
    topic_id: UUID = ZERO_UUID


@dataclass(frozen=True, slots=True)
class MetadataRequest(NodeRequest):
    """`topics` is None for all topics."""

    topics: tuple[RequestedTopic, ...] | None = None
    allow_auto_topic_creation: bool = True
    include_topic_operations: bool = False


class PartitionMetadata(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


class MetadataResponseTopic(NamedTuple):
    """A topic; `authorized_operations` has numbers of `AclOperation` (v8+), None unless requested."""

    name: str | None
    partitions: tuple[PartitionMetadata, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    authorized_operations: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class MetadataResponse(Response):
    """`error` is a field since v13; before, every topic has it."""

    brokers: tuple[Broker, ...]
    topics: tuple[MetadataResponseTopic, ...]
    cluster_id: str | None = None
    controller_id: int = -1
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class DescribeClusterRequest(NodeRequest):
    """`endpoint_type` is 1 for brokers, 2 for controllers (KIP-919)."""

    endpoint_type: int = 1
    include_operations: bool = False


@dataclass(frozen=True, slots=True)
class DescribeClusterResponse(Response):
    error: ErrorCode
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[Broker, ...] = ()
    error_message: str | None = None
    endpoint_type: int = 1
    authorized_operations: frozenset[int] | None = None


class IsolationLevel(IntEnum):
    """Isolation of a consumer: with READ_COMMITTED it reads up to the last stable offset."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ListOffsetsPosition(IntEnum):
    """Negative timestamps of ListOffsets (`ListOffsetsRequest`)."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest(NodeRequest):
    """Partition → timestamp in ms, or a negative one for a position (`ListOffsetsPosition`).

    `lowest_timestamp` is the lowest one that is defined in the version of the request. `current_leader_epochs` has those that the
    client has seen (v4+).
    """

    timestamps: Mapping[TopicPartition, int]
    lowest_timestamp: int
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    current_leader_epochs: Mapping[TopicPartition, int] = field(default_factory=lambda: MappingProxyType({}))


class ListedOffset(NamedTuple):
    error: ErrorCode
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse(Response):
    offsets: Mapping[TopicPartition, ListedOffset]


class FetchPartition(NamedTuple):
    """A requested partition: by topic name up to v12, by topic id from v13 on."""

    topic: str
    topic_id: UUID
    partition: int
    offset: int
    max_bytes: int = (1 << 31) - 1
    current_leader_epoch: int = -1


class ForgottenPartition(NamedTuple):
    """A partition that leaves a fetch session: by topic name up to v12, by topic id from v13 on."""

    topic: str
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class FetchRequest(NodeRequest):
    """A fetch of a consumer; sessions are those of KIP-227. `uses_topic_ids`: v13+."""

    partitions: tuple[FetchPartition, ...]
    max_wait_ms: int = 0
    min_bytes: int = 0
    session_id: int = 0
    session_epoch: int = -1
    max_bytes: int = (1 << 31) - 1
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    forgotten: tuple[ForgottenPartition, ...] = ()
    uses_topic_ids: bool = False


class AbortedFetch(NamedTuple):
    """An aborted transaction among the fetched records."""

    producer_id: int
    first_offset: int


class FetchedPartition(NamedTuple):
    """Whole record batches of a partition, or an error. `aborted` is None without READ_COMMITTED."""

    topic: str
    topic_id: UUID
    partition: int
    error: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1
    last_stable_offset: int = -1
    aborted: tuple[AbortedFetch, ...] | None = None
    records: bytes | memoryview = b""


@dataclass(frozen=True, slots=True)
class FetchResponse(Response):
    partitions: tuple[FetchedPartition, ...]
    error: ErrorCode = ErrorCode.NONE
    session_id: int = 0


class ProducePartition(NamedTuple):
    """Records for a partition: by topic name up to v12, by topic id from v13 on."""

    topic: str
    topic_id: UUID
    partition: int
    records: bytes | None = None


@dataclass(frozen=True, slots=True)
class ProduceRequest(NodeRequest):
    """With `acks` 0, the producer expects no response.

    `knows_transaction_abortable`: v11+; `adds_partitions`: v12+, the request adds its partitions to the transaction (KIP-890);
    `allows_zstd`: v7+ (KIP-110).
    """

    partitions: tuple[ProducePartition, ...]
    acks: int = -1
    transactional_id: str | None = None
    knows_transaction_abortable: bool = False
    adds_partitions: bool = False
    allows_zstd: bool = True


class ProducedPartition(NamedTuple):
    """The offset of the first record of a partition, or an error; its message is sent since v8 (KIP-467)."""

    topic: str
    topic_id: UUID
    partition: int
    error: ErrorCode
    error_message: str | None = None
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class ProduceResponse(Response):
    partitions: tuple[ProducedPartition, ...]
