"""Client side of the APIs of `transactions_codec`: requests to brokers, and their responses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
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
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ClientCodec, by_topic, error_of, require, require_one
from coordinator_core.wire.errors import Unwritable

_Names = Mapping[UUID, str]


def _write_init_request(parts: Sequence[InitProducerIdRequest], version: int) -> Any:
    request = require_one(parts, version)
    if request.producer != NO_PRODUCER and not apis.INIT_PRODUCER_ID.has_field(version, "producer"):
        raise Unwritable(f"InitProducerId v{version} has no producer id: use v3 or later")
    if request.enable_two_phase_commit or request.keep_prepared:
        raise Unwritable(f"InitProducerId v{version} has no two-phase commit")
    return library.InitProducerIdRequest(
        transactional_id=request.transactional_id,
        transaction_timeout_ms=request.timeout_ms,
        producer_id=request.producer.producer_id,
        producer_epoch=request.producer.producer_epoch,
    )


def _read_init_response(body: Any, _version: int, _names: _Names) -> tuple[InitProducerIdResponse]:
    return (InitProducerIdResponse(error_of(body.error_code), ProducerEpoch(body.producer_id, body.producer_epoch)),)


def _write_add_request(parts: Sequence[AddPartitionsToTxnRequest], version: int) -> Any:
    kind = library.AddPartitionsToTxnRequest
    if not apis.ADD_PARTITIONS_TO_TXN.has_field(version, "transactions"):
        request = require_one(parts, version)
        if request.verify_only or request.from_broker:
            raise Unwritable(f"AddPartitionsToTxn v{version} is sent by clients, and cannot verify: use v4 or later")
        return kind(
            v3_and_below_transactional_id=request.transactional_id,
            v3_and_below_producer_id=request.producer.producer_id,
            v3_and_below_producer_epoch=request.producer.producer_epoch,
            v3_and_below_topics=_topics(request.partitions),
        )
    return kind(
        transactions=[
            kind.AddPartitionsToTxnTransaction(
                transactional_id=request.transactional_id,
                producer_id=request.producer.producer_id,
                producer_epoch=request.producer.producer_epoch,
                verify_only=request.verify_only,
                topics=_topics(request.partitions),
            )
            for request in parts
        ]
    )


def _topics(partitions: Iterable[TopicPartition]) -> list[Any]:
    kind = library.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    named = by_topic((partition, None) for partition in partitions)
    return [kind(name=name, partitions=[number for number, _ in each]) for name, each in named.items()]


def _read_add_response(body: Any, version: int, _names: _Names) -> tuple[AddPartitionsToTxnResponse, ...]:
    if not apis.ADD_PARTITIONS_TO_TXN.has_field(version, "transactions"):
        return (AddPartitionsToTxnResponse(None, _errors(body.results_by_topic_v3_and_below)),)
    return tuple(
        AddPartitionsToTxnResponse(require(each.transactional_id, "transactional_id"), _errors(each.topic_results))
        for each in require(body.results_by_transaction, "results_by_transaction")
    )


def _errors(topics: Any) -> dict[TopicPartition, ErrorCode]:
    return {
        TopicPartition(require(topic.name, "topic name"), each.partition_index): error_of(each.partition_error_code)
        for topic in require(topics, "topics")
        for each in require(topic.results_by_partition, "partitions")
    }


def _write_offsets_request(parts: Sequence[AddOffsetsToTxnRequest], version: int) -> Any:
    request = require_one(parts, version)
    return library.AddOffsetsToTxnRequest(
        transactional_id=request.transactional_id,
        producer_id=request.producer.producer_id,
        producer_epoch=request.producer.producer_epoch,
        group_id=request.group_id,
    )


def _read_offsets_response(body: Any, _version: int, _names: _Names) -> tuple[AddOffsetsToTxnResponse]:
    return (AddOffsetsToTxnResponse(error_of(body.error_code)),)


def _write_end_request(parts: Sequence[EndTxnRequest], version: int) -> Any:
    request = require_one(parts, version)
    return library.EndTxnRequest(
        transactional_id=request.transactional_id,
        producer_id=request.producer.producer_id,
        producer_epoch=request.producer.producer_epoch,
        committed=request.commit,
    )


def _read_end_response(body: Any, version: int, _names: _Names) -> tuple[EndTxnResponse]:
    has_producer = apis.END_TXN.has_field(version, "increments_epoch")
    producer = ProducerEpoch(body.producer_id, body.producer_epoch) if has_producer else NO_PRODUCER
    return (EndTxnResponse(error_of(body.error_code), producer),)


def _write_describe_request(parts: Sequence[DescribeTransactionRequest], _version: int) -> Any:
    return library.DescribeTransactionsRequest(transactional_ids=[part.transactional_id for part in parts])


def _read_describe_response(body: Any, _version: int, _names: _Names) -> tuple[DescribeTransactionResponse, ...]:
    return tuple(
        DescribeTransactionResponse(
            error_of(each.error_code),
            require(each.transactional_id, "transactional_id"),
            require(each.transaction_state, "transaction_state"),
            each.transaction_timeout_ms,
            each.transaction_start_time_ms,
            ProducerEpoch(each.producer_id, each.producer_epoch),
            frozenset(
                TopicPartition(require(topic.topic, "topic"), number)
                for topic in require(each.topics, "topics")
                for number in require(topic.partitions, "partitions")
            ),
        )
        for each in require(body.transaction_states, "transaction_states")
    )


def _write_list_request(parts: Sequence[ListTransactionsRequest], version: int) -> Any:
    request = require_one(parts, version)
    if request.duration_ms >= 0 and not apis.LIST_TRANSACTIONS.has_field(version, "duration_ms"):
        raise Unwritable(f"ListTransactions v{version} has no duration: use v1 or later")
    if request.pattern and not apis.LIST_TRANSACTIONS.has_field(version, "pattern"):
        raise Unwritable(f"ListTransactions v{version} has no pattern: use v2 or later")
    return library.ListTransactionsRequest(
        state_filters=sorted(request.states),
        producer_id_filters=sorted(request.producer_ids),
        duration_filter=request.duration_ms,
        transactional_id_pattern=request.pattern,
    )


def _read_list_response(body: Any, _version: int, _names: _Names) -> tuple[ListTransactionsResponse]:
    return (
        ListTransactionsResponse(
            error_of(body.error_code),
            tuple(require(body.unknown_state_filters, "unknown_state_filters")),
            tuple(
                ListedTransaction(
                    require(each.transactional_id, "transactional_id"),
                    each.producer_id,
                    require(each.transaction_state, "transaction_state"),
                )
                for each in require(body.transaction_states, "transaction_states")
            ),
        ),
    )


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.INIT_PRODUCER_ID: ClientCodec(
        library.InitProducerIdRequest, library.InitProducerIdResponse, _write_init_request, _read_init_response
    ),
    apis.ADD_PARTITIONS_TO_TXN: ClientCodec(
        library.AddPartitionsToTxnRequest, library.AddPartitionsToTxnResponse, _write_add_request, _read_add_response
    ),
    apis.ADD_OFFSETS_TO_TXN: ClientCodec(
        library.AddOffsetsToTxnRequest, library.AddOffsetsToTxnResponse, _write_offsets_request, _read_offsets_response
    ),
    apis.END_TXN: ClientCodec(library.EndTxnRequest, library.EndTxnResponse, _write_end_request, _read_end_response),
    apis.DESCRIBE_TRANSACTIONS: ClientCodec(
        library.DescribeTransactionsRequest,
        library.DescribeTransactionsResponse,
        _write_describe_request,
        _read_describe_response,
    ),
    apis.LIST_TRANSACTIONS: ClientCodec(
        library.ListTransactionsRequest, library.ListTransactionsResponse, _write_list_request, _read_list_response
    ),
}
