"""Transactions above their timeout (`abortTimedOutTransactions`): the producer is fenced, and the transaction is aborted."""

from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.state.transaction_state import ONGOING
from coordinator_core.transaction_coordinator.end_transaction import abort_fenced
from coordinator_core.transaction_coordinator.events import TransactionTimedOut
from coordinator_core.transaction_coordinator.live_transaction import LiveTransaction
from coordinator_core.transaction_coordinator.result import TransactionResultBuilder
from coordinator_core.transaction_coordinator.timers import AbortScan, TransactionTimerKey, TransactionTimerKind
from coordinator_core.transaction_coordinator.transition_checks import IllegalTxnTransition


def has_timed_out(live: LiveTransaction, now_ms: int) -> bool:
    """True for an open transaction above its timeout, without a transition in progress and without two-phase commit."""
    now = live.metadata
    return live.pending is None and now.state is ONGOING and not now.is_two_phase and now.start_ms + now.timeout_ms < now_ms


def abort_timed_out_transactions(result: TransactionResultBuilder) -> None:
    """Fence the producers of all transactions above their timeout, and begin to abort these."""
    for live in tuple(result.context.live.values()):
        if has_timed_out(live, result.now_ms):
            _abort(result, live)


def schedule_abort_scan(result: TransactionResultBuilder) -> None:
    """Set the timer of the next scan."""
    interval_ms = result.context.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
    key = TransactionTimerKey(TransactionTimerKind.ABORT_TIMED_OUT)
    result.context.timers.schedule(key, result.now_ms + interval_ms, AbortScan())


def _abort(result: TransactionResultBuilder, live: LiveTransaction) -> None:
    now = live.metadata
    try:
        fence = live.prepare_fence()
    except IllegalTxnTransition:
        result.emit(TransactionTimedOut(now.transactional_id, now.producer_id, ErrorCode.UNKNOWN_SERVER_ERROR.name))
        return

    def aborted(error: ErrorCode, _producer: ProducerEpoch, later: TransactionResultBuilder) -> None:
        later.emit(TransactionTimedOut(now.transactional_id, now.producer_id, error.name))

    abort_fenced(result, live, fence, aborted)
