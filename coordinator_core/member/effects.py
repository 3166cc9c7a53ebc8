"""What a member wants sent, and what it tells the application."""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator_core.assignors import TopicPartition
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from coordinator_core.coordinator.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.coordinator.messages.offsets import (
    FetchedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from coordinator_core.state import offsets

#: FindCoordinator goes to any broker, everything else to the member's coordinator.
Request = (
    FindCoordinatorRequest
    | JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
)
Response = (
    FindCoordinatorResponse
    | JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
)


@dataclass(frozen=True, slots=True)
class PartitionsAssigned:
    """The member's from now on, beside those that it has (`onPartitionsAssigned`). Empty after a rebalance without news."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsRevoked:
    """The member gives these up; commits of them that are sent before the requests that come with this still count."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """Somebody else may own these already: a commit would be refused (`onPartitionsLost`)."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """What became of a commit, by partition."""

    errors: Mapping[offsets.TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class OffsetsFetched:
    """What is committed, by partition; nothing but the error if the request failed as a whole."""

    error: ErrorCode
    offsets: Mapping[offsets.TopicPartition, FetchedOffset]


@dataclass(frozen=True, slots=True)
class MemberFailed:
    """The member is out of the group and does nothing more; trying again would not help."""

    problem: str
    error: ErrorCode | None = None


Event = PartitionsAssigned | PartitionsRevoked | PartitionsLost | OffsetsCommitted | OffsetsFetched | MemberFailed


@dataclass(frozen=True, slots=True)
class Effects:
    """Events come before requests: who is told of a revocation can still commit."""

    events: tuple[Event, ...] = ()
    requests: tuple[Request, ...] = ()
