"""Codecs of ListOffsets and Fetch."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.cluster import (
    FetchPartition,
    FetchRequest,
    ForgottenPartition,
    IsolationLevel,
    ListOffsetsPosition,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    BadField,
    Parts,
    ServerCodec,
    by_topic,
    id_of,
    require,
    require_one,
    topic_name_or_empty,
)
from coordinator_core.wire.direct_responses import write_fetch_response
from coordinator_core.wire.parts import Peer, WireRequest

_EVERYTHING = 0x7FFFFFFF
_NO_EPOCH = -1

#: Position → first version of ListOffsets that has it (`ReplicaManager.timestampMinSupportedVersion`).
_POSITION_SINCE = {
    ListOffsetsPosition.LATEST: 0,
    ListOffsetsPosition.EARLIEST: 0,
    ListOffsetsPosition.MAX_TIMESTAMP: 7,
    ListOffsetsPosition.EARLIEST_LOCAL: 8,
    ListOffsetsPosition.LATEST_TIERED: 9,
    ListOffsetsPosition.EARLIEST_PENDING_UPLOAD: 11,
}


def lowest_timestamp(version: int) -> int:
    """Return the lowest timestamp that is defined in a version of ListOffsets."""
    return min(position for position, since in _POSITION_SINCE.items() if since <= version)


def _read_offsets_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    timestamps: dict[TopicPartition, int] = {}
    epochs: dict[TopicPartition, int] = {}
    has_epochs = apis.LIST_OFFSETS.has_field(header.version, "leader_epoch")
    for topic in require(body.topics, "topics"):
        for each in require(topic.partitions, "partitions"):
            at = TopicPartition(require(topic.name, "topic name"), each.partition_index)
            timestamps[at] = each.timestamp
            if has_epochs and each.current_leader_epoch != _NO_EPOCH:
                epochs[at] = each.current_leader_epoch
    isolation = _isolation(body.isolation_level if apis.LIST_OFFSETS.has_field(header.version, "isolation_level") else 0)
    return Parts((ListOffsetsRequest(timestamps, lowest_timestamp(header.version), isolation, epochs),))


def _isolation(level: int) -> IsolationLevel:
    """As brokers do (`IsolationLevel.forId`), refuse unknown levels."""
    try:
        return IsolationLevel(level)
    except ValueError:
        raise BadField(f"isolation_level is {level}, must be 0 or 1") from None


def _write_offsets_response(request: WireRequest, responses: Sequence[ListOffsetsResponse]) -> Any:
    kind = library.ListOffsetsResponse.ListOffsetsTopicResponse
    return library.ListOffsetsResponse(
        throttle_time_ms=0,
        topics=[
            kind(
                name=name,
                partitions=[
                    kind.ListOffsetsPartitionResponse(
                        partition_index=number,
                        error_code=listed.error,
                        timestamp=listed.timestamp,
                        offset=listed.offset,
                        leader_epoch=listed.leader_epoch,
                    )
                    for number, listed in each
                ],
            )
            for name, each in by_topic(require_one(responses, request.header.version).offsets.items()).items()
        ],
    )


def _read_fetch_request(body: Any, header: RequestHeader, peer: Peer) -> Parts:
    names = peer.topic_names if apis.FETCH.has_field(header.version, "topic_id") else None
    has_epochs = apis.FETCH.has_field(header.version, "leader_epoch")
    partitions = tuple(
        FetchPartition(
            topic_name_or_empty(topic.topic, topic.topic_id, names),
            id_of(topic.topic_id),
            each.partition,
            each.fetch_offset,
            each.partition_max_bytes,
            each.current_leader_epoch if has_epochs else _NO_EPOCH,
        )
        for topic in require(body.topics, "topics")
        for each in require(topic.partitions, "partitions")
    )
    return Parts(
        (
            FetchRequest(
                partitions,
                body.max_wait_ms,
                body.min_bytes,
                body.session_id,
                body.session_epoch,
                body.max_bytes if apis.FETCH.has_field(header.version, "max_bytes") else _EVERYTHING,
                _isolation(body.isolation_level if apis.FETCH.has_field(header.version, "isolation_level") else 0),
                _read_forgotten(body, names) if apis.FETCH.has_field(header.version, "forgotten") else (),
                apis.FETCH.has_field(header.version, "topic_id"),
            ),
        )
    )


def _read_forgotten(body: Any, names: Mapping[UUID, str] | None) -> tuple[ForgottenPartition, ...]:
    return tuple(
        ForgottenPartition(topic_name_or_empty(topic.topic, topic.topic_id, names), id_of(topic.topic_id), number)
        for topic in require(body.forgotten_topics_data, "forgotten_topics_data")
        for number in require(topic.partitions, "partitions")
    )


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.LIST_OFFSETS: ServerCodec(
        library.ListOffsetsRequest, library.ListOffsetsResponse, _read_offsets_request, _write_offsets_response
    ),
    apis.FETCH: ServerCodec(library.FetchRequest, None, _read_fetch_request, write_fetch_response),
}
