"""Caches of frequent messages that differ only in their correlation id: heartbeats, and responses to heartbeats and commits.

Each entry was read or written by the library once. The number of entries and the size of each entry are bounded.
"""

from functools import lru_cache

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import RequestHeader, Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import HeartbeatResponse
from coordinator_core.protocol.offsets import OffsetCommitResponse
from coordinator_core.wire import commit_codec, membership_codec
from coordinator_core.wire.api_codec import BadField, Parts
from coordinator_core.wire.errors import Malformed
from coordinator_core.wire.library import message_codec
from coordinator_core.wire.parts import Peer, WireRequest

_HEARTBEAT = membership_codec.CODECS[apis.HEARTBEAT]
_COMMIT = commit_codec.CODECS[apis.OFFSET_COMMIT]
_LONGEST_HEARTBEAT = 256
_MOST_PARTITIONS = 8
#: `Topic.MAX_NAME_LENGTH`.
_LONGEST_TOPIC = 249
_CORRELATION_ID_BYTES = 4
_NO_PEER = Peer()

ErrorsOfPartitions = tuple[tuple[TopicPartition, ErrorCode], ...]


def cached_heartbeat(header: RequestHeader, frame: bytes, position: int) -> Parts | None:
    """Return a decoded heartbeat; None for other requests, and for heartbeats that are too long to cache or malformed."""
    if header.api_key != apis.HEARTBEAT.number or len(frame) - position > _LONGEST_HEARTBEAT:
        return None
    try:
        return _heartbeat(header.version, frame[position:])
    except (Malformed, BadField):
        return None


@lru_cache(maxsize=1 << 14)
def _heartbeat(version: int, body: bytes) -> Parts:
    header = RequestHeader(apis.HEARTBEAT.number, version, 0, None)
    return _HEARTBEAT.read_request(message_codec(_HEARTBEAT.request, version).decode(body, 0, header), header, _NO_PEER)


def cached_response(request: WireRequest, response: Response) -> bytes | None:
    """Return the response frame to a heartbeat or a commit of few partitions; None for other requests."""
    api_key, version, correlation_id, _ = request.header
    if isinstance(response, HeartbeatResponse):
        rest = _heartbeat_response(version, response.error)
    elif (
        api_key == apis.OFFSET_COMMIT.number
        # with topic ids, the response depends on the request
        and not apis.OFFSET_COMMIT.has_field(version, "topic_id")
        and isinstance(response, OffsetCommitResponse)
        and len(response.errors) <= _MOST_PARTITIONS
        and all(len(at.topic) <= _LONGEST_TOPIC for at in response.errors)
    ):
        rest = _commit_response(version, tuple(response.errors.items()))
    else:
        return None
    return correlation_id.to_bytes(_CORRELATION_ID_BYTES, "big", signed=True) + rest


@lru_cache(maxsize=1 << 10)
def _heartbeat_response(version: int, error: ErrorCode) -> bytes:
    request = WireRequest(RequestHeader(apis.HEARTBEAT.number, version, 0, None), ())
    body = _HEARTBEAT.write_response(request, (HeartbeatResponse(error),))
    return message_codec(_HEARTBEAT.response, version).encode_response(body, 0)[_CORRELATION_ID_BYTES:]


@lru_cache(maxsize=1 << 13)
def _commit_response(version: int, errors: ErrorsOfPartitions) -> bytes:
    request = WireRequest(RequestHeader(apis.OFFSET_COMMIT.number, version, 0, None), ())
    body = _COMMIT.write_response(request, (OffsetCommitResponse(dict(errors)),))
    return message_codec(_COMMIT.response, version).encode_response(body, 0)[_CORRELATION_ID_BYTES:]
