"""Codecs of OffsetCommit and TxnOffsetCommit."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    ProducerEpoch,
    TxnOffsetCommitRequest,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ApiCodec, Parts, by_topic, error_of, id_of, require, require_one, topic_name
from coordinator_core.wire.errors import Unwritable
from coordinator_core.wire.parts import Peer, WireRequest


def _read_commit_request(body: Any, header: RequestHeader, peer: Peer) -> Parts:
    by_id = apis.OFFSET_COMMIT.has_field(header.version, "topic_id")
    offsets: dict[TopicPartition, OffsetToCommit] = {}
    unknown: dict[UUID, tuple[int, ...]] = {}
    for topic in require(body.topics, "topics"):
        topic_id = id_of(topic.topic_id)
        name = peer.topic_names.get(topic_id) if by_id else require(topic.name, "topic name")
        partitions = require(topic.partitions, "partitions")
        if name is None:
            unknown[topic_id] = (*unknown.get(topic_id, ()), *(each.partition_index for each in partitions))
            continue
        for each in partitions:
            offsets[TopicPartition(name, each.partition_index)] = OffsetToCommit(
                each.committed_offset, each.committed_leader_epoch, each.committed_metadata, topic_id
            )
    request = OffsetCommitRequest(
        group_id=require(body.group_id, "group_id"),
        offsets=offsets,
        member_id=require(body.member_id, "member_id"),
        generation=body.generation_id_or_member_epoch,
        group_instance_id=body.group_instance_id,
        retention_ms=body.retention_time_ms,
        knows_missing_groups=apis.OFFSET_COMMIT.has_field(header.version, "knows_missing_groups"),
    )
    return Parts((request,), (unknown,) if unknown else ())


def _write_commit_request(parts: Sequence[OffsetCommitRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind = library.OffsetCommitRequest.OffsetCommitRequestTopic
    return library.OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_ms,
        topics=[
            kind(
                name=name,
                topic_id=_commit_id(name, offsets, version),
                partitions=[
                    kind.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        committed_metadata=offset.metadata,
                    )
                    for partition, offset in offsets
                ],
            )
            for name, offsets in by_topic(request.offsets.items()).items()
        ],
    )


def _commit_id(name: str, offsets: Sequence[tuple[int, OffsetToCommit]], version: int) -> UUID:
    topic_id = offsets[0][1].topic_id
    if topic_id == ZERO_UUID and apis.OFFSET_COMMIT.has_field(version, "topic_id"):
        raise Unwritable(f"OffsetCommit v{version} needs the id of topic {name!r}")
    return topic_id


def _write_commit_response(request: WireRequest, responses: Sequence[OffsetCommitResponse]) -> Any:
    version = request.header.version
    kind = library.OffsetCommitResponse.OffsetCommitResponseTopic
    by_id = apis.OFFSET_COMMIT.has_field(version, "topic_id")
    ids: dict[str, UUID] = {}
    if by_id:
        part = request.parts[0]
        assert isinstance(part, OffsetCommitRequest)
        ids = {at.topic: offset.topic_id for at, offset in part.offsets.items()}
    named = [
        kind(
            name=name,
            topic_id=ids.get(name, ZERO_UUID),
            partitions=[
                kind.OffsetCommitResponsePartition(partition_index=partition, error_code=error) for partition, error in errors
            ],
        )
        for name, errors in by_topic(require_one(responses, version).errors.items()).items()
    ]
    unnamed = [
        kind(
            topic_id=topic_id,
            partitions=[
                kind.OffsetCommitResponsePartition(partition_index=partition, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
                for partition in partitions
            ],
        )
        for unknown in request.unknown_topics
        for topic_id, partitions in unknown.items()
    ]
    return library.OffsetCommitResponse(throttle_time_ms=0, topics=named + unnamed)


def _read_commit_response(body: Any, version: int, names: Mapping[UUID, str]) -> tuple[OffsetCommitResponse]:
    by_id = apis.OFFSET_COMMIT.has_field(version, "topic_id")
    return (_errors(body, names if by_id else None),)


def _read_txn_commit_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[OffsetCommitResponse]:
    return (_errors(body, None),)


def _errors(body: Any, names: Mapping[UUID, str] | None) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        {
            TopicPartition(topic_name(topic, names), each.partition_index): error_of(each.error_code)
            for topic in require(body.topics, "topics")
            for each in require(topic.partitions, "partitions")
        }
    )


def _write_txn_commit_request(parts: Sequence[TxnOffsetCommitRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind = library.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    return library.TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer.producer_id,
        producer_epoch=request.producer.producer_epoch,
        generation_id=request.generation,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=[
            kind(
                name=name,
                partitions=[
                    kind.TxnOffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        committed_metadata=offset.metadata,
                    )
                    for partition, offset in offsets
                ],
            )
            for name, offsets in by_topic(request.offsets.items()).items()
        ],
    )


def _read_txn_commit_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    request = TxnOffsetCommitRequest(
        group_id=require(body.group_id, "group_id"),
        transactional_id=require(body.transactional_id, "transactional_id"),
        producer=ProducerEpoch(body.producer_id, body.producer_epoch),
        offsets={
            TopicPartition(require(topic.name, "topic name"), each.partition_index): OffsetToCommit(
                each.committed_offset, each.committed_leader_epoch, each.committed_metadata
            )
            for topic in require(body.topics, "topics")
            for each in require(topic.partitions, "partitions")
        },
        member_id=require(body.member_id, "member_id"),
        generation=body.generation_id,
        group_instance_id=body.group_instance_id,
        knows_transaction_abortable=apis.TXN_OFFSET_COMMIT.has_field(header.version, "transaction_abortable"),
        adds_partition=apis.TXN_OFFSET_COMMIT.has_field(header.version, "adds_partition"),
    )
    return Parts((request,))


def _write_txn_commit_response(request: WireRequest, responses: Sequence[OffsetCommitResponse]) -> Any:
    kind = library.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    return library.TxnOffsetCommitResponse(
        throttle_time_ms=0,
        topics=[
            kind(
                name=name,
                partitions=[
                    kind.TxnOffsetCommitResponsePartition(partition_index=partition, error_code=error)
                    for partition, error in errors
                ],
            )
            for name, errors in by_topic(require_one(responses, request.header.version).errors.items()).items()
        ],
    )


CODECS: Mapping[AnyApi, ApiCodec] = {
    apis.OFFSET_COMMIT: ApiCodec(
        library.OffsetCommitRequest,
        library.OffsetCommitResponse,
        _read_commit_request,
        _write_commit_response,
        _write_commit_request,
        _read_commit_response,
    ),
    apis.TXN_OFFSET_COMMIT: ApiCodec(
        library.TxnOffsetCommitRequest,
        library.TxnOffsetCommitResponse,
        _read_txn_commit_request,
        _write_txn_commit_response,
        _write_txn_commit_request,
        _read_txn_commit_response,
    ),
}
