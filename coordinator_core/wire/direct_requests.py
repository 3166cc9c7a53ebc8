"""Direct readers of frequent requests in flexible versions: OffsetCommit, Produce, Fetch.

Each takes the same bytes as the codec of its API, and returns the same parts in a fraction of the time. For anything unusual it
returns None: tagged fields, nulls, unknown topic ids, malformed bytes. Then the library reads the request and reports its errors.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import RequestHeader
from coordinator_core.protocol.cluster import (
    FetchPartition,
    FetchRequest,
    ForgottenPartition,
    IsolationLevel,
    ProducePartition,
    ProduceRequest,
)
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit
from coordinator_core.wire.api_codec import Parts
from coordinator_core.wire.compact import (
    UNEXPECTED,
    Unexpected,
    read_length,
    read_nullable_bytes,
    read_nullable_string,
    read_string,
    read_topic_id,
    skip_no_tags,
)
from coordinator_core.wire.parts import Part, Peer

_INT32 = Struct(">i")
#: Partition, offset, leader epoch.
_COMMITTED = Struct(">iqi")
#: Acks, timeout.
_PRODUCE = Struct(">hi")
#: Longest wait, least bytes, most bytes, isolation level, session id, session epoch.
_FETCH = Struct(">iiibii")
#: Partition, leader epoch, offset, last fetched epoch, start of the log, most bytes.
_FETCHED = Struct(">iiqiqi")
#: First version of Fetch without `ReplicaId`.
_NO_REPLICA_ID = 15
_ISOLATION_LEVELS = tuple(IsolationLevel)

_Read = Callable[[bytes, int, int, Peer], tuple[Part, int]]


def read_directly(frame: bytes, position: int, header: RequestHeader, peer: Peer) -> Parts | None:
    """Return the parts of the request whose body begins at `position`; None if the library must read it."""
    entry = _READERS.get(header.api_key)
    if entry is None or header.version < entry[0]:
        return None
    try:
        part, end = entry[1](frame, position, header.version, peer)
    except UNEXPECTED:
        return None
    return None if end > len(frame) else Parts((part,))


def _topic(frame: bytes, position: int, names: Mapping[UUID, str] | None) -> tuple[str, UUID, int]:
    """Read the name of a topic or, with `names`, its id, which must be known."""
    if names is None:
        name, position = read_string(frame, position)
        return name, ZERO_UUID, position
    topic_id, position = read_topic_id(frame, position)
    known = names.get(topic_id)
    if known is None:
        raise Unexpected
    return known, topic_id, position


def _read_commit(frame: bytes, position: int, version: int, peer: Peer) -> tuple[Part, int]:
    names = peer.topic_names if apis.OFFSET_COMMIT.has_field(version, "topic_id") else None
    group_id, position = read_string(frame, position)
    (generation,) = _INT32.unpack_from(frame, position)
    member_id, position = read_string(frame, position + _INT32.size)
    instance_id, position = read_nullable_string(frame, position)
    topics, position = read_length(frame, position)
    offsets: dict[TopicPartition, OffsetToCommit] = {}
    for _ in range(topics):
        name, topic_id, position = _topic(frame, position, names)
        partitions, position = read_length(frame, position)
        for _ in range(partitions):
            partition, offset, leader_epoch = _COMMITTED.unpack_from(frame, position)
            metadata, position = read_nullable_string(frame, position + _COMMITTED.size)
            position = skip_no_tags(frame, position)
            offsets[TopicPartition(name, partition)] = OffsetToCommit(offset, leader_epoch, metadata, topic_id)
        position = skip_no_tags(frame, position)
    knows_missing_groups = apis.OFFSET_COMMIT.has_field(version, "knows_missing_groups")
    request = OffsetCommitRequest(group_id, offsets, member_id, generation, instance_id, -1, knows_missing_groups)
    return request, skip_no_tags(frame, position)


def _read_produce(frame: bytes, position: int, version: int, peer: Peer) -> tuple[Part, int]:
    names = peer.topic_names if apis.PRODUCE.has_field(version, "topic_id") else None
    transactional_id, position = read_nullable_string(frame, position)
    acks, _ = _PRODUCE.unpack_from(frame, position)
    topics, position = read_length(frame, position + _PRODUCE.size)
    found: list[ProducePartition] = []
    for _ in range(topics):
        name, topic_id, position = _topic(frame, position, names)
        partitions, position = read_length(frame, position)
        for _ in range(partitions):
            (partition,) = _INT32.unpack_from(frame, position)
            records, position = read_nullable_bytes(frame, position + _INT32.size)
            position = skip_no_tags(frame, position)
            found.append(ProducePartition(name, topic_id, partition, records))
        position = skip_no_tags(frame, position)
    request = ProduceRequest(
        tuple(found),
        acks,
        transactional_id,
        apis.PRODUCE.has_field(version, "transaction_abortable"),
        apis.PRODUCE.has_field(version, "adds_partitions"),
    )
    return request, skip_no_tags(frame, position)


def _read_fetch(frame: bytes, position: int, version: int, peer: Peer) -> tuple[Part, int]:
    names = peer.topic_names if apis.FETCH.has_field(version, "topic_id") else None
    position += 0 if version >= _NO_REPLICA_ID else _INT32.size
    max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = _FETCH.unpack_from(frame, position)
    topics, position = read_length(frame, position + _FETCH.size)
    found: list[FetchPartition] = []
    for _ in range(topics):
        name, topic_id, position = _topic(frame, position, names)
        partitions, position = read_length(frame, position)
        for _ in range(partitions):
            partition, leader_epoch, offset, _, _, most = _FETCHED.unpack_from(frame, position)
            position = skip_no_tags(frame, position + _FETCHED.size)
            found.append(FetchPartition(name, topic_id, partition, offset, most, leader_epoch))
        position = skip_no_tags(frame, position)
    forgotten, position = _read_forgotten(frame, position, names)
    if isolation not in _ISOLATION_LEVELS:
        raise Unexpected
    _, position = read_string(frame, position)
    level = _ISOLATION_LEVELS[isolation]
    request = FetchRequest(
        tuple(found), max_wait_ms, min_bytes, session_id, session_epoch, max_bytes, level, forgotten, names is not None
    )
    return request, skip_no_tags(frame, position)


def _read_forgotten(frame: bytes, position: int, names: Mapping[UUID, str] | None) -> tuple[tuple[ForgottenPartition, ...], int]:
    topics, position = read_length(frame, position)
    if not topics:
        return (), position
    found: list[ForgottenPartition] = []
    for _ in range(topics):
        name, topic_id, position = _topic(frame, position, names)
        partitions, position = read_length(frame, position)
        for _ in range(partitions):
            found.append(ForgottenPartition(name, topic_id, *_INT32.unpack_from(frame, position)))
            position += _INT32.size
        position = skip_no_tags(frame, position)
    return tuple(found), position


#: API key → first flexible version and reader.
_READERS: Mapping[int, tuple[int, _Read]] = {
    api.number: (api.versions.flexible or 0, read)
    for api, read in ((apis.OFFSET_COMMIT, _read_commit), (apis.PRODUCE, _read_produce), (apis.FETCH, _read_fetch))
}
