"""A request as it is taken apart: what its bytes do not say, and the pieces that are answered one by one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from coordinator_core.coordinator.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from coordinator_core.coordinator.messages.offsets import TxnMarkerRequest
from coordinator_core.coordinator.request_checks import Request
from coordinator_core.coordinator.result import Response
from coordinator_core.wire.cluster_messages import ClusterRequest, ClusterResponse, ProduceRequest
from coordinator_core.wire.header import RequestHeader


class PartitionMarker(NamedTuple):
    """The end of a transaction in one partition: WriteTxnMarkers has any number of them."""

    topic: str
    partition: int
    marker: TxnMarkerRequest


Part = Request | FindCoordinatorRequest | PartitionMarker | ClusterRequest
PartResponse = Response | FindCoordinatorResponse | ClusterResponse

NO_TOPIC_NAMES: Mapping[UUID, str] = MappingProxyType({})
UnknownTopics = Mapping[UUID, tuple[int, ...]]


class Peer(NamedTuple):
    """What a connection and its server know, and the bytes do not say: the host as members are described with it, the names of
    topic ids (OffsetCommit and OffsetFetch v10)."""

    client_host: str = ""
    topic_names: Mapping[UUID, str] = NO_TOPIC_NAMES


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One frame. `parts` are answered in order: one per group of DescribeGroups, DeleteGroups and OffsetFetch v8+, one per
    partition of WriteTxnMarkers, one for everything else.

    `unknown_topics`, per part where there are any: partitions under topic ids without a name. They are answered
    UNKNOWN_TOPIC_ID and are not in the part.
    """

    header: RequestHeader
    parts: tuple[Part, ...]
    unknown_topics: tuple[UnknownTopics, ...] = ()

    @property
    def has_response(self) -> bool:
        """False for Produce with `acks` 0, whose producer reads none."""
        return not (len(self.parts) == 1 and isinstance(self.parts[0], ProduceRequest) and self.parts[0].acks == 0)


@dataclass(frozen=True, slots=True)
class WireResponse:
    """One frame from a broker; `parts` as in WireRequest."""

    correlation_id: int
    parts: tuple[PartResponse, ...] = field(default=())
