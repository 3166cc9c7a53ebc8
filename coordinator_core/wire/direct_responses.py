"""Direct writers of the responses to the requests of `direct_requests`: the same bytes as the library's, in less time.

A writer raises Unexpected for a response that the library must write, or refuse.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.cluster import AbortedFetch, FetchResponse, ProduceResponse
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetCommitResponse
from coordinator_core.wire.api_codec import by_topic, by_topic_id
from coordinator_core.wire.compact import NO_TAGS, UNEXPECTED, Unexpected, length_bytes, string_bytes
from coordinator_core.wire.parts import Buffers, WireRequest

#: Header with an empty section of tagged fields, and the throttle time.
_HEAD = Struct(">ibi")
#: Header without tagged fields but with an empty section.
_HEADER = Struct(">ib")
#: Partition, error.
_PARTITION_ERROR = Struct(">ihb")
#: Partition, error, base offset, log append time, start of the log, empty list of record errors.
_PRODUCED = Struct(">ihqqqB")
#: Throttle time, error, session id.
_FETCH = Struct(">ihi")
#: Partition, error, high watermark, last stable offset, start of the log.
_FETCHED = Struct(">ihqqq")
_ABORTED = Struct(">qqb")
#: Throttle time, empty section of tagged fields.
_TAIL = Struct(">ib")
_NO_ELEMENTS = 1
_NULL = b"\x00"
_NO_REPLICA = b"\xff\xff\xff\xff"

_Write = Callable[[WireRequest, Response], Buffers]


def write_directly(request: WireRequest, response: Response) -> Buffers | None:
    """Return the frame of the response to the only part of a request; None if the library must write it."""
    header = request.header
    entry = _WRITERS.get(header.api_key)
    if entry is None or header.version < entry[0]:
        return None
    try:
        return entry[1](request, response)
    except UNEXPECTED:
        return None


def _topic(name: str, topic_id: UUID, by_id: bool) -> bytes:
    return topic_id.bytes if by_id else string_bytes(name)


def _write_commit(request: WireRequest, response: Response) -> Buffers:
    header, part = request.header, request.parts[0]
    if request.unknown_topics or not isinstance(response, OffsetCommitResponse) or not isinstance(part, OffsetCommitRequest):
        raise Unexpected
    by_id = apis.OFFSET_COMMIT.has_field(header.version, "topic_id")
    ids = {at.topic: offset.topic_id for at, offset in part.offsets.items()} if by_id else {}
    topics = by_topic(response.errors.items())
    parts = [_HEAD.pack(header.correlation_id, 0, 0), length_bytes(len(topics))]
    for name, errors in topics.items():
        parts += (_topic(name, ids.get(name, ZERO_UUID), by_id), length_bytes(len(errors)))
        parts += [_PARTITION_ERROR.pack(partition, error, 0) for partition, error in errors]
        parts.append(NO_TAGS)
    parts.append(NO_TAGS)
    return parts


def _write_produce(request: WireRequest, response: Response) -> Buffers:
    if not isinstance(response, ProduceResponse):
        raise Unexpected
    header = request.header
    by_id = apis.PRODUCE.has_field(header.version, "topic_id")
    topics = by_topic_id(response.partitions)
    parts = [_HEADER.pack(header.correlation_id, 0), length_bytes(len(topics))]
    for (name, topic_id), partitions in topics.items():
        parts += (_topic(name, topic_id, by_id), length_bytes(len(partitions)))
        for each in partitions:
            parts += (
                _PRODUCED.pack(
                    each.partition, each.error, each.base_offset, each.log_append_time, each.log_start_offset, _NO_ELEMENTS
                ),
                string_bytes(each.error_message),
                NO_TAGS,
            )
        parts.append(NO_TAGS)
    parts.append(_TAIL.pack(0, 0))
    return parts


def _write_fetch(request: WireRequest, response: Response) -> Buffers:
    if not isinstance(response, FetchResponse):
        raise Unexpected
    header = request.header
    by_id = apis.FETCH.has_field(header.version, "topic_id")
    topics = by_topic_id(response.partitions)
    parts: list[bytes | memoryview] = [
        _HEADER.pack(header.correlation_id, 0),
        _FETCH.pack(0, response.error, response.session_id),
    ]
    parts.append(length_bytes(len(topics)))
    for (name, topic_id), partitions in topics.items():
        parts += (_topic(name, topic_id, by_id), length_bytes(len(partitions)))
        for each in partitions:
            parts += (
                _FETCHED.pack(each.partition, each.error, each.high_watermark, each.last_stable_offset, each.log_start_offset),
                _aborted(each.aborted),
                _NO_REPLICA,
                length_bytes(len(each.records)),
                each.records,
                NO_TAGS,
            )
        parts.append(NO_TAGS)
    parts.append(NO_TAGS)
    return parts


def _aborted(rows: tuple[AbortedFetch, ...] | None) -> bytes:
    if rows is None:
        return _NULL
    return length_bytes(len(rows)) + b"".join(_ABORTED.pack(*row, 0) for row in rows)


#: API key → first flexible version and writer.
_WRITERS: Mapping[int, tuple[int, _Write]] = {
    api.number: (api.versions.flexible or 0, write)
    for api, write in ((apis.OFFSET_COMMIT, _write_commit), (apis.PRODUCE, _write_produce), (apis.FETCH, _write_fetch))
}
