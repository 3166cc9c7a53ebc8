"""Codec of Produce. Records are passed on as bytes."""

from collections.abc import Mapping
from typing import Any

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.cluster import ProducePartition, ProduceRequest
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    Parts,
    ServerCodec,
    id_of,
    require,
    topic_name_or_empty,
)
from coordinator_core.wire.direct_responses import write_produce_response
from coordinator_core.wire.parts import Peer


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


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.PRODUCE: ServerCodec(library.ProduceRequest, None, _read_produce_request, write_produce_response),
}
