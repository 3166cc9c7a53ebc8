"""The messages of kafka-python, whose codecs are made from Kafka's own message definitions. Nothing else here knows the library.

Its generated decoders are quick and trust the bytes: a length may point behind the end, a varint may go on for as long as there
are bytes, and every set of tagged fields has the rest of the frame copied. So a message is decoded by them first, with tagged
fields and endless varints kept away from them. Whatever does not come out whole is decoded again by the library's other decoders,
field by field, from a frame that gives exactly as many bytes as it is asked for; those also tell where a message is broken.
"""

import re
from collections.abc import Callable
from functools import cache
from io import BytesIO
from types import FunctionType
from typing import Any, NoReturn

from kafka.protocol.admin import cluster as _cluster
from kafka.protocol.admin import groups as _groups
from kafka.protocol.api_message import ApiMessage as _ApiMessage
from kafka.protocol.consumer import fetch as _fetch
from kafka.protocol.consumer import group as _group
from kafka.protocol.consumer import offsets as _offsets
from kafka.protocol.metadata import api_versions as _api_versions
from kafka.protocol.metadata import find_coordinator as _find_coordinator
from kafka.protocol.metadata import metadata as _metadata
from kafka.protocol.producer import produce as _produce
from kafka.protocol.producer import transaction as _transactions

from coordinator_core.wire import definitions as _definitions
from coordinator_core.wire.errors import Malformed, Unwritable
from coordinator_core.wire.header import RequestHeader

#: More continuation bits than any varint of a message has.
_ENDLESS_VARINT = re.compile(rb"[\x80-\xff]{16}")


class _ExactFrame(BytesIO):
    """Gives as many bytes as are asked for, or none."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if size is None or len(data) != size:
            raise EOFError(f"{size} bytes are asked for, {len(data)} are left")
        return data


class _Tagged(Exception):
    """The message has tagged fields."""


def _leave_tags(_rest: bytes) -> NoReturn:
    raise _Tagged


class MessageCodec:
    """Bodies of one message type in one version."""

    def __init__(self, message: Any, version: int) -> None:
        self._message = message
        self._version = version
        self._flexible = bool(message.flexible_version_q(version))
        generated = message._struct.compiled_decode_from(
            version, compact=self._flexible, tagged=self._flexible, data_class=message
        )
        # a copy: the library's own function goes on as it was, for whoever else uses it
        self._decode: Callable[[bytes, int], tuple[Any, int]] = FunctionType(
            generated.__code__, generated.__globals__ | {"_BytesIO": _leave_tags}
        )

    def decode(self, frame: bytes, position: int, header: RequestHeader | None = None) -> Any:
        """The body that begins at `position`; what follows it is passed over, as brokers do. Raises Malformed."""
        if not self._flexible or frame.isascii() or not _ENDLESS_VARINT.search(frame):
            try:
                body, end = self._decode(frame, position)
            except Exception:
                return self._decode_carefully(frame, position, header)
            if end <= len(frame):
                return body
        return self._decode_carefully(frame, position, header)

    def _decode_carefully(self, frame: bytes, position: int, header: RequestHeader | None) -> Any:
        data = _ExactFrame(frame)
        data.seek(position)
        try:
            return self._message._struct.decode(
                data, version=self._version, compact=self._flexible, tagged=self._flexible, data_class=self._message
            )
        except Exception as error:
            raise Malformed(f"{self._message.__name__} v{self._version}: {error}", data.tell(), header) from None

    def encode_request(self, body: Any, correlation_id: int, client_id: str | None) -> bytes:
        """Header and body. Raises Unwritable."""
        body.API_VERSION = self._version
        body.with_header(correlation_id, client_id)
        return self._encode(body)

    def encode_response(self, body: Any, correlation_id: int) -> bytes:
        """Header and body. Raises Unwritable."""
        body.API_VERSION = self._version
        body.with_header(correlation_id)
        return self._encode(body)

    def _encode(self, body: Any) -> bytes:
        try:
            return bytes(body.encode(header=True))
        except Exception as error:
            raise Unwritable(f"{self._message.__name__} v{self._version}: {error}") from None


@cache
def message_codec(message: Any, version: int) -> MessageCodec:
    """The codec of a message class of this module."""
    return MessageCodec(message, version)


ApiVersionsRequest: Any = _api_versions.ApiVersionsRequest
ApiVersionsResponse: Any = _api_versions.ApiVersionsResponse


class ConsumerGroupDescribeRequest(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """KIP-848, which the library does not know."""


class ConsumerGroupDescribeResponse(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """See the request."""


DeleteGroupsRequest: Any = _groups.DeleteGroupsRequest
DeleteGroupsResponse: Any = _groups.DeleteGroupsResponse
DescribeClusterRequest: Any = _cluster.DescribeClusterRequest
DescribeClusterResponse: Any = _cluster.DescribeClusterResponse
DescribeGroupsRequest: Any = _groups.DescribeGroupsRequest
DescribeGroupsResponse: Any = _groups.DescribeGroupsResponse
FetchRequest: Any = _fetch.FetchRequest
FetchResponse: Any = _fetch.FetchResponse
FindCoordinatorRequest: Any = _find_coordinator.FindCoordinatorRequest
FindCoordinatorResponse: Any = _find_coordinator.FindCoordinatorResponse
HeartbeatRequest: Any = _group.HeartbeatRequest
HeartbeatResponse: Any = _group.HeartbeatResponse
JoinGroupRequest: Any = _group.JoinGroupRequest
JoinGroupResponse: Any = _group.JoinGroupResponse
LeaveGroupRequest: Any = _group.LeaveGroupRequest
LeaveGroupResponse: Any = _group.LeaveGroupResponse
ListGroupsRequest: Any = _groups.ListGroupsRequest
ListGroupsResponse: Any = _groups.ListGroupsResponse
ListOffsetsRequest: Any = _offsets.ListOffsetsRequest
ListOffsetsResponse: Any = _offsets.ListOffsetsResponse
MetadataRequest: Any = _metadata.MetadataRequest
MetadataResponse: Any = _metadata.MetadataResponse
OffsetCommitRequest: Any = _group.OffsetCommitRequest
OffsetCommitResponse: Any = _group.OffsetCommitResponse
OffsetDeleteRequest: Any = _group.OffsetDeleteRequest
OffsetDeleteResponse: Any = _group.OffsetDeleteResponse
OffsetFetchRequest: Any = _group.OffsetFetchRequest
OffsetFetchResponse: Any = _group.OffsetFetchResponse
ProduceRequest: Any = _produce.ProduceRequest
ProduceResponse: Any = _produce.ProduceResponse
SyncGroupRequest: Any = _group.SyncGroupRequest
SyncGroupResponse: Any = _group.SyncGroupResponse
TxnOffsetCommitRequest: Any = _transactions.TxnOffsetCommitRequest
TxnOffsetCommitResponse: Any = _transactions.TxnOffsetCommitResponse
WriteTxnMarkersRequest: Any = _transactions.WriteTxnMarkersRequest
WriteTxnMarkersResponse: Any = _transactions.WriteTxnMarkersResponse
