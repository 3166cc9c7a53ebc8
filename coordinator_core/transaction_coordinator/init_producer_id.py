"""InitProducerId: a producer begins with a transactional id, and fences the one before it (`handleInitProducerId`)."""

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import NO_PRODUCER, InitProducerIdRequest, InitProducerIdResponse
from coordinator_core.state.transaction_metadata import (
    NO_PRODUCER_EPOCH,
    NO_TIMESTAMP,
    TWO_PHASE_COMMIT_TIMEOUT_MS,
    TransactionMetadata,
    is_exhausted,
)
from coordinator_core.state.transaction_state import EMPTY, ONGOING
from coordinator_core.transaction_coordinator.append import append_transition
from coordinator_core.transaction_coordinator.end_transaction import abort_fenced
from coordinator_core.transaction_coordinator.events import ProducerFenced
from coordinator_core.transaction_coordinator.live_transaction import LiveTransaction, RequestRefused
from coordinator_core.transaction_coordinator.producer_ids import ProducerIdManager
from coordinator_core.transaction_coordinator.request_checks import client_error
from coordinator_core.transaction_coordinator.result import TransactionResultBuilder
from coordinator_core.transaction_coordinator.transition_checks import IllegalTxnTransition


def init_idempotent_producer(producer_ids: ProducerIdManager) -> InitProducerIdResponse:
    """Return a new producer id for a producer without transactional id. Nothing is logged."""
    producer_id = producer_ids.generate()
    if producer_id is None:
        return InitProducerIdResponse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(ErrorCode.NONE, ProducerEpoch(producer_id, 0))


def init_producer_id(result: TransactionResultBuilder, request: InitProducerIdRequest, reply: ReplyHandle) -> None:
    """Increment the epoch, and respond when the log has it. An open transaction is aborted first: the client must try again."""

    def refuse(error: ErrorCode, later: TransactionResultBuilder) -> None:
        later.answer(reply, InitProducerIdResponse(client_error(error, knows_producer_fenced=request.knows_producer_fenced)))

    live = _find_or_add(result, request)
    if live is None:
        refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, result)
        return
    error = _check(live, request.producer)
    if error is not ErrorCode.NONE:
        refuse(error, result)
        return
    now = live.metadata
    if now.state is ONGOING:

        def aborted(error: ErrorCode, _producer: ProducerEpoch, later: TransactionResultBuilder) -> None:
            if error is ErrorCode.NONE:
                later.emit(ProducerFenced(now.transactional_id, now.producer_id, now.producer_epoch))
            refuse(ErrorCode.CONCURRENT_TRANSACTIONS if error is ErrorCode.NONE else error, later)

        abort_fenced(result, live, live.prepare_fence(), aborted)
        return
    target = _prepare(result, live, request)
    if isinstance(target, ErrorCode):
        refuse(target, result)
        return

    def written(error: ErrorCode, later: TransactionResultBuilder) -> None:
        if error is ErrorCode.NONE:
            producer = ProducerEpoch(target.producer_id, target.producer_epoch)
            later.answer(reply, InitProducerIdResponse(ErrorCode.NONE, producer))
        else:
            refuse(error, later)

    append_transition(result, live, target, written)


def _find_or_add(result: TransactionResultBuilder, request: InitProducerIdRequest) -> LiveTransaction | None:
    """The id, which is added before its first record is written; None if no producer id is available for a new one."""
    context = result.context
    transactional_id = request.transactional_id or ""
    live = context.live.get(transactional_id)
    if live is not None:
        return live
    producer_id = context.producer_ids.generate()
    if producer_id is None:
        return None
    return context.add(
        TransactionMetadata(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=NO_PRODUCER_EPOCH,
            timeout_ms=_timeout_ms(request),
            state=EMPTY,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            last_update_ms=result.now_ms,
        )
    )


def _check(live: LiveTransaction, expected: ProducerEpoch) -> ErrorCode:
    if live.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected != NO_PRODUCER and not _is_valid_producer(live.metadata, expected):
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if live.metadata.state.is_prepared else ErrorCode.NONE


def _is_valid_producer(now: TransactionMetadata, expected: ProducerEpoch) -> bool:
    """True for the current producer id, and for the previous one if its epochs were exhausted."""
    if now.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == now.producer_id:
        return True
    return expected.producer_id == now.previous_producer_id and is_exhausted(expected.producer_epoch)


def _prepare(
    result: TransactionResultBuilder, live: LiveTransaction, request: InitProducerIdRequest
) -> TransactionMetadata | ErrorCode:
    now = live.metadata
    expected = None if request.producer == NO_PRODUCER else request.producer.producer_epoch
    timeout_ms = _timeout_ms(request)
    try:
        if now.is_exhausted and expected in (None, now.producer_epoch):
            producer_id = result.context.producer_ids.generate()
            if producer_id is None:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            keeps_last_epoch = expected is not None
            return live.prepare_rotation(producer_id, timeout_ms, result.now_ms, keeps_last_epoch=keeps_last_epoch)
        return live.prepare_init(timeout_ms, expected, result.now_ms)
    except RequestRefused as refused:
        return refused.error
    except IllegalTxnTransition:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _timeout_ms(request: InitProducerIdRequest) -> int:
    return TWO_PHASE_COMMIT_TIMEOUT_MS if request.enable_two_phase_commit else request.timeout_ms
