"""Kafka protocol: bytes ↔ requests and responses of the coordinator. Only this package uses kafka-python."""

from coordinator_core.protocol.api import RequestHeader
from coordinator_core.wire.client_side import read_response, write_request
from coordinator_core.wire.errors import MalformedMessage, UnknownApi, UnsupportedVersion, Unwritable, WireError
from coordinator_core.wire.header_codec import correlation_id_of
from coordinator_core.wire.large_requests import is_decoded_within, may_be_large
from coordinator_core.wire.parts import Buffers, Part, PartitionMarker, Peer, WireRequest, WireResponse
from coordinator_core.wire.server_side import read_request, write_error_response, write_response

__all__ = [
    "Buffers",
    "MalformedMessage",
    "Part",
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
    "is_decoded_within",
    "may_be_large",
    "read_request",
    "read_response",
    "write_error_response",
    "write_request",
    "write_response",
]
