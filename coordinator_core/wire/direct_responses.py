"""The writers of the responses to frequent requests: Heartbeat, OffsetCommit, Produce and Fetch, in every version.

They write the same bytes as the library, in a fraction of its time. A codec whose `response` is None has its writer here.
A writer raises Unwritable, or struct.error for a number or a length outside of its range.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple, TypeVar

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.codec.wire import write_uvarint
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.cluster import AbortedFetch, FetchResponse, ProduceResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import HeartbeatResponse
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetCommitResponse
from coordinator_core.wire.api_codec import by_topic, by_topic_id, require_one
from coordinator_core.wire.parts import Buffers, WireRequest

#: A compact length up to this one has one byte.
_LONGEST_BYTE = 0x7F
_SHORT = tuple(bytes([number]) for number in range(_LONGEST_BYTE + 1))
_NULL = -1

_INT16 = Struct(">h")
_INT32 = Struct(">i")

Value = TypeVar("Value")


def _by_version(api: AnyApi, since: Mapping[int, Value]) -> tuple[Value, ...]:
    """Return the value of each version, from the values and the first versions that have them."""
    return tuple(since[max(first for first in since if first <= version)] for version in range(api.versions.highest + 1))


def _compact_length(length: int) -> bytes:
    stored = length + 1
    if stored <= _LONGEST_BYTE:
        return _SHORT[stored]
    encoded = bytearray()
    write_uvarint(encoded, stored)
    return bytes(encoded)


def _compact_string(text: str | None) -> bytes:
    if text is None:
        return _SHORT[0]
    encoded = text.encode()
    return _compact_length(len(encoded)) + encoded


def _fixed_string(text: str | None) -> bytes:
    if text is None:
        return _INT16.pack(_NULL)
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


class _Encoding(NamedTuple):
    """Header with the correlation id, lengths of arrays and bytes (-1 is null), strings, empty section of tagged fields."""

    header: Callable[[int], bytes]
    length: Callable[[int], bytes]
    string: Callable[[str | None], bytes]
    no_tags: bytes


_FIXED = _Encoding(_INT32.pack, _INT32.pack, _fixed_string, b"")
#: The encoding of flexible versions (KIP-482).
_COMPACT = _Encoding(Struct(">ix").pack, _compact_length, _compact_string, b"\x00")

#: Correlation id, throttle time since v1, error; sections of tagged fields since v4.
_HEARTBEAT = _by_version(apis.HEARTBEAT, {0: Struct(">ih"), 1: Struct(">i4xh"), 4: Struct(">i5xhx")})


def write_heartbeat_response(request: WireRequest, responses: Sequence[HeartbeatResponse]) -> Buffers:
    """Write a response to Heartbeat."""
    _, version, correlation_id, _ = request.header
    return (_HEARTBEAT[version].pack(correlation_id, require_one(responses, version).error),)


#: Topic name or id, and the errors of its partitions.
_CommittedTopic = tuple[bytes, list[tuple[int, ErrorCode]]]

_COMMIT_ENCODING = _by_version(apis.OFFSET_COMMIT, {0: _FIXED, 8: _COMPACT})
#: Throttle time since v3, with the tagged fields of the header since v8.
_COMMIT_START = _by_version(apis.OFFSET_COMMIT, {0: b"", 3: bytes(4), 8: bytes(5)})
#: Partition, error.
_COMMITTED = _by_version(apis.OFFSET_COMMIT, {0: Struct(">ih"), 8: Struct(">ihx")})
#: Responses of up to this many partitions are cached without their correlation id, since the next commits mostly have the same.
_MOST_CACHED_PARTITIONS = 8
#: `Topic.MAX_NAME_LENGTH`.
_LONGEST_CACHED_TOPIC = 249


def write_commit_response(request: WireRequest, responses: Sequence[OffsetCommitResponse]) -> Buffers:
    """Write a response to OffsetCommit."""
    _, version, correlation_id, _ = request.header
    errors = require_one(responses, version).errors
    if apis.OFFSET_COMMIT.has_field(version, "topic_id"):
        body = _commit_body(version, _topics_by_id(request, errors))
    elif len(errors) <= _MOST_CACHED_PARTITIONS and all(len(at.topic) <= _LONGEST_CACHED_TOPIC for at in errors):
        body = _cached_commit_body(version, tuple(errors.items()))
    else:
        body = _named_commit_body(version, errors.items())
    return (_INT32.pack(correlation_id), body)


def _named_commit_body(version: int, errors: Iterable[tuple[TopicPartition, ErrorCode]]) -> bytes:
    string = _COMMIT_ENCODING[version].string
    return _commit_body(version, [(string(name), each) for name, each in by_topic(errors).items()])


_cached_commit_body = lru_cache(maxsize=1 << 13)(_named_commit_body)


def _topics_by_id(request: WireRequest, errors: Mapping[TopicPartition, ErrorCode]) -> list[_CommittedTopic]:
    """Return the topics of the request, and those whose id is unknown."""
    part = request.parts[0]
    assert isinstance(part, OffsetCommitRequest)
    ids = {topic: offset.topic_id for (topic, _), offset in part.offsets.items()}
    topics = [(ids.get(name, ZERO_UUID).bytes, each) for name, each in by_topic(errors.items()).items()]
    for unknown in request.unknown_topics:
        for topic_id, partitions in unknown.items():
            topics.append((topic_id.bytes, [(each, ErrorCode.UNKNOWN_TOPIC_ID) for each in partitions]))
    return topics


def _commit_body(version: int, topics: list[_CommittedTopic]) -> bytes:
    _, length, _, no_tags = _COMMIT_ENCODING[version]
    pack = _COMMITTED[version].pack
    parts = [_COMMIT_START[version], length(len(topics))]
    for topic, errors in topics:
        parts += (topic, length(len(errors)))
        parts += [pack(partition, error) for partition, error in errors]
        parts.append(no_tags)
    parts.append(no_tags)
    return b"".join(parts)


_PRODUCE_ENCODING = _by_version(apis.PRODUCE, {0: _FIXED, 9: _COMPACT})
#: Partition, error, base offset, log append time since v2, start of the log since v5.
_PRODUCED = Struct(">ihqqq")
_PRODUCED_BYTES = _by_version(apis.PRODUCE, {0: 14, 2: 22, 5: 30})
#: Empty array of the errors of single records; the error message follows.
_NO_ERRORS = _by_version(apis.PRODUCE, {0: b"", 8: _FIXED.length(0), 9: _COMPACT.length(0)})
#: Throttle time since v1, with the tagged fields since v9.
_PRODUCE_END = _by_version(apis.PRODUCE, {0: b"", 1: bytes(4), 9: bytes(5)})


def write_produce_response(request: WireRequest, responses: Sequence[ProduceResponse]) -> Buffers:
    """Write a response to Produce."""
    _, version, correlation_id, _ = request.header
    header, length, string, no_tags = _PRODUCE_ENCODING[version]
    by_id = apis.PRODUCE.has_field(version, "topic_id")
    topics = by_topic_id(require_one(responses, version).partitions)
    frame = [header(correlation_id), length(len(topics))]
    size, no_errors = _PRODUCED_BYTES[version], _NO_ERRORS[version]
    for (name, topic_id), partitions in topics.items():
        frame += (topic_id.bytes if by_id else string(name), length(len(partitions)))
        for _, _, partition, error, message, base_offset, log_append_time, log_start_offset in partitions:
            packed = _PRODUCED.pack(partition, error, base_offset, log_append_time, log_start_offset)
            frame += (packed, no_errors, string(message), no_tags) if no_errors else (packed[:size],)
        frame.append(no_tags)
    frame.append(_PRODUCE_END[version])
    return frame


_FETCH_ENCODING = _by_version(apis.FETCH, {0: _FIXED, 12: _COMPACT})
#: Throttle time since v1, error and session id since v7.
_FETCH = Struct(">4xhi")
_FETCH_BYTES = _by_version(apis.FETCH, {0: 0, 1: 4, 7: 10})
#: Partition, error, high watermark, last stable offset since v4, start of the log since v5.
_FETCHED = Struct(">ihqqq")
_FETCHED_BYTES = _by_version(apis.FETCH, {0: 14, 4: 22, 5: 30})
_NO_ABORTED = _by_version(apis.FETCH, {0: b"", 4: _FIXED.length(_NULL), 12: _COMPACT.length(_NULL)})
_NO_REPLICA = _by_version(apis.FETCH, {0: b"", 11: _INT32.pack(-1)})
_ABORTED = Struct(">qq")


def write_fetch_response(request: WireRequest, responses: Sequence[FetchResponse]) -> Buffers:
    """Write a response to Fetch. Fetched records are a buffer of their own, and not copied."""
    _, version, correlation_id, _ = request.header
    encoding = header, length, string, no_tags = _FETCH_ENCODING[version]
    by_id = apis.FETCH.has_field(version, "topic_id")
    response = require_one(responses, version)
    topics = by_topic_id(response.partitions)
    frame: list[bytes | memoryview] = [
        header(correlation_id),
        _FETCH.pack(response.error, response.session_id)[: _FETCH_BYTES[version]],
        length(len(topics)),
    ]
    size, no_aborted, no_replica = _FETCHED_BYTES[version], _NO_ABORTED[version], _NO_REPLICA[version]
    for (name, topic_id), partitions in topics.items():
        frame += (topic_id.bytes if by_id else string(name), length(len(partitions)))
        for _, _, partition, error, high_watermark, log_start_offset, last_stable_offset, aborted, records in partitions:
            frame += (
                _FETCHED.pack(partition, error, high_watermark, last_stable_offset, log_start_offset)[:size],
                no_aborted if aborted is None or not no_aborted else _aborted(aborted, encoding),
                no_replica,
                length(len(records)),
                records,
                no_tags,
            )
        frame.append(no_tags)
    frame.append(no_tags)
    return frame


def _aborted(rows: tuple[AbortedFetch, ...], encoding: _Encoding) -> bytes:
    return encoding.length(len(rows)) + b"".join(_ABORTED.pack(*row) + encoding.no_tags for row in rows)
