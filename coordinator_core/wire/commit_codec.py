"""Codecs of OffsetCommit and TxnOffsetCommit."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetToCommit,
    ProducerEpoch,
    TxnOffsetCommitRequest,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import Parts, ServerCodec, by_topic, id_of, require, require_one
from coordinator_core.wire.direct_responses import write_commit_response
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
                each.committed_offset, each.committed_leader_epoch, each.committed_metadata, topic_id, each.commit_timestamp
            )
    request = OffsetCommitRequest(
        group_id=require(body.group_id, "group_id"),
        offsets=offsets,
        member_id=require(body.member_id, "member_id"),
        generation=body.generation_id_or_member_epoch,
        group_instance_id=body.group_instance_id,
        retention_ms=body.retention_time_ms,
        knows_missing_groups=apis.OFFSET_COMMIT.has_field(header.version, "knows_missing_groups"),
        in_zookeeper=not apis.OFFSET_COMMIT.has_field(header.version, "group_coordinator"),
    )
    return Parts((request,), (unknown,) if unknown else ())


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


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.OFFSET_COMMIT: ServerCodec(library.OffsetCommitRequest, None, _read_commit_request, write_commit_response),
    apis.TXN_OFFSET_COMMIT: ServerCodec(
        library.TxnOffsetCommitRequest, library.TxnOffsetCommitResponse, _read_txn_commit_request, _write_txn_commit_response
    ),
}
