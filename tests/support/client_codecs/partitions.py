"""Client side of the APIs of `partitions_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
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
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import BadField, ClientCodec, by_topic, error_of, require, require_one

_TIMEOUT_MS = 60_000


_CONSUMER = -1


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


def _write_producers_request(parts: Sequence[DescribeProducersRequest], version: int) -> Any:
    kind = library.DescribeProducersRequest.TopicRequest
    partitions = ((at, None) for at in require_one(parts, version).partitions)
    return library.DescribeProducersRequest(
        topics=[kind(name=name, partition_indexes=[number for number, _ in each]) for name, each in by_topic(partitions).items()]
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


def _write_dirs_request(parts: Sequence[DescribeLogDirsRequest], version: int) -> Any:
    topics = require_one(parts, version).topics
    kind = library.DescribeLogDirsRequest.DescribableLogDirTopic
    return library.DescribeLogDirsRequest(
        topics=None if topics is None else [kind(topic=name, partitions=list(partitions)) for name, partitions in topics.items()]
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


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.DELETE_RECORDS: ClientCodec(
        library.DeleteRecordsRequest, library.DeleteRecordsResponse, _write_delete_request, _read_delete_response
    ),
    apis.OFFSET_FOR_LEADER_EPOCH: ClientCodec(
        library.OffsetForLeaderEpochRequest, library.OffsetForLeaderEpochResponse, _write_epoch_request, _read_epoch_response
    ),
    apis.DESCRIBE_PRODUCERS: ClientCodec(
        library.DescribeProducersRequest, library.DescribeProducersResponse, _write_producers_request, _read_producers_response
    ),
    apis.DESCRIBE_LOG_DIRS: ClientCodec(
        library.DescribeLogDirsRequest, library.DescribeLogDirsResponse, _write_dirs_request, _read_dirs_response
    ),
}
