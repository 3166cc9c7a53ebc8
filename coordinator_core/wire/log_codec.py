"""Codecs of ListOffsets and Fetch."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.cluster import (
    AbortedFetch,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ForgottenPartition,
    IsolationLevel,
    ListedOffset,
    ListOffsetsPosition,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    ApiCodec,
    BadField,
    Parts,
    by_topic,
    by_topic_id,
    error_of,
    id_of,
    require,
    require_one,
    topic_name_or_empty,
)
from coordinator_core.wire.parts import Peer, WireRequest

#: Replica id of consumers.
_CONSUMER = -1
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


def _write_offsets_request(parts: Sequence[ListOffsetsRequest], version: int) -> Any:
    kind = library.ListOffsetsRequest.ListOffsetsTopic
    request = require_one(parts, version)
    return library.ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=request.isolation_level,
        topics=[
            kind(
                name=name,
                partitions=[
                    kind.ListOffsetsPartition(
                        partition_index=number,
                        current_leader_epoch=request.current_leader_epochs.get(TopicPartition(name, number), _NO_EPOCH),
                        timestamp=timestamp,
                    )
                    for number, timestamp in each
                ],
            )
            for name, each in by_topic(request.timestamps.items()).items()
        ],
        timeout_ms=0,
    )


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


def _read_offsets_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[ListOffsetsResponse]:
    return (
        ListOffsetsResponse(
            {
                TopicPartition(require(topic.name, "topic name"), each.partition_index): ListedOffset(
                    error_of(each.error_code), each.offset, each.timestamp, each.leader_epoch
                )
                for topic in require(body.topics, "topics")
                for each in require(topic.partitions, "partitions")
            }
        ),
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


def _write_fetch_request(parts: Sequence[FetchRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind, forgotten = library.FetchRequest.FetchTopic, library.FetchRequest.ForgottenTopic
    return library.FetchRequest(
        replica_id=_CONSUMER,
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=request.isolation_level,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        topics=[
            kind(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    kind.FetchPartition(
                        partition=each.partition,
                        current_leader_epoch=each.current_leader_epoch,
                        fetch_offset=each.offset,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=each.max_bytes,
                    )
                    for each in partitions
                ],
            )
            for (topic, topic_id), partitions in by_topic_id(request.partitions).items()
        ],
        forgotten_topics_data=[
            forgotten(topic=topic, topic_id=topic_id, partitions=[each.partition for each in partitions])
            for (topic, topic_id), partitions in by_topic_id(request.forgotten).items()
        ],
        rack_id="",
    )


def _write_fetch_response(request: WireRequest, responses: Sequence[FetchResponse]) -> Any:
    response = require_one(responses, request.header.version)
    kind = library.FetchResponse.FetchableTopicResponse
    aborted = kind.PartitionData.AbortedTransaction
    return library.FetchResponse(
        throttle_time_ms=0,
        error_code=response.error,
        session_id=response.session_id,
        responses=[
            kind(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    kind.PartitionData(
                        partition_index=each.partition,
                        error_code=each.error,
                        high_watermark=each.high_watermark,
                        last_stable_offset=each.last_stable_offset,
                        log_start_offset=each.log_start_offset,
                        aborted_transactions=None if each.aborted is None else [aborted(*row) for row in each.aborted],
                        preferred_read_replica=-1,
                        records=bytes(each.records),
                    )
                    for each in partitions
                ],
            )
            for (topic, topic_id), partitions in by_topic_id(response.partitions).items()
        ],
    )


def _read_fetch_response(body: Any, version: int, names: Mapping[UUID, str]) -> tuple[FetchResponse]:
    names_by_id = names if apis.FETCH.has_field(version, "topic_id") else None
    has_isolation = apis.FETCH.has_field(version, "isolation_level")
    partitions = tuple(
        FetchedPartition(
            topic_name_or_empty(topic.topic, topic.topic_id, names_by_id),
            id_of(topic.topic_id),
            each.partition_index,
            error_of(each.error_code),
            each.high_watermark,
            each.log_start_offset if apis.FETCH.has_field(version, "log_start_offset") else -1,
            each.last_stable_offset if has_isolation else -1,
            _read_aborted(each.aborted_transactions) if has_isolation else None,
            bytes(each.records or b""),
        )
        for topic in require(body.responses, "responses")
        for each in require(topic.partitions, "partitions")
    )
    return (FetchResponse(partitions, error_of(body.error_code or 0), body.session_id or 0),)


def _read_aborted(rows: Any) -> tuple[AbortedFetch, ...] | None:
    return None if rows is None else tuple(AbortedFetch(row.producer_id, row.first_offset) for row in rows)


CODECS: Mapping[AnyApi, ApiCodec] = {
    apis.LIST_OFFSETS: ApiCodec(
        library.ListOffsetsRequest,
        library.ListOffsetsResponse,
        _read_offsets_request,
        _write_offsets_response,
        _write_offsets_request,
        _read_offsets_response,
    ),
    apis.FETCH: ApiCodec(
        library.FetchRequest,
        library.FetchResponse,
        _read_fetch_request,
        _write_fetch_response,
        _write_fetch_request,
        _read_fetch_response,
    ),
}
