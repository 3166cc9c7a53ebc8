"""EndTxn: the decision is written, then markers go to the partitions (`endTransaction`, `endTransactionWithTV1`).

Answers by state are tables: with transaction version 2 the epoch of the request decides whether it is a retry of the EndTxn that
ended the last transaction.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import NO_PRODUCER, EndTxnRequest, EndTxnResponse
from coordinator_core.state.transaction_metadata import MAX_EPOCH, NO_PRODUCER_ID, TransactionMetadata
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from coordinator_core.transaction_coordinator.append import append_transition
from coordinator_core.transaction_coordinator.live_transaction import EPOCH_BUMP_VERSION, LiveTransaction
from coordinator_core.transaction_coordinator.markers import begin_completion
from coordinator_core.transaction_coordinator.request_checks import client_error
from coordinator_core.transaction_coordinator.result import TransactionResultBuilder
from coordinator_core.transaction_coordinator.transition_checks import IllegalTxnTransition

#: Receives the error, and the producer of the next transaction (transaction version 2).
Ended = Callable[[ErrorCode, ProducerEpoch, TransactionResultBuilder], None]


class _Action(Enum):
    """The effect of a valid request, unless it is an error."""

    #: The open transaction ends.
    END = "end"
    #: A transaction without partitions is aborted, so that the epoch is incremented.
    ABORT_EMPTY = "abort empty"
    #: The transaction has ended before: the response is repeated.
    REPEAT = "repeat"


_Outcome = _Action | ErrorCode
_INVALID = ErrorCode.INVALID_TXN_STATE
_BUSY = ErrorCode.CONCURRENT_TRANSACTIONS


class _ByResult(NamedTuple):
    commit: _Outcome
    abort: _Outcome


#: Requests below v5, and aborts by coordinators of transaction versions 0 and 1.
_ENDS: Mapping[TransactionState, _ByResult] = MappingProxyType(
    {
        ONGOING: _ByResult(_Action.END, _Action.END),
        COMPLETE_COMMIT: _ByResult(_Action.REPEAT, _INVALID),
        COMPLETE_ABORT: _ByResult(_INVALID, _Action.REPEAT),
        PREPARE_COMMIT: _ByResult(_BUSY, _INVALID),
        PREPARE_ABORT: _ByResult(_INVALID, _BUSY),
        EMPTY: _ByResult(_INVALID, _INVALID),
    }
)
#: Transaction version 2, for the current epoch.
_ENDS_2: Mapping[TransactionState, _ByResult] = MappingProxyType(
    {
        **_ENDS,
        COMPLETE_COMMIT: _ByResult(_INVALID, _Action.ABORT_EMPTY),
        COMPLETE_ABORT: _ByResult(_INVALID, _Action.ABORT_EMPTY),
        EMPTY: _ByResult(_INVALID, _Action.ABORT_EMPTY),
    }
)
#: Transaction version 2, for a retry of the EndTxn before.
_RETRIES_2: Mapping[TransactionState, _ByResult] = MappingProxyType({**_ENDS, EMPTY: _ByResult(_INVALID, _Action.ABORT_EMPTY)})


def end_txn(result: TransactionResultBuilder, request: EndTxnRequest, reply: ReplyHandle) -> None:
    """Commit or abort, and respond when the log has the decision, before markers are written."""

    def answer(error: ErrorCode, producer: ProducerEpoch, later: TransactionResultBuilder) -> None:
        shown = client_error(error, knows_producer_fenced=request.knows_producer_fenced)
        later.answer(reply, EndTxnResponse(shown, producer))

    live = result.context.live.get(request.transactional_id or "")
    if live is None:
        answer(ErrorCode.INVALID_PRODUCER_ID_MAPPING, NO_PRODUCER, result)
        return
    version = EPOCH_BUMP_VERSION if request.increments_epoch else 0
    _end(result, live, request.producer, request.commit, version, answer, from_client=True)


def abort_fenced(result: TransactionResultBuilder, live: LiveTransaction, fence: TransactionMetadata, then: Ended) -> None:
    """Abort the transaction of a producer that `LiveTransaction.prepare_fence` has fenced, with the coordinator's version."""
    producer = ProducerEpoch(fence.producer_id, fence.producer_epoch)
    _end(result, live, producer, False, result.context.behaviour.transaction_version, then, from_client=False)


