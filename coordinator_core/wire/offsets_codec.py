"""Codecs of OffsetFetch, OffsetDelete and WriteTxnMarkers."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import (
    INVALID_OFFSET,
    FetchedOffset,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProducerEpoch,
    TxnMarkerRequest,
    TxnMarkerResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import Parts, ServerCodec, Value, by_topic, id_of, require, require_one
from coordinator_core.wire.parts import PartitionMarker, Peer, UnknownTopics, WireRequest


def _read_fetch_request(body: Any, header: RequestHeader, peer: Peer) -> Parts:
    if not apis.OFFSET_FETCH.has_field(header.version, "groups"):
        topics = body.topics if apis.OFFSET_FETCH.has_field(header.version, "all_partitions") else require(body.topics, "topics")
        partitions = None if topics is None else _partitions(topics)
        in_zookeeper = not apis.OFFSET_FETCH.has_field(header.version, "group_coordinator")
        group_id = require(body.group_id, "group_id")
        return Parts((OffsetFetchRequest(group_id, partitions, body.require_stable, in_zookeeper=in_zookeeper),))
    read = _read_group_by_id if apis.OFFSET_FETCH.has_field(header.version, "topic_ids") else _read_group
    groups = [read(group, body.require_stable, peer.topic_names) for group in require(body.groups, "groups")]
    unknown = tuple(each for _, each in groups)
    return Parts(tuple(part for part, _ in groups), unknown if any(unknown) else ())


def _read_group(group: Any, stable: bool, _names: Mapping[UUID, str]) -> tuple[OffsetFetchRequest, UnknownTopics]:
    partitions = None if group.topics is None else _partitions(group.topics)
    return OffsetFetchRequest(require(group.group_id, "group_id"), partitions, stable), {}


def _read_group_by_id(group: Any, stable: bool, names: Mapping[UUID, str]) -> tuple[OffsetFetchRequest, UnknownTopics]:
    group_id = require(group.group_id, "group_id")
    if group.topics is None:
        return OffsetFetchRequest(group_id, None, stable, {name: topic_id for topic_id, name in names.items()}), {}
    requested = {id_of(topic.topic_id): tuple(require(topic.partition_indexes, "partition_indexes")) for topic in group.topics}
    named = {names[topic_id]: topic_id for topic_id in requested if topic_id in names}
    wanted = tuple(TopicPartition(name, number) for name, topic_id in named.items() for number in requested[topic_id])
    unknown = {topic_id: numbers for topic_id, numbers in requested.items() if topic_id not in names}
    return OffsetFetchRequest(group_id, wanted, stable, named), unknown


def _partitions(topics: Sequence[Any]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(require(topic.name, "topic name"), number)
        for topic in topics
        for number in require(topic.partition_indexes, "partition_indexes")
    )


def _write_fetch_response(request: WireRequest, responses: Sequence[OffsetFetchResponse]) -> Any:
    version = request.header.version
    if not apis.OFFSET_FETCH.has_field(version, "groups"):
        response = require_one(responses, version)
        offsets = response.offsets
        if response.error is not ErrorCode.NONE and not apis.OFFSET_FETCH.has_field(version, "all_partitions"):
            # v0 and v1 have no error for the whole response
            offsets = dict.fromkeys(_fetch_part(request, 0).partitions or (), FetchedOffset(error=response.error))
        named = _fetched_topics(library.OffsetFetchResponse.OffsetFetchResponseTopic, "OffsetFetchResponsePartition", offsets)
        return library.OffsetFetchResponse(throttle_time_ms=0, topics=[topic for _, topic in named], error_code=response.error)
    kind = library.OffsetFetchResponse.OffsetFetchResponseGroup
    groups = []
    for number, response in enumerate(responses):
        part = _fetch_part(request, number)
        named = _fetched_topics(kind.OffsetFetchResponseTopics, "OffsetFetchResponsePartitions", response.offsets)
        if apis.OFFSET_FETCH.has_field(version, "topic_ids"):
            topics = _with_ids(named, part.topic_ids or {})
        else:
            topics = [topic for _, topic in named]
        if request.unknown_topics and response.error is ErrorCode.NONE:
            topics += _unknown_topics(kind.OffsetFetchResponseTopics, request.unknown_topics[number])
        groups.append(kind(group_id=part.group_id, topics=topics, error_code=response.error))
    return library.OffsetFetchResponse(throttle_time_ms=0, groups=groups)


def _fetch_part(request: WireRequest, number: int) -> OffsetFetchRequest:
    part = request.parts[number]
    assert isinstance(part, OffsetFetchRequest)
    return part


def _fetched_topics(kind: Any, partition_kind: str, offsets: Mapping[TopicPartition, FetchedOffset]) -> list[tuple[str, Any]]:
    """Return the topics of a response with their names."""
    make = getattr(kind, partition_kind)
    return [
        (
            name,
            kind(
                name=name,
                partitions=[
                    make(
                        partition_index=number,
                        committed_offset=fetched.offset,
                        committed_leader_epoch=fetched.leader_epoch,
                        metadata=fetched.metadata,
                        error_code=fetched.error,
                    )
                    for number, fetched in partitions
                ],
            ),
        )
        for name, partitions in by_topic(offsets.items()).items()
    ]


def _with_ids(topics: list[tuple[str, Any]], ids: Mapping[str, UUID]) -> list[Any]:
    """Set the topic ids, without topics that have none: brokers omit them when all topics are requested."""
    for name, topic in topics:
        topic.topic_id = ids.get(name)
    return [topic for name, topic in topics if name in ids]


def _unknown_topics(kind: Any, unknown: UnknownTopics) -> list[Any]:
    return [
        kind(
            topic_id=topic_id,
            partitions=[
                kind.OffsetFetchResponsePartitions(
                    partition_index=number,
                    committed_offset=INVALID_OFFSET,
                    committed_leader_epoch=-1,
                    metadata="",
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                )
                for number in numbers
            ],
        )
        for topic_id, numbers in unknown.items()
    ]


def _read_delete_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    partitions = tuple(
        TopicPartition(require(topic.name, "topic name"), each.partition_index)
        for topic in require(body.topics, "topics")
        for each in require(topic.partitions, "partitions")
    )
    return Parts((OffsetDeleteRequest(require(body.group_id, "group_id"), partitions),))


def _write_delete_response(request: WireRequest, responses: Sequence[OffsetDeleteResponse]) -> Any:
    response = require_one(responses, request.header.version)
    kind = library.OffsetDeleteResponse.OffsetDeleteResponseTopic
    return library.OffsetDeleteResponse(
        error_code=response.error,
        throttle_time_ms=0,
        topics=[
            kind(
                name=name,
                partitions=[
                    kind.OffsetDeleteResponsePartition(partition_index=number, error_code=error) for number, error in errors
                ],
            )
            for name, errors in by_topic(response.errors.items()).items()
        ],
    )


def _read_markers_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    has_version = apis.WRITE_TXN_MARKERS.has_field(header.version, "transaction_version")
    return Parts(
        tuple(
            PartitionMarker(
                require(topic.name, "topic name"),
                number,
                TxnMarkerRequest(
                    ProducerEpoch(marker.producer_id, marker.producer_epoch),
                    ControlType(bool(marker.transaction_result)),
                    marker.coordinator_epoch,
                    marker.transaction_version if has_version else 0,
                ),
            )
            for marker in require(body.markers, "markers")
            for topic in require(marker.topics, "topics")
            for number in require(topic.partition_indexes, "partition_indexes")
        )
    )


def _write_markers_response(request: WireRequest, responses: Sequence[TxnMarkerResponse]) -> Any:
    kind = library.WriteTxnMarkersResponse.WritableTxnMarkerResult
    parts = [part for part in request.parts if isinstance(part, PartitionMarker)]
    return library.WriteTxnMarkersResponse(
        markers=[
            kind(
                producer_id=marker.producer.producer_id,
                topics=[
                    kind.WritableTxnMarkerTopicResult(
                        name=name,
                        partitions=[
                            kind.WritableTxnMarkerTopicResult.WritableTxnMarkerPartitionResult(
                                partition_index=number, error_code=response.error
                            )
                            for number, response in each
                        ],
                    )
                    for name, each in topics.items()
                ],
            )
            for marker, topics in by_marker(parts, responses)
        ]
    )


def by_marker(
    parts: Sequence[PartitionMarker], values: Sequence[Value]
) -> list[tuple[TxnMarkerRequest, dict[str, list[tuple[int, Value]]]]]:
    """Group values of the parts by marker and topic."""
    markers: dict[TxnMarkerRequest, list[tuple[TopicPartition, Value]]] = {}
    for part, value in zip(parts, values, strict=True):
        markers.setdefault(part.marker, []).append((TopicPartition(part.topic, part.partition), value))
    return [(marker, by_topic(each)) for marker, each in markers.items()]


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.OFFSET_FETCH: ServerCodec(
        library.OffsetFetchRequest, library.OffsetFetchResponse, _read_fetch_request, _write_fetch_response
    ),
    apis.OFFSET_DELETE: ServerCodec(
        library.OffsetDeleteRequest, library.OffsetDeleteResponse, _read_delete_request, _write_delete_response
    ),
    apis.WRITE_TXN_MARKERS: ServerCodec(
        library.WriteTxnMarkersRequest, library.WriteTxnMarkersResponse, _read_markers_request, _write_markers_response
    ),
}
