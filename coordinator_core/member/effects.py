"""Output of a member: requests to send, and events for the application."""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator_core.assignors import TopicPartition
from coordinator_core.protocol.api import Request
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import (
    FetchedOffset,
)


@dataclass(frozen=True, slots=True)
class PartitionsAssigned:
    """Newly assigned partitions, without those already owned (`onPartitionsAssigned`); empty if the assignment is unchanged."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsRevoked:
    """Partitions that the member gives up (`onPartitionsRevoked`). Commits sent before the requests of the same effects are
    still valid."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsLost:
    """Partitions that another member may own already: a commit would be rejected (`onPartitionsLost`)."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """Result of a commit, by partition."""

    errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class OffsetsFetched:
    """Committed offsets by partition; empty if the request failed as a whole."""

    error: ErrorCode
    offsets: Mapping[TopicPartition, FetchedOffset]


@dataclass(frozen=True, slots=True)
class MemberFailed:
    """The member has left the group for good: the error is not retriable."""

    problem: str
    error: ErrorCode | None = None


Event = PartitionsAssigned | PartitionsRevoked | PartitionsLost | OffsetsCommitted | OffsetsFetched | MemberFailed


@dataclass(frozen=True, slots=True)
class Effects:
    """Handle the events before sending the requests: an application can still commit revoked partitions.

    FindCoordinator may be sent to any broker, all other requests to the member's coordinator.
    """

    events: tuple[Event, ...] = ()
    requests: tuple[Request, ...] = ()
