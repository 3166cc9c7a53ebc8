"""Client side of the APIs of `commit_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.offsets import (
    OffsetCommitResponse,
    TxnOffsetCommitRequest,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ClientCodec, by_topic, require_one
from coordinator_core.wire.client_codecs import read_commit_errors


def _read_txn_commit_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[OffsetCommitResponse]:
    return (read_commit_errors(body, None),)


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


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.TXN_OFFSET_COMMIT: ClientCodec(
        library.TxnOffsetCommitRequest, library.TxnOffsetCommitResponse, _write_txn_commit_request, _read_txn_commit_response
    ),
}
