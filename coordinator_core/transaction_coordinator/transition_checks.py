"""Checks of a transition when the log has its record (`completeTransitionTo`): a failed one is a bug of the coordinator."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from coordinator_core.state.transaction_metadata import NO_TIMESTAMP, TransactionMetadata
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)

_EPOCH_BUMP_VERSION = 2


class IllegalTxnTransition(Exception):
    """A transition that the rules exclude (IllegalStateException in brokers)."""


def check_transition(before: TransactionMetadata, after: TransactionMetadata) -> None:
    """Raise IllegalTxnTransition if the state cannot become this one: PrepareEpochFence and Dead are never in the log."""
    check = _CHECKS.get(after.state)
    if check is None or not check(before, after):
        raise IllegalTxnTransition(f"{before} cannot become {after}")


def _empty(before: TransactionMetadata, after: TransactionMetadata) -> bool:
    is_rotation = after.producer_epoch == 0 and after.producer_id != before.producer_id
    is_valid_epoch = after.producer_epoch in (before.producer_epoch, before.producer_epoch + 1) or is_rotation
    return is_valid_epoch and not after.partitions and after.start_ms == NO_TIMESTAMP


def _ongoing(before: TransactionMetadata, after: TransactionMetadata) -> bool:
    return _same_producer(before, after) and after.partitions >= before.partitions and after.timeout_ms == before.timeout_ms


def _prepared(before: TransactionMetadata, after: TransactionMetadata) -> bool:
    bumps_epoch = after.client_transaction_version >= _EPOCH_BUMP_VERSION
    if bumps_epoch:
        is_valid_epoch = after.last_producer_epoch == before.producer_epoch and after.producer_id == before.producer_id
    else:
        is_valid_epoch = _same_producer(before, after)
    may_begin = after.state is PREPARE_ABORT and bumps_epoch and before.state.expires
    return (
        is_valid_epoch
        and after.partitions == before.partitions
        and after.timeout_ms == before.timeout_ms
        and (may_begin or after.start_ms == before.start_ms)
    )


def _completed(before: TransactionMetadata, after: TransactionMetadata) -> bool:
    if after.client_transaction_version >= _EPOCH_BUMP_VERSION and after.producer_epoch == 0:
        is_valid_epoch = (
            after.last_producer_epoch == before.last_producer_epoch and after.previous_producer_id == before.producer_id
        )
    else:
        is_valid_epoch = _same_producer(before, after)
    return is_valid_epoch and after.timeout_ms == before.timeout_ms and after.start_ms != NO_TIMESTAMP


def _same_producer(before: TransactionMetadata, after: TransactionMetadata) -> bool:
    return (before.producer_id, before.producer_epoch) == (after.producer_id, after.producer_epoch)


_CHECKS: Mapping[TransactionState, Callable[[TransactionMetadata, TransactionMetadata], bool]] = MappingProxyType(
    {
        EMPTY: _empty,
        ONGOING: _ongoing,
        PREPARE_COMMIT: _prepared,
        PREPARE_ABORT: _prepared,
        COMPLETE_COMMIT: _completed,
        COMPLETE_ABORT: _completed,
    }
)
