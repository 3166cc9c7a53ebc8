"""OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete and the end of transactions. Times in ms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol.api import CoordinatorRequest, GroupRequest, Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import NO_GENERATION, UNKNOWN_MEMBER_ID

#: Offset in OffsetFetch responses of a partition without a commit.
INVALID_OFFSET = -1


class OffsetToCommit(NamedTuple):
    """An offset in a commit request; null metadata counts as empty. `commit_timestamp` is -1 unless set, in v1."""

    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: UUID = ZERO_UUID
    commit_timestamp: int = -1


@dataclass(frozen=True, slots=True)
class OffsetCommitRequest(GroupRequest):
    """`retention_ms` is -1 unless set, in v2–v4. `knows_missing_groups`: the response may be GROUP_ID_NOT_FOUND (v9+).

    `in_zookeeper`: v0, whose offsets brokers keep in ZooKeeper.
    """

    group_id: str
    offsets: Mapping[TopicPartition, OffsetToCommit]
    member_id: str = UNKNOWN_MEMBER_ID
    generation: int = NO_GENERATION
    group_instance_id: str | None = None
    retention_ms: int = -1
    knows_missing_groups: bool = False
    in_zookeeper: bool = False


class ProducerEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequest(GroupRequest):
    """A commit in a transaction. Member fields exist since v3 (KIP-447).

    `knows_transaction_abortable`: v4+; `adds_partition`: v5+, the commit adds the partition of the group to the transaction.
    """

    group_id: str
    transactional_id: str
    producer: ProducerEpoch
    offsets: Mapping[TopicPartition, OffsetToCommit]
    member_id: str = UNKNOWN_MEMBER_ID
    generation: int = NO_GENERATION
    group_instance_id: str | None = None
    knows_transaction_abortable: bool = False
    adds_partition: bool = False


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse(Response):
    """Response to OffsetCommit and TxnOffsetCommit."""

    errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class TxnMarkerRequest(CoordinatorRequest):
    """The part of WriteTxnMarkers for one partition: the transaction of a producer ends.

    `transaction_version` is the client's, since v2 (KIP-1228), otherwise 0.
    """

    producer: ProducerEpoch
    control_type: ControlType
    coordinator_epoch: int = 0
    transaction_version: int = 0


@dataclass(frozen=True, slots=True)
class TxnMarkerResponse(Response):
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest(GroupRequest):
    """`partitions` None: all committed offsets (v2+). `require_stable`: v7+, KIP-447. `topic_ids`: v10+.

    `in_zookeeper`: v0, whose offsets brokers keep in ZooKeeper.
    """

    group_id: str
    partitions: tuple[TopicPartition, ...] | None = None
    require_stable: bool = False
    topic_ids: Mapping[str, UUID] | None = None
    in_zookeeper: bool = False


class FetchedOffset(NamedTuple):
    offset: int = INVALID_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse(Response):
    error: ErrorCode
    offsets: Mapping[TopicPartition, FetchedOffset]


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequest(GroupRequest):
    group_id: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponse(Response):
    error: ErrorCode
    errors: Mapping[TopicPartition, ErrorCode]
