"""Client side of the APIs of `log_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.cluster import (
    AbortedFetch,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListedOffset,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    ClientCodec,
    by_topic,
    by_topic_id,
    error_of,
    id_of,
    require,
    require_one,
    topic_name_or_empty,
)

#: Replica id of consumers.
_CONSUMER = -1


_NO_EPOCH = -1


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


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.LIST_OFFSETS: ClientCodec(
        library.ListOffsetsRequest, library.ListOffsetsResponse, _write_offsets_request, _read_offsets_response
    ),
    apis.FETCH: ClientCodec(library.FetchRequest, library.FetchResponse, _write_fetch_request, _read_fetch_response),
}
