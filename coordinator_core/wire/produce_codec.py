"""Codec of Produce. Records are passed on as bytes."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.cluster import ProducedPartition, ProducePartition, ProduceRequest, ProduceResponse
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    ApiCodec,
    Parts,
    by_topic_id,
    error_of,
    id_of,
    require,
    require_one,
    topic_name_or_empty,
)
from coordinator_core.wire.parts import Peer, WireRequest


def _read_produce_request(body: Any, header: RequestHeader, peer: Peer) -> Parts:
    names = peer.topic_names if apis.PRODUCE.has_field(header.version, "topic_id") else None
    partitions = tuple(
        ProducePartition(
            topic_name_or_empty(topic.name, topic.topic_id, names),
            id_of(topic.topic_id),
            each.index,
            None if each.records is None else bytes(each.records),
        )
        for topic in require(body.topic_data, "topic_data")
        for each in require(topic.partition_data, "partition_data")
    )
    return Parts(
        (
            ProduceRequest(
                partitions,
                body.acks,
                body.transactional_id if apis.PRODUCE.has_field(header.version, "transactional_id") else None,
                apis.PRODUCE.has_field(header.version, "transaction_abortable"),
                apis.PRODUCE.has_field(header.version, "adds_partitions"),
                apis.PRODUCE.has_field(header.version, "zstd"),
            ),
        )
    )


def _write_produce_request(parts: Sequence[ProduceRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind = library.ProduceRequest.TopicProduceData
    return library.ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=0,
        topic_data=[
            kind(
                name=topic,
                topic_id=topic_id,
                partition_data=[kind.PartitionProduceData(index=each.partition, records=each.records) for each in partitions],
            )
            for (topic, topic_id), partitions in by_topic_id(request.partitions).items()
        ],
    )


def _write_produce_response(request: WireRequest, responses: Sequence[ProduceResponse]) -> Any:
    response = require_one(responses, request.header.version)
    kind = library.ProduceResponse.TopicProduceResponse
    return library.ProduceResponse(
        responses=[
            kind(
                name=topic,
                topic_id=topic_id,
                partition_responses=[
                    kind.PartitionProduceResponse(
                        index=each.partition,
                        error_code=each.error,
                        base_offset=each.base_offset,
                        log_append_time_ms=each.log_append_time,
                        log_start_offset=each.log_start_offset,
                        record_errors=[],
                        error_message=each.error_message,
                    )
                    for each in partitions
                ],
            )
            for (topic, topic_id), partitions in by_topic_id(response.partitions).items()
        ],
        throttle_time_ms=0,
    )


def _read_produce_response(body: Any, version: int, names: Mapping[UUID, str]) -> tuple[ProduceResponse]:
    names_by_id = names if apis.PRODUCE.has_field(version, "topic_id") else None
    partitions = tuple(
        ProducedPartition(
            topic_name_or_empty(topic.name, topic.topic_id, names_by_id),
            id_of(topic.topic_id),
            each.index,
            error_of(each.error_code),
            each.error_message if apis.PRODUCE.has_field(version, "error_message") else None,
            each.base_offset,
            each.log_append_time_ms if apis.PRODUCE.has_field(version, "log_append_time") else -1,
            each.log_start_offset if apis.PRODUCE.has_field(version, "log_start_offset") else -1,
        )
        for topic in require(body.responses, "responses")
        for each in require(topic.partition_responses, "partition_responses")
    )
    return (ProduceResponse(partitions),)


CODECS: Mapping[AnyApi, ApiCodec] = {
    apis.PRODUCE: ApiCodec(
        library.ProduceRequest,
        library.ProduceResponse,
        _read_produce_request,
        _write_produce_response,
        _write_produce_request,
        _read_produce_response,
    ),
}
