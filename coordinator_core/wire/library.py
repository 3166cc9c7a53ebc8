"""The messages of kafka-python, with codecs generated from Kafka's message definitions. Only this module uses the library.

Its generated decoders are fast, but trust the bytes: a length may exceed the frame, a varint may be arbitrarily long, and each
section of tagged fields copies the rest of the frame. They are tried first, but not on messages with tagged fields or overlong
varints. A message that they cannot decode is decoded again by the library's slower decoders, field by field, from a stream that
raises at the end of the frame; these also report the position of the error, and replace text that is not UTF-8 as brokers do.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from io import BytesIO
from types import FunctionType
from typing import Any, NoReturn

from kafka.protocol.admin import cluster as _cluster
from kafka.protocol.admin import configs as _configs
from kafka.protocol.admin import groups as _groups
from kafka.protocol.admin import topics as _topics
from kafka.protocol.admin import transactions as _listed_transactions
from kafka.protocol.api_message import ApiMessage as _ApiMessage
from kafka.protocol.consumer import fetch as _fetch
from kafka.protocol.consumer import group as _group
from kafka.protocol.consumer import offsets as _offsets
from kafka.protocol.metadata import api_versions as _api_versions
from kafka.protocol.metadata import find_coordinator as _find_coordinator
from kafka.protocol.metadata import metadata as _metadata
from kafka.protocol.producer import produce as _produce
from kafka.protocol.producer import transaction as _transactions
from kafka.protocol.schemas.fields import SimpleField as _SimpleField
from kafka.protocol.schemas.fields.codecs import Int16 as _Int16
from kafka.protocol.schemas.fields.codecs import String as _String
from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32 as _UnsignedVarInt32

from coordinator_core.protocol.api import RequestHeader
from coordinator_core.wire import definitions as _definitions
from coordinator_core.wire.errors import MalformedMessage, Unwritable
from coordinator_core.wire.text import decode_text

#: The highest bit of each byte, and more bytes with this bit, the continuation bit, than any valid varint has. Translating and
#: searching takes a tenth of the time of a regular expression.
_HIGHEST_BIT = bytes(byte >> 7 for byte in range(256))
_ENDLESS_VARINT = bytes([1] * 16)


class _ExactFrame(BytesIO):
    """A stream that raises EOFError if fewer bytes are left than requested."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if size is None or len(data) != size:
            raise EOFError(f"{size} bytes are needed, {len(data)} are left")
        return data


class _Tagged(Exception):
    """The message has tagged fields."""


def _leave_tags(_rest: bytes) -> NoReturn:
    raise _Tagged


class _Text(_String):  # type: ignore[misc]  # untyped library
    """A string of any bytes."""

    def decode(self, data: BytesIO, compact: bool = False) -> str | None:
        length = _UnsignedVarInt32.decode(data) - 1 if compact else _Int16.decode(data)
        return None if length < 0 else decode_text(data.read(length))


_TEXT = _Text()


@cache
def _fields_of_any_text(message: Any) -> Any:
    """Return a copy of the fields of a message, whose strings may have any bytes. Other users of the library keep its fields."""
    fields = message._struct
    # deepcopy takes what its memo has for an object: our strings, and the weak reference to the message, which has no copy
    return deepcopy(fields, {id(_SimpleField.TYPES["string"]): _TEXT, id(fields.data_class): fields.data_class})


class MessageCodec:
    """Codec of the bodies of one message type in one version."""

    def __init__(self, message: Any, version: int) -> None:
        self._message = message
        self._version = version
        self._flexible = bool(message.flexible_version_q(version))
        generated = message._struct.compiled_decode_from(
            version, compact=self._flexible, tagged=self._flexible, data_class=message
        )
        # a copy with its own globals: the library's function is unchanged for other users
        self._decode: Callable[[bytes, int], tuple[Any, int]] = FunctionType(
            generated.__code__, generated.__globals__ | {"_BytesIO": _leave_tags}
        )

    def decode(self, frame: bytes, position: int, header: RequestHeader | None = None) -> Any:
        """Decode the body that begins at `position`; bytes after it are ignored, as brokers do. Raises MalformedMessage."""
        if not self._flexible or frame.isascii() or _ENDLESS_VARINT not in frame.translate(_HIGHEST_BIT):
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
            return _fields_of_any_text(self._message).decode(
                data, version=self._version, compact=self._flexible, tagged=self._flexible, data_class=self._message
            )
        except Exception as error:
            raise MalformedMessage(f"{self._message.__name__} v{self._version}: {error}", data.tell(), header) from None

    def encode_request(self, body: Any, correlation_id: int, client_id: str | None) -> bytes:
        """Encode header and body. Raises Unwritable."""
        body.API_VERSION = self._version
        body.with_header(correlation_id, client_id)
        return self._encode(body)

    def encode_response(self, body: Any, correlation_id: int) -> bytes:
        """Encode header and body. Raises Unwritable."""
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
    """Return the codec of a message class of this module."""
    return MessageCodec(message, version)


