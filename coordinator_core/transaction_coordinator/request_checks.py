"""Checks made before the state of the transactional id is looked up (`KafkaApis`, `TransactionCoordinator`)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import Response, TransactionRequest
from coordinator_core.protocol.apis import TRANSACTION_APIS
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.internal_topics import INTERNAL_TOPICS
from coordinator_core.protocol.transactions import (
    NO_PRODUCER,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    InitProducerIdRequest,
    ListTransactionsRequest,
)
from coordinator_core.transaction_coordinator.config import TransactionConfig
from coordinator_core.transaction_coordinator.context import TransactionTopology


def error_response(request: TransactionRequest, error: ErrorCode) -> Response:
    """Return the error response of the request's API."""
    response: Response = TRANSACTION_APIS[type(request)].error_response(request, error)
    return response


def client_error(error: ErrorCode, *, knows_producer_fenced: bool) -> ErrorCode:
    """Return the error for a client of this version: PRODUCER_FENCED is new in 2.7 (KAFKA-9911)."""
    is_unknown = error is ErrorCode.PRODUCER_FENCED and not knows_producer_fenced
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_unknown else error


def check_request(request: TransactionRequest, config: TransactionConfig, topology: TransactionTopology) -> Response | None:
    """Return the error response to an invalid request; None if its shard must handle it."""
    if config.era not in TRANSACTION_APIS[type(request)].versions.brokers:
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION)
    check = _CHECKS.get(type(request))
    checked = None if check is None else check(request, config, topology)
    if isinstance(checked, ErrorCode):
        return error_response(request, checked)
    if checked is None and not isinstance(request, ListTransactionsRequest) and not request.transactional_id:
        return error_response(request, ErrorCode.INVALID_REQUEST)
    return checked


def has_whole_producer(request: InitProducerIdRequest) -> bool:
    """Whether the request has both producer id and epoch, or none of them."""
    producer_id, producer_epoch = request.producer
    return (producer_id == NO_PRODUCER.producer_id) == (producer_epoch == NO_PRODUCER.producer_epoch)


def _check_init(request: InitProducerIdRequest, config: TransactionConfig, _topology: TransactionTopology) -> ErrorCode | None:
    if not has_whole_producer(request) or not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    two_phase = request.enable_two_phase_commit and config.behaviour.has_two_phase_commit
    if two_phase and not config.transaction_two_phase_commit_enable:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keep_prepared:
        return ErrorCode.UNSUPPORTED_VERSION
    return None if config.is_valid_timeout(request.timeout_ms, two_phase=two_phase) else ErrorCode.INVALID_TRANSACTION_TIMEOUT


def _check_add(
    request: AddPartitionsToTxnRequest, _config: TransactionConfig, topology: TransactionTopology
) -> Response | ErrorCode | None:
    """A partition that cannot be added has its own error, and the others are not attempted. Clients cannot add internal topics:
    AddOffsetsToTxn adds `__consumer_offsets`."""
    if request.transactional_id is None:
        return ErrorCode.INVALID_REQUEST
    errors = {partition: _partition_error(partition, request, topology) for partition in request.partitions}
    if all(error is ErrorCode.NONE for error in errors.values()):
        return None
    return AddPartitionsToTxnResponse(
        request.transactional_id,
        {
            partition: ErrorCode.OPERATION_NOT_ATTEMPTED if error is ErrorCode.NONE else error
            for partition, error in errors.items()
        },
    )


def _partition_error(partition: TopicPartition, request: AddPartitionsToTxnRequest, topology: TransactionTopology) -> ErrorCode:
    if not request.from_broker and partition.topic in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if topology.has_partition(partition) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


_CHECKS: Mapping[type[TransactionRequest], Callable[..., Any]] = MappingProxyType(
    {InitProducerIdRequest: _check_init, AddPartitionsToTxnRequest: _check_add}
)
