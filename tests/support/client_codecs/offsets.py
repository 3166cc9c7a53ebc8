"""Client side of the APIs of `offsets_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    TxnMarkerResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ClientCodec, by_topic, error_of, require, require_one
from coordinator_core.wire.offsets_codec import by_marker
from coordinator_core.wire.parts import PartitionMarker


def _write_delete_request(parts: Sequence[OffsetDeleteRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind = library.OffsetDeleteRequest.OffsetDeleteRequestTopic
    return library.OffsetDeleteRequest(
        group_id=request.group_id,
        topics=[
            kind(name=name, partitions=[kind.OffsetDeleteRequestPartition(partition_index=number) for number, _ in each])
            for name, each in by_topic((partition, None) for partition in request.partitions).items()
        ],
    )


def _read_delete_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[OffsetDeleteResponse]:
    errors = {
        TopicPartition(require(topic.name, "topic name"), each.partition_index): error_of(each.error_code)
        for topic in require(body.topics, "topics")
        for each in require(topic.partitions, "partitions")
    }
    return (OffsetDeleteResponse(error_of(body.error_code), errors),)


def _write_markers_request(parts: Sequence[PartitionMarker], _version: int) -> Any:
    kind = library.WriteTxnMarkersRequest.WritableTxnMarker
    return library.WriteTxnMarkersRequest(
        markers=[
            kind(
                producer_id=marker.producer.producer_id,
                producer_epoch=marker.producer.producer_epoch,
                transaction_result=marker.control_type is ControlType.COMMIT,
                topics=[
                    kind.WritableTxnMarkerTopic(name=name, partition_indexes=[number for number, _ in each])
                    for name, each in topics.items()
                ],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for marker, topics in by_marker(parts, parts)
        ]
    )


def _read_markers_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[TxnMarkerResponse, ...]:
    return tuple(
        TxnMarkerResponse(error_of(each.error_code))
        for marker in require(body.markers, "markers")
        for topic in require(marker.topics, "topics")
        for each in require(topic.partitions, "partitions")
    )


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.OFFSET_DELETE: ClientCodec(
        library.OffsetDeleteRequest, library.OffsetDeleteResponse, _write_delete_request, _read_delete_response
    ),
    apis.WRITE_TXN_MARKERS: ClientCodec(
        library.WriteTxnMarkersRequest, library.WriteTxnMarkersResponse, _write_markers_request, _read_markers_response
    ),
}
