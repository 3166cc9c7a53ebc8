"""Codecs of DeleteRecords, OffsetForLeaderEpoch, DescribeProducers and DescribeLogDirs."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.topics import (
    ActiveProducer,
    DeletedRecords,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribedProducers,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    EpochEnd,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    RequestedEpoch,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ApiCodec, BadField, Parts, by_topic, error_of, require, require_one
from coordinator_core.wire.parts import Peer, WireRequest

_TIMEOUT_MS = 60_000
_CONSUMER = -1


def _read_delete_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    offsets = {
        TopicPartition(require(topic.name, "topic name"), each.partition_index): each.offset
        for topic in require(body.topics, "topics")
        for each in require(topic.partitions, "partitions")
    }
    return Parts((DeleteRecordsRequest(offsets),))


def _write_delete_request(parts: Sequence[DeleteRecordsRequest], version: int) -> Any:
    kind = library.DeleteRecordsRequest.DeleteRecordsTopic
    return library.DeleteRecordsRequest(
        topics=[
            kind(
                name=name,
                partitions=[kind.DeleteRecordsPartition(partition_index=number, offset=offset) for number, offset in each],
            )
            for name, each in by_topic(require_one(parts, version).offsets.items()).items()
        ],
        timeout_ms=_TIMEOUT_MS,
    )


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


def _read_delete_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[DeleteRecordsResponse]:
    return (
        DeleteRecordsResponse(
            {
                TopicPartition(require(topic.name, "topic name"), each.partition_index): DeletedRecords(
                    error_of(each.error_code), each.low_watermark
                )
                for topic in require(body.topics, "topics")
                for each in require(topic.partitions, "partitions")
            }
        ),
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


def _write_epoch_request(parts: Sequence[OffsetForLeaderEpochRequest], version: int) -> Any:
    kind = library.OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    return library.OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[
            kind(
                topic=name,
                partitions=[
                    kind.OffsetForLeaderPartition(
                        partition=number, current_leader_epoch=epoch.current_leader_epoch, leader_epoch=epoch.leader_epoch
                    )
                    for number, epoch in each
                ],
            )
            for name, each in by_topic(require_one(parts, version).epochs.items()).items()
        ],
    )


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


def _read_epoch_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[OffsetForLeaderEpochResponse]:
    return (
        OffsetForLeaderEpochResponse(
            {
                TopicPartition(require(topic.topic, "topic name"), each.partition): EpochEnd(
                    error_of(each.error_code), each.leader_epoch, each.end_offset
                )
                for topic in require(body.topics, "topics")
                for each in require(topic.partitions, "partitions")
            }
        ),
    )


def _read_producers_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    partitions = tuple(
        TopicPartition(require(topic.name, "topic name"), number)
        for topic in require(body.topics, "topics")
        for number in require(topic.partition_indexes, "partition_indexes")
    )
    return Parts((DescribeProducersRequest(partitions),))


def _write_producers_request(parts: Sequence[DescribeProducersRequest], version: int) -> Any:
    kind = library.DescribeProducersRequest.TopicRequest
    partitions = ((at, None) for at in require_one(parts, version).partitions)
    return library.DescribeProducersRequest(
        topics=[kind(name=name, partition_indexes=[number for number, _ in each]) for name, each in by_topic(partitions).items()]
    )


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


def _read_producers_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[DescribeProducersResponse]:
    return (
        DescribeProducersResponse(
            {
                TopicPartition(require(topic.name, "topic name"), each.partition_index): DescribedProducers(
                    error_of(each.error_code),
                    tuple(_read_producer(producer) for producer in require(each.active_producers, "active_producers")),
                    each.error_message,
                )
                for topic in require(body.topics, "topics")
                for each in require(topic.partitions, "partitions")
            }
        ),
    )


def _read_producer(producer: Any) -> ActiveProducer:
    return ActiveProducer(
        producer.producer_id,
        producer.producer_epoch,
        producer.last_sequence,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
    )


def _read_dirs_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    topics = None
    if body.topics is not None:
        topics = {require(topic.topic, "topic name"): tuple(require(topic.partitions, "partitions")) for topic in body.topics}
    return Parts((DescribeLogDirsRequest(topics),))


def _write_dirs_request(parts: Sequence[DescribeLogDirsRequest], version: int) -> Any:
    topics = require_one(parts, version).topics
    kind = library.DescribeLogDirsRequest.DescribableLogDirTopic
    return library.DescribeLogDirsRequest(
        topics=None if topics is None else [kind(topic=name, partitions=list(partitions)) for name, partitions in topics.items()]
    )


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


def _read_dirs_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[DescribeLogDirsResponse]:
    results = require(body.results, "results")
    if len(results) != 1:
        raise BadField(f"results has {len(results)} log directories: a node has 1")
    (only,) = results
    has_volume = apis.DESCRIBE_LOG_DIRS.has_field(version, "volume")
    sizes = {
        TopicPartition(require(topic.name, "topic name"), each.partition_index): each.partition_size
        for topic in require(only.topics, "topics")
        for each in require(topic.partitions, "partitions")
    }
    return (
        DescribeLogDirsResponse(
            error_of(only.error_code),
            require(only.log_dir, "log_dir"),
            sizes,
            only.total_bytes if has_volume else -1,
            only.usable_bytes if has_volume else -1,
        ),
    )


CODECS: Mapping[AnyApi, ApiCodec] = {
    apis.DELETE_RECORDS: ApiCodec(
        library.DeleteRecordsRequest,
        library.DeleteRecordsResponse,
        _read_delete_request,
        _write_delete_response,
        _write_delete_request,
        _read_delete_response,
    ),
    apis.OFFSET_FOR_LEADER_EPOCH: ApiCodec(
        library.OffsetForLeaderEpochRequest,
        library.OffsetForLeaderEpochResponse,
        _read_epoch_request,
        _write_epoch_response,
        _write_epoch_request,
        _read_epoch_response,
    ),
    apis.DESCRIBE_PRODUCERS: ApiCodec(
        library.DescribeProducersRequest,
        library.DescribeProducersResponse,
        _read_producers_request,
        _write_producers_response,
        _write_producers_request,
        _read_producers_response,
    ),
    apis.DESCRIBE_LOG_DIRS: ApiCodec(
        library.DescribeLogDirsRequest,
        library.DescribeLogDirsResponse,
        _read_dirs_request,
        _write_dirs_response,
        _write_dirs_request,
        _read_dirs_response,
    ),
}
