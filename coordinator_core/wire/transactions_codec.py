"""Codecs of InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, DescribeTransactions and ListTransactions."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import (
    NO_PRODUCER,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionRequest,
    DescribeTransactionResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import Parts, ServerCodec, by_topic, require, require_one
from coordinator_core.wire.parts import Peer, WireRequest

# ---- InitProducerId


def _read_init_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    has_producer = apis.INIT_PRODUCER_ID.has_field(header.version, "producer")
    producer = ProducerEpoch(body.producer_id, body.producer_epoch) if has_producer else NO_PRODUCER
    fenced = apis.INIT_PRODUCER_ID.has_field(header.version, "producer_fenced")
    return Parts(
        (InitProducerIdRequest(body.transactional_id, body.transaction_timeout_ms, producer, knows_producer_fenced=fenced),)
    )


def _write_init_response(request: WireRequest, responses: Sequence[InitProducerIdResponse]) -> Any:
    response = require_one(responses, request.header.version)
    return library.InitProducerIdResponse(
        throttle_time_ms=0,
        error_code=response.error,
        producer_id=response.producer.producer_id,
        producer_epoch=response.producer.producer_epoch,
    )


# ---- AddPartitionsToTxn


def _read_add_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    fenced = apis.ADD_PARTITIONS_TO_TXN.has_field(header.version, "producer_fenced")
    if not apis.ADD_PARTITIONS_TO_TXN.has_field(header.version, "transactions"):
        return Parts(
            (
                AddPartitionsToTxnRequest(
                    require(body.v3_and_below_transactional_id, "transactional_id"),
                    ProducerEpoch(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch),
                    _partitions(body.v3_and_below_topics),
                    knows_producer_fenced=fenced,
                ),
            )
        )
    return Parts(
        tuple(
            AddPartitionsToTxnRequest(
                require(each.transactional_id, "transactional_id"),
                ProducerEpoch(each.producer_id, each.producer_epoch),
                _partitions(each.topics),
                each.verify_only,
                from_broker=True,
            )
            for each in require(body.transactions, "transactions")
        )
    )


def _partitions(topics: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(require(topic.name, "topic name"), number)
        for topic in require(topics, "topics")
        for number in require(topic.partitions, "partitions")
    )


def _write_add_response(request: WireRequest, responses: Sequence[AddPartitionsToTxnResponse]) -> Any:
    kind = library.AddPartitionsToTxnResponse
    version = request.header.version
    if not apis.ADD_PARTITIONS_TO_TXN.has_field(version, "transactions"):
        return kind(throttle_time_ms=0, results_by_topic_v3_and_below=_topic_results(require_one(responses, version).errors))
    return kind(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        results_by_transaction=[
            kind.AddPartitionsToTxnResult(
                transactional_id=response.transactional_id, topic_results=_topic_results(response.errors)
            )
            for response in responses
        ],
    )


def _topic_results(errors: Mapping[TopicPartition, ErrorCode]) -> list[Any]:
    kind = library.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    return [
        kind(
            name=name,
            results_by_partition=[
                kind.AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=error)
                for number, error in each
            ],
        )
        for name, each in by_topic(errors.items()).items()
    ]


# ---- AddOffsetsToTxn, EndTxn


def _read_offsets_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    return Parts(
        (
            AddOffsetsToTxnRequest(
                require(body.transactional_id, "transactional_id"),
                ProducerEpoch(body.producer_id, body.producer_epoch),
                require(body.group_id, "group_id"),
                apis.ADD_OFFSETS_TO_TXN.has_field(header.version, "producer_fenced"),
            ),
        )
    )


def _write_offsets_response(request: WireRequest, responses: Sequence[AddOffsetsToTxnResponse]) -> Any:
    return library.AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=require_one(responses, request.header.version).error)


def _read_end_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    return Parts(
        (
            EndTxnRequest(
                require(body.transactional_id, "transactional_id"),
                ProducerEpoch(body.producer_id, body.producer_epoch),
                bool(body.committed),
                apis.END_TXN.has_field(header.version, "increments_epoch"),
                apis.END_TXN.has_field(header.version, "producer_fenced"),
            ),
        )
    )


def _write_end_response(request: WireRequest, responses: Sequence[EndTxnResponse]) -> Any:
    response = require_one(responses, request.header.version)
    return library.EndTxnResponse(
        throttle_time_ms=0,
        error_code=response.error,
        producer_id=response.producer.producer_id,
        producer_epoch=response.producer.producer_epoch,
    )


# ---- DescribeTransactions, ListTransactions


def _read_describe_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    ids = require(body.transactional_ids, "transactional_ids")
    return Parts(tuple(DescribeTransactionRequest(require(each, "transactional_id")) for each in ids))


def _write_describe_response(_request: WireRequest, responses: Sequence[DescribeTransactionResponse]) -> Any:
    kind = library.DescribeTransactionsResponse.TransactionState
    return library.DescribeTransactionsResponse(
        throttle_time_ms=0,
        transaction_states=[
            kind(
                error_code=response.error,
                transactional_id=response.transactional_id,
                transaction_state=response.state,
                transaction_timeout_ms=response.timeout_ms,
                transaction_start_time_ms=response.start_ms,
                producer_id=response.producer.producer_id,
                producer_epoch=response.producer.producer_epoch,
                topics=[
                    kind.TopicData(topic=name, partitions=[number for number, _ in each])
                    for name, each in by_topic((partition, None) for partition in sorted(response.partitions)).items()
                ],
            )
            for response in responses
        ],
    )


def _read_list_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    has_duration = apis.LIST_TRANSACTIONS.has_field(header.version, "duration_ms")
    has_pattern = apis.LIST_TRANSACTIONS.has_field(header.version, "pattern")
    return Parts(
        (
            ListTransactionsRequest(
                frozenset(require(state, "state filter") for state in require(body.state_filters, "state_filters")),
                frozenset(require(body.producer_id_filters, "producer_id_filters")),
                body.duration_filter if has_duration else -1,
                body.transactional_id_pattern if has_pattern else None,
            ),
        )
    )


def _write_list_response(request: WireRequest, responses: Sequence[ListTransactionsResponse]) -> Any:
    response = require_one(responses, request.header.version)
    kind = library.ListTransactionsResponse.TransactionState
    return library.ListTransactionsResponse(
        throttle_time_ms=0,
        error_code=response.error,
        unknown_state_filters=list(response.unknown_states),
        transaction_states=[
            kind(transactional_id=each.transactional_id, producer_id=each.producer_id, transaction_state=each.state)
            for each in response.transactions
        ],
    )


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.INIT_PRODUCER_ID: ServerCodec(
        library.InitProducerIdRequest, library.InitProducerIdResponse, _read_init_request, _write_init_response
    ),
    apis.ADD_PARTITIONS_TO_TXN: ServerCodec(
        library.AddPartitionsToTxnRequest, library.AddPartitionsToTxnResponse, _read_add_request, _write_add_response
    ),
    apis.ADD_OFFSETS_TO_TXN: ServerCodec(
        library.AddOffsetsToTxnRequest, library.AddOffsetsToTxnResponse, _read_offsets_request, _write_offsets_response
    ),
    apis.END_TXN: ServerCodec(library.EndTxnRequest, library.EndTxnResponse, _read_end_request, _write_end_response),
    apis.DESCRIBE_TRANSACTIONS: ServerCodec(
        library.DescribeTransactionsRequest,
        library.DescribeTransactionsResponse,
        _read_describe_request,
        _write_describe_response,
    ),
    apis.LIST_TRANSACTIONS: ServerCodec(
        library.ListTransactionsRequest, library.ListTransactionsResponse, _read_list_request, _write_list_response
    ),
}
