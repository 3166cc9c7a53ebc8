"""AddPartitionsToTxn and AddOffsetsToTxn: partitions of a transaction, recorded before they get data of it."""

from collections.abc import Mapping

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from coordinator_core.state.transaction_state import ONGOING
from coordinator_core.transaction_coordinator.append import append_transition
from coordinator_core.transaction_coordinator.live_transaction import EPOCH_BUMP_VERSION, LiveTransaction
from coordinator_core.transaction_coordinator.request_checks import client_error
from coordinator_core.transaction_coordinator.result import TransactionContinuation, TransactionResultBuilder


def add_partitions_to_txn(result: TransactionResultBuilder, request: AddPartitionsToTxnRequest, reply: ReplyHandle) -> None:
    """Add the partitions, or verify that the transaction has them; respond when the log has the record."""

    def answer(errors: Mapping[TopicPartition, ErrorCode], later: TransactionResultBuilder) -> None:
        knows = request.knows_producer_fenced
        sent = {each: client_error(error, knows_producer_fenced=knows) for each, error in errors.items()}
        later.answer(reply, AddPartitionsToTxnResponse(request.transactional_id, sent))

    def answer_all(error: ErrorCode, later: TransactionResultBuilder) -> None:
        answer(dict.fromkeys(request.partitions, error), later)

    live = result.context.live.get(request.transactional_id or "")
    if live is None:
        answer_all(ErrorCode.INVALID_PRODUCER_ID_MAPPING, result)
    elif request.verify_only:
        answer(_verify(result, live, request), result)
    else:
        version = EPOCH_BUMP_VERSION if request.from_broker else 0
        _add(result, live, request.producer, frozenset(request.partitions), version, answer_all)


def add_offsets_to_txn(result: TransactionResultBuilder, request: AddOffsetsToTxnRequest, reply: ReplyHandle) -> None:
    """Add the partition of `__consumer_offsets` that has the group."""

    def answer(error: ErrorCode, later: TransactionResultBuilder) -> None:
        later.answer(reply, AddOffsetsToTxnResponse(client_error(error, knows_producer_fenced=request.knows_producer_fenced)))

    live = result.context.live.get(request.transactional_id or "")
    if live is None:
        answer(ErrorCode.INVALID_PRODUCER_ID_MAPPING, result)
        return
    partition = result.context.topology.offsets_partition(request.group_id)
    _add(result, live, request.producer, frozenset({partition}), 0, answer)


def _add(
    result: TransactionResultBuilder,
    live: LiveTransaction,
    producer: ProducerEpoch,
    partitions: frozenset[TopicPartition],
    client_transaction_version: int,
    then: TransactionContinuation,
) -> None:
    error = _check(result, live, producer)
    now = live.metadata
    if error is not ErrorCode.NONE or (now.state is ONGOING and now.partitions >= partitions):
        then(error, result)
        return
    append_transition(result, live, live.prepare_add(partitions, result.now_ms, client_transaction_version), then)


def _check(result: TransactionResultBuilder, live: LiveTransaction, producer: ProducerEpoch) -> ErrorCode:
    behaviour = result.context.behaviour
    pending = ErrorCode.NONE if live.pending is None else ErrorCode.CONCURRENT_TRANSACTIONS
    wrong = _check_producer(live, producer, behaviour.fenced)
    first, second = (pending, wrong) if behaviour.adding_checks_pending_first else (wrong, pending)
    prepared = ErrorCode.CONCURRENT_TRANSACTIONS if live.metadata.state.is_prepared else ErrorCode.NONE
    return next((error for error in (first, second, prepared) if error is not ErrorCode.NONE), ErrorCode.NONE)


def _verify(
    result: TransactionResultBuilder, live: LiveTransaction, request: AddPartitionsToTxnRequest
) -> Mapping[TopicPartition, ErrorCode]:
    """Check the partitions of a broker that is about to append to them. A transition in progress does not matter."""
    behaviour = result.context.behaviour
    error = _check_producer(live, request.producer, behaviour.fenced)
    if error is ErrorCode.NONE and live.metadata.state.is_prepared:
        error = ErrorCode.CONCURRENT_TRANSACTIONS
    if error is not ErrorCode.NONE:
        return dict.fromkeys(request.partitions, error)
    known = live.metadata.partitions
    return {each: ErrorCode.NONE if each in known else behaviour.not_in_transaction for each in request.partitions}


def _check_producer(live: LiveTransaction, producer: ProducerEpoch, fenced: ErrorCode) -> ErrorCode:
    if live.metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if live.metadata.producer_epoch == producer.producer_epoch else fenced
