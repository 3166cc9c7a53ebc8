"""Codec of Produce. Records are not decoded, because the coordinator's topics hold no data."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.cluster import ProducedPartition, ProducePartition, ProduceRequest, ProduceResponse
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ApiCodec, Parts, by_topic_id, error_of, id_of, require, require_one
from coordinator_core.wire.header import RequestHeader
from coordinator_core.wire.parts import Peer, WireRequest

#: First version with topic ids instead of names.
_BY_ID = 13
#: First version with an error message per partition (KIP-467).
_ERROR_MESSAGES = 8
#: `ProduceResponse.INVALID_OFFSET`.
_NO_OFFSET = -1


def _read_produce_request(body: Any, header: RequestHeader, peer: Peer) -> Parts:
    by_id = header.version >= _BY_ID
    partitions = tuple(
        ProducePartition(
            peer.topic_names.get(id_of(topic.topic_id), "") if by_id else require(topic.name, "topic name"),
            id_of(topic.topic_id),
            each.index,
        )
        for topic in require(body.topic_data, "topic_data")
        for each in require(topic.partition_data, "partition_data")
    )
    return Parts((ProduceRequest(partitions, body.acks),))


def _write_produce_request(parts: Sequence[ProduceRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind = library.ProduceRequest.TopicProduceData
    return library.ProduceRequest(
        transactional_id=None,
        acks=request.acks,
        timeout_ms=0,
        topic_data=[
            kind(
                name=topic,
                topic_id=topic_id,
                partition_data=[kind.PartitionProduceData(index=each.partition, records=None) for each in partitions],
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
                        base_offset=_NO_OFFSET,
                        log_append_time_ms=-1,
                        log_start_offset=-1,
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
    by_id = version >= _BY_ID
    partitions = tuple(
        ProducedPartition(
            names.get(id_of(topic.topic_id), "") if by_id else require(topic.name, "topic name"),
            id_of(topic.topic_id),
            each.index,
            error_of(each.error_code),
            each.error_message if version >= _ERROR_MESSAGES else None,
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
