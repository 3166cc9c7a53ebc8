"""Append of the record of a transition (`appendTransactionToLog`)."""

from collections.abc import Mapping
from types import MappingProxyType

from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.state.transaction_metadata import TransactionMetadata, transaction_record
from coordinator_core.transaction_coordinator.live_transaction import LiveTransaction
from coordinator_core.transaction_coordinator.result import TransactionContinuation, TransactionResultBuilder

#: Errors of the log, and the response errors that they become; others are returned unchanged.
APPEND_ERRORS: Mapping[ErrorCode, ErrorCode] = MappingProxyType(
    dict.fromkeys(
        (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            ErrorCode.REQUEST_TIMED_OUT,
        ),
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    )
    | dict.fromkeys((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR), ErrorCode.NOT_COORDINATOR)
    | dict.fromkeys((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE), ErrorCode.UNKNOWN_SERVER_ERROR)
)


def append_transition(
    result: TransactionResultBuilder,
    live: LiveTransaction,
    target: TransactionMetadata,
    then: TransactionContinuation,
    *,
    retries_if_unavailable: bool = False,
) -> None:
    """Write the state after a transition. When the log has it, it is the state of the id; otherwise the old one stays.

    `then` runs after that with the response error. With `retries_if_unavailable`, the transition stays pending after
    COORDINATOR_NOT_AVAILABLE, because the caller appends it again.
    """

    def written(error: ErrorCode, later: TransactionResultBuilder) -> None:
        error = APPEND_ERRORS.get(error, error)
        if error is ErrorCode.NONE:
            live.complete(target)
        elif not (retries_if_unavailable and error is ErrorCode.COORDINATOR_NOT_AVAILABLE):
            live.cancel()
        then(error, later)

    result.write((transaction_record(target, result.context.behaviour.value_version),), written)