def _end(
    result: TransactionResultBuilder,
    live: LiveTransaction,
    producer: ProducerEpoch,
    commit: bool,
    version: int,
    then: Ended,
    *,
    from_client: bool,
) -> None:
    outcome = (_outcome_2 if version >= EPOCH_BUMP_VERSION else _outcome)(result, live, producer, commit, from_client=from_client)
    if isinstance(outcome, ErrorCode):
        then(outcome, NO_PRODUCER, result)
    elif outcome is _Action.REPEAT:
        now = live.metadata
        is_known = version >= EPOCH_BUMP_VERSION
        then(ErrorCode.NONE, ProducerEpoch(now.producer_id, now.producer_epoch) if is_known else NO_PRODUCER, result)
    else:
        _prepare_and_append(result, live, producer, commit, version, then, is_empty=outcome is _Action.ABORT_EMPTY)


def _prepare_and_append(
    result: TransactionResultBuilder,
    live: LiveTransaction,
    producer: ProducerEpoch,
    commit: bool,
    version: int,
    then: Ended,
    *,
    is_empty: bool,
) -> None:
    bumps_epoch = version >= EPOCH_BUMP_VERSION
    next_producer_id: int | None = NO_PRODUCER_ID
    if bumps_epoch and live.metadata.is_exhausted:
        next_producer_id = result.context.producer_ids.generate()
    is_fencing = live.is_fencing and not commit
    if is_fencing and bumps_epoch:
        live.cancel()
    elif is_fencing:
        live.begin_abort_of_fenced(producer.producer_epoch)
    if next_producer_id is None:
        then(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NO_PRODUCER, result)
        return
    state = PREPARE_COMMIT if commit else PREPARE_ABORT
    target = live.prepare_end(state, result.now_ms, version, next_producer_id=next_producer_id, is_empty=is_empty)

    def written(error: ErrorCode, later: TransactionResultBuilder) -> None:
        if error is not ErrorCode.NONE:
            if is_fencing and not bumps_epoch:
                live.fence_failed()
            then(error, NO_PRODUCER, later)
            return
        completed = begin_completion(later, live)
        next_producer = ProducerEpoch(completed.producer_id, completed.producer_epoch)
        then(ErrorCode.NONE, next_producer if bumps_epoch else NO_PRODUCER, later)

    append_transition(result, live, target, written)


def _outcome(
    result: TransactionResultBuilder, live: LiveTransaction, producer: ProducerEpoch, commit: bool, *, from_client: bool
) -> _Outcome:
    now = live.metadata
    behaviour = result.context.behaviour
    must_be_equal = from_client and behaviour.end_requires_equal_epoch
    is_other_epoch = producer.producer_epoch != now.producer_epoch
    if now.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if (must_be_equal and is_other_epoch) or producer.producer_epoch < now.producer_epoch:
        return behaviour.fenced
    if live.pending is not None and not live.is_fencing:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return _by_state(_ENDS, now, commit)


def _outcome_2(
    result: TransactionResultBuilder, live: LiveTransaction, producer: ProducerEpoch, commit: bool, *, from_client: bool
) -> _Outcome:
    now = live.metadata
    is_retry_of_overflow = (
        not live.is_fencing
        and now.previous_producer_id == producer.producer_id
        and producer.producer_epoch == MAX_EPOCH - 1
        and now.producer_epoch == 0
    )
    is_retry = is_retry_of_overflow or (not live.is_fencing and now.producer_epoch == producer.producer_epoch + 1)
    if live.pending is not None and not live.is_fencing:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if now.producer_id != producer.producer_id and not is_retry_of_overflow:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not _is_valid_epoch(live, producer.producer_epoch, is_retry=is_retry, from_client=from_client):
        return result.context.behaviour.fenced
    return _by_state(_RETRIES_2 if is_retry else _ENDS_2, now, commit)


def _is_valid_epoch(live: LiveTransaction, epoch: int, *, is_retry: bool, from_client: bool) -> bool:
    now = live.metadata
    is_current = epoch == now.producer_epoch
    if live.is_fencing:
        return (is_current or not from_client) and epoch >= now.producer_epoch
    if now.state.is_prepared:
        return is_retry
    return is_current or (is_retry and now.state in (COMPLETE_COMMIT, COMPLETE_ABORT))


def _by_state(table: Mapping[TransactionState, _ByResult], now: TransactionMetadata, commit: bool) -> _Outcome:
    if now.state not in table:
        raise IllegalTxnTransition(f"{now.transactional_id!r} ends a transaction in state {now.state.label}")
    row = table[now.state]
    return row.commit if commit else row.abort
