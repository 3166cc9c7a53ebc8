"""Decoded requests: their parts, which are answered separately, and the context that their bytes do not have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from coordinator_core.protocol.api import Request, RequestHeader, Response
from coordinator_core.protocol.cluster import ProduceRequest
from coordinator_core.protocol.offsets import TxnMarkerRequest


class PartitionMarker(NamedTuple):
    """A transaction marker for one partition; a WriteTxnMarkers request may have several."""

    topic: str
    partition: int
    marker: TxnMarkerRequest


Part = Request | PartitionMarker
#: A response without its length prefix, in consecutive pieces.
Buffers = Sequence[bytes | memoryview]

NO_TOPIC_NAMES: Mapping[UUID, str] = MappingProxyType({})
UnknownTopics = Mapping[UUID, tuple[int, ...]]


class Peer(NamedTuple):
    """Context of a request: the client host that is stored in members, and the names of topic ids."""

    client_host: str = ""
    topic_names: Mapping[UUID, str] = NO_TOPIC_NAMES


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A decoded request frame.

    `parts` has one part per group of DescribeGroups, DeleteGroups and OffsetFetch v8+, per partition of WriteTxnMarkers, per
    transaction of AddPartitionsToTxn v4+ and per id of DescribeTransactions; one for any other request. `unknown_topics` has, per
    part, the partitions of topic ids without a name; they are not in the part and are answered UNKNOWN_TOPIC_ID.
    """

    header: RequestHeader
    parts: tuple[Part, ...]
    unknown_topics: tuple[UnknownTopics, ...] = ()

    @property
    def has_response(self) -> bool:
        """Whether the client expects a response: always, except for Produce with `acks` 0."""
        return not (len(self.parts) == 1 and isinstance(self.parts[0], ProduceRequest) and self.parts[0].acks == 0)


@dataclass(frozen=True, slots=True)
class WireResponse:
    """A decoded response frame; `parts` as in WireRequest."""

    correlation_id: int
    parts: tuple[Response, ...] = field(default=())