ApiVersionsRequest: Any = _api_versions.ApiVersionsRequest
ApiVersionsResponse: Any = _api_versions.ApiVersionsResponse


class ConsumerGroupDescribeRequest(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """Request of KIP-848, which the library does not have."""


class ConsumerGroupDescribeResponse(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """Response of KIP-848, which the library does not have."""


class DescribeShareGroupOffsetsRequest(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """Request of KIP-932, which the library does not have. Version 1 has lag (KIP-1226)."""


class DescribeShareGroupOffsetsResponse(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """Response of KIP-932, which the library does not have. Version 1 has lag (KIP-1226)."""


class ShareGroupDescribeRequest(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """Request of KIP-932, which the library does not have."""


class ShareGroupDescribeResponse(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """Response of KIP-932, which the library does not have."""


class StreamsGroupDescribeRequest(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """Request of KIP-1071, which the library does not have."""


class StreamsGroupDescribeResponse(_ApiMessage, load_json=_definitions):  # type: ignore[misc, call-arg]  # untyped library
    """Response of KIP-1071, which the library does not have."""


AddOffsetsToTxnRequest: Any = _transactions.AddOffsetsToTxnRequest
AddOffsetsToTxnResponse: Any = _transactions.AddOffsetsToTxnResponse
AddPartitionsToTxnRequest: Any = _transactions.AddPartitionsToTxnRequest
AddPartitionsToTxnResponse: Any = _transactions.AddPartitionsToTxnResponse
DeleteGroupsRequest: Any = _groups.DeleteGroupsRequest
DeleteGroupsResponse: Any = _groups.DeleteGroupsResponse
DescribeClusterRequest: Any = _cluster.DescribeClusterRequest
DescribeClusterResponse: Any = _cluster.DescribeClusterResponse
DescribeConfigsRequest: Any = _configs.DescribeConfigsRequest
DescribeConfigsResponse: Any = _configs.DescribeConfigsResponse
DescribeGroupsRequest: Any = _groups.DescribeGroupsRequest
DescribeGroupsResponse: Any = _groups.DescribeGroupsResponse
DescribeTransactionsRequest: Any = _listed_transactions.DescribeTransactionsRequest
DescribeTransactionsResponse: Any = _listed_transactions.DescribeTransactionsResponse
EndTxnRequest: Any = _transactions.EndTxnRequest
EndTxnResponse: Any = _transactions.EndTxnResponse
FetchRequest: Any = _fetch.FetchRequest
FetchResponse: Any = _fetch.FetchResponse
FindCoordinatorRequest: Any = _find_coordinator.FindCoordinatorRequest
FindCoordinatorResponse: Any = _find_coordinator.FindCoordinatorResponse
HeartbeatRequest: Any = _group.HeartbeatRequest
HeartbeatResponse: Any = _group.HeartbeatResponse
InitProducerIdRequest: Any = _transactions.InitProducerIdRequest
InitProducerIdResponse: Any = _transactions.InitProducerIdResponse
JoinGroupRequest: Any = _group.JoinGroupRequest
JoinGroupResponse: Any = _group.JoinGroupResponse
LeaveGroupRequest: Any = _group.LeaveGroupRequest
LeaveGroupResponse: Any = _group.LeaveGroupResponse
ListGroupsRequest: Any = _groups.ListGroupsRequest
ListGroupsResponse: Any = _groups.ListGroupsResponse
ListOffsetsRequest: Any = _offsets.ListOffsetsRequest
ListOffsetsResponse: Any = _offsets.ListOffsetsResponse
ListTransactionsRequest: Any = _listed_transactions.ListTransactionsRequest
ListTransactionsResponse: Any = _listed_transactions.ListTransactionsResponse
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
CreatePartitionsRequest: Any = _topics.CreatePartitionsRequest
CreatePartitionsResponse: Any = _topics.CreatePartitionsResponse
CreateTopicsRequest: Any = _topics.CreateTopicsRequest
CreateTopicsResponse: Any = _topics.CreateTopicsResponse
DeleteRecordsRequest: Any = _topics.DeleteRecordsRequest
DeleteRecordsResponse: Any = _topics.DeleteRecordsResponse
DeleteTopicsRequest: Any = _topics.DeleteTopicsRequest
DeleteTopicsResponse: Any = _topics.DeleteTopicsResponse
DescribeLogDirsRequest: Any = _cluster.DescribeLogDirsRequest
DescribeLogDirsResponse: Any = _cluster.DescribeLogDirsResponse
DescribeProducersRequest: Any = _listed_transactions.DescribeProducersRequest
DescribeProducersResponse: Any = _listed_transactions.DescribeProducersResponse
IncrementalAlterConfigsRequest: Any = _configs.IncrementalAlterConfigsRequest
IncrementalAlterConfigsResponse: Any = _configs.IncrementalAlterConfigsResponse
OffsetForLeaderEpochRequest: Any = _offsets.OffsetForLeaderEpochRequest
OffsetForLeaderEpochResponse: Any = _offsets.OffsetForLeaderEpochResponse
