"""Client side of the APIs of `produce_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.cluster import ProducedPartition, ProduceRequest, ProduceResponse
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    ClientCodec,
    by_topic_id,
    error_of,
    id_of,
    require,
    require_one,
    topic_name_or_empty,
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


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.PRODUCE: ClientCodec(library.ProduceRequest, library.ProduceResponse, _write_produce_request, _read_produce_response),
}
