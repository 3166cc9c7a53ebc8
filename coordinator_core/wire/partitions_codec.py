"""Codecs of DeleteRecords, OffsetForLeaderEpoch, DescribeProducers and DescribeLogDirs."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.topics import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    RequestedEpoch,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import Parts, ServerCodec, by_topic, require, require_one
from coordinator_core.wire.parts import Peer, WireRequest


def _read_delete_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    offsets = {
        TopicPartition(require(topic.name, "topic name"), each.partition_index): each.offset
        for topic in require(body.topics, "topics")
        for each in require(topic.partitions, "partitions")
    }
    return Parts((DeleteRecordsRequest(offsets),))


def _write_delete_response(request: WireRequest, responses: Sequence[DeleteRecordsResponse]) -> Any:
    kind = library.DeleteRecordsResponse.DeleteRecordsTopicResult
    return library.DeleteRecordsResponse(
        throttle_time_ms=0,
        topics=[
            kind(
                name=name,
                partitions=[
                    kind.DeleteRecordsPartitionResult(
                        partition_index=number, low_watermark=deleted.low_watermark, error_code=deleted.error
                    )
                    for number, deleted in each
                ],
            )
            for name, each in by_topic(require_one(responses, request.header.version).partitions.items()).items()
        ],
    )


def _read_epoch_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    epochs = {
        TopicPartition(require(topic.topic, "topic name"), each.partition): RequestedEpoch(
            each.leader_epoch, each.current_leader_epoch
        )
        for topic in require(body.topics, "topics")
        for each in require(topic.partitions, "partitions")
    }
    return Parts((OffsetForLeaderEpochRequest(epochs),))


def _write_epoch_response(request: WireRequest, responses: Sequence[OffsetForLeaderEpochResponse]) -> Any:
    kind = library.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    return library.OffsetForLeaderEpochResponse(
        throttle_time_ms=0,
        topics=[
            kind(
                topic=name,
                partitions=[
                    kind.EpochEndOffset(
                        error_code=end.error, partition=number, leader_epoch=end.leader_epoch, end_offset=end.end_offset
                    )
                    for number, end in each
                ],
            )
            for name, each in by_topic(require_one(responses, request.header.version).epochs.items()).items()
        ],
    )


def _read_producers_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    partitions = tuple(
        TopicPartition(require(topic.name, "topic name"), number)
        for topic in require(body.topics, "topics")
        for number in require(topic.partition_indexes, "partition_indexes")
    )
    return Parts((DescribeProducersRequest(partitions),))


def _write_producers_response(request: WireRequest, responses: Sequence[DescribeProducersResponse]) -> Any:
    kind = library.DescribeProducersResponse.TopicResponse
    partition_kind = kind.PartitionResponse
    return library.DescribeProducersResponse(
        throttle_time_ms=0,
        topics=[
            kind(
                name=name,
                partitions=[
                    partition_kind(
                        partition_index=number,
                        error_code=described.error,
                        error_message=described.error_message,
                        active_producers=[partition_kind.ProducerState(**producer._asdict()) for producer in described.producers],
                    )
                    for number, described in each
                ],
            )
            for name, each in by_topic(require_one(responses, request.header.version).partitions.items()).items()
        ],
    )


def _read_dirs_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    topics = None
    if body.topics is not None:
        topics = {require(topic.topic, "topic name"): tuple(require(topic.partitions, "partitions")) for topic in body.topics}
    return Parts((DescribeLogDirsRequest(topics),))


def _write_dirs_response(request: WireRequest, responses: Sequence[DescribeLogDirsResponse]) -> Any:
    response = require_one(responses, request.header.version)
    kind = library.DescribeLogDirsResponse.DescribeLogDirsResult
    topic_kind = kind.DescribeLogDirsTopic
    return library.DescribeLogDirsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        results=[
            kind(
                error_code=response.error,
                log_dir=response.log_dir,
                topics=[
                    topic_kind(
                        name=name,
                        partitions=[
                            topic_kind.DescribeLogDirsPartition(
                                partition_index=number, partition_size=size, offset_lag=0, is_future_key=False
                            )
                            for number, size in sizes
                        ],
                    )
                    for name, sizes in by_topic(response.sizes.items()).items()
                ],
                total_bytes=response.total_bytes,
                usable_bytes=response.usable_bytes,
                is_cordoned=False,
            )
        ],
    )


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.DELETE_RECORDS: ServerCodec(
        library.DeleteRecordsRequest, library.DeleteRecordsResponse, _read_delete_request, _write_delete_response
    ),
    apis.OFFSET_FOR_LEADER_EPOCH: ServerCodec(
        library.OffsetForLeaderEpochRequest, library.OffsetForLeaderEpochResponse, _read_epoch_request, _write_epoch_response
    ),
    apis.DESCRIBE_PRODUCERS: ServerCodec(
        library.DescribeProducersRequest, library.DescribeProducersResponse, _read_producers_request, _write_producers_response
    ),
    apis.DESCRIBE_LOG_DIRS: ServerCodec(
        library.DescribeLogDirsRequest, library.DescribeLogDirsResponse, _read_dirs_request, _write_dirs_response
    ),
}
