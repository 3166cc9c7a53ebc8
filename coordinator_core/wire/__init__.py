"""Kafka protocol: bytes ↔ requests and responses of the coordinator. Only this package uses kafka-python."""

from coordinator_core.wire.apis import SERVED, AnyApiKey, ClusterApiKey
from coordinator_core.wire.client_side import read_response, write_request
from coordinator_core.wire.errors import Malformed, UnknownApi, UnsupportedVersion, Unwritable, WireError
from coordinator_core.wire.header import RequestHeader
from coordinator_core.wire.header_codec import correlation_id_of
from coordinator_core.wire.parts import Part, PartitionMarker, PartResponse, Peer, WireRequest, WireResponse
from coordinator_core.wire.server_side import offered_versions, read_request, write_refusal, write_response

__all__ = [
    "SERVED",
    "AnyApiKey",
    "ClusterApiKey",
    "Malformed",
    "Part",
    "PartResponse",
    "PartitionMarker",
    "Peer",
    "RequestHeader",
    "UnknownApi",
    "UnsupportedVersion",
    "Unwritable",
    "WireError",
    "WireRequest",
    "WireResponse",
    "correlation_id_of",
    "offered_versions",
    "read_request",
    "read_response",
    "write_refusal",
    "write_request",
    "write_response",
]
