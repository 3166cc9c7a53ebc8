"""Markers of a decided transaction, and its completion (`TransactionMarkerChannelManager`).

The owner of the shard writes the markers and reports each partition's error. When every partition has its marker, the transaction
is completed. Acknowledged partitions are not logged: after a load, all of them get their marker again.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch, TxnMarkerRequest
from coordinator_core.state.transaction_metadata import TransactionMetadata
from coordinator_core.state.transaction_state import PREPARE_COMMIT
from coordinator_core.transaction_coordinator.append import append_transition
from coordinator_core.transaction_coordinator.events import MarkersAbandoned
from coordinator_core.transaction_coordinator.live_transaction import LiveTransaction
from coordinator_core.transaction_coordinator.result import MarkerBatch, TransactionResultBuilder
from coordinator_core.transaction_coordinator.timers import (
    CompletionRetry,
    MarkerRetry,
    TransactionTimerKey,
    TransactionTimerKind,
)
from coordinator_core.transaction_coordinator.transition_checks import IllegalTxnTransition

#: Time before refused markers, or a refused completion, are tried again. Brokers try again at the next poll of their sender.
RETRY_MS = 100


class _Effect(Enum):
    """Effect of a partition's error."""

    DONE = "done"
    RETRY = "retry"
    ABANDON = "abandon"


_EFFECTS: Mapping[ErrorCode, _Effect] = MappingProxyType(
    dict.fromkeys((ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION), _Effect.DONE)
    | dict.fromkeys(
        (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.KAFKA_STORAGE_ERROR,
        ),
        _Effect.RETRY,
    )
    | dict.fromkeys((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED), _Effect.ABANDON)
)


class UnexpectedMarkerError(Exception):
    """A partition has answered a marker with an error that it must not have (IllegalStateException in brokers)."""


def begin_completion(result: TransactionResultBuilder, live: LiveTransaction) -> TransactionMetadata:
    """Write the markers of a prepared transaction, and return its last state, which the log gets after the markers."""
    target = live.prepare_complete(result.now_ms)
    result.context.completions[live.transactional_id] = target
    _write_markers(result, live, live.metadata.partitions)
    _complete_if_done(result, live)
    return target


def markers_written(result: TransactionResultBuilder, batch: MarkerBatch, errors: Mapping[TopicPartition, ErrorCode]) -> None:
    """Take the errors of a batch. Those from before a load, or of a transaction that was given up, have no effect.

    Raises UnexpectedMarkerError after the other partitions were handled.
    """
    context = result.context
    live = context.live.get(batch.transactional_id)
    if batch.marker.coordinator_epoch != context.coordinator_epoch:
        return
    if live is None:
        raise IllegalTxnTransition(f"{batch.transactional_id!r}: markers were written for an unknown id")
    if not live.metadata.state.is_prepared:
        return
    unexpected: list[str] = []
    again: set[TopicPartition] = set()
    for partition, error in errors.items():
        effect = _EFFECTS.get(error)
        if effect is _Effect.DONE:
            live.marker_written(partition)
        elif effect is _Effect.RETRY:
            again.add(partition)
        elif effect is _Effect.ABANDON:
            context.completions.pop(batch.transactional_id, None)
            result.emit(MarkersAbandoned(batch.transactional_id, partition.topic, partition.partition, error.name))
        else:
            unexpected.append(f"{partition.topic}-{partition.partition}: {error.name}")
    if batch.transactional_id in context.completions:
        if again:
            _retry_later(result, batch.transactional_id, again)
        else:
            _complete_if_done(result, live)
    if unexpected:
        raise UnexpectedMarkerError(f"{batch.transactional_id!r}: marker refused by {', '.join(unexpected)}")


def retry_markers(result: TransactionResultBuilder, due: MarkerRetry) -> None:
    """Write the markers again that partitions have refused."""
    partitions = result.context.marker_retries.pop(due.transactional_id, set())
    live = result.context.live.get(due.transactional_id)
    if live is not None and due.transactional_id in result.context.completions:
        _write_markers(result, live, frozenset(partitions))
        _complete_if_done(result, live)


def retry_completion(result: TransactionResultBuilder, due: CompletionRetry) -> None:
    """Append the last state again."""
    live = result.context.live.get(due.transactional_id)
    target = result.context.completions.pop(due.transactional_id, None)
    if live is not None and target is not None:
        _append_completion(result, live, target)


def _write_markers(result: TransactionResultBuilder, live: LiveTransaction, partitions: frozenset[TopicPartition]) -> None:
    """Add the markers to the result. A partition that does not exist any more needs none."""
    now = live.metadata
    exists = result.context.topology.has_partition
    for partition in partitions:
        if not exists(partition):
            live.marker_written(partition)
    existing = partitions & live.metadata.partitions
    if existing:
        marker = TxnMarkerRequest(
            ProducerEpoch(now.producer_id, now.producer_epoch),
            ControlType.COMMIT if now.state is PREPARE_COMMIT else ControlType.ABORT,
            result.context.coordinator_epoch,
            now.client_transaction_version,
        )
        result.markers.append(MarkerBatch(now.transactional_id, marker, existing))


def _retry_later(result: TransactionResultBuilder, transactional_id: str, partitions: set[TopicPartition]) -> None:
    result.context.marker_retries.setdefault(transactional_id, set()).update(partitions)
    key = TransactionTimerKey(TransactionTimerKind.RETRY_MARKERS, transactional_id)
    result.context.timers.schedule(key, result.now_ms + RETRY_MS, MarkerRetry(transactional_id))


def _complete_if_done(result: TransactionResultBuilder, live: LiveTransaction) -> None:
    """Append the last state once no partition lacks its marker; exactly one caller does."""
    if not live.metadata.partitions:
        target = result.context.completions.pop(live.transactional_id, None)
        if target is not None:
            _append_completion(result, live, target)


def _append_completion(result: TransactionResultBuilder, live: LiveTransaction, target: TransactionMetadata) -> None:
    transactional_id = live.transactional_id

    def written(error: ErrorCode, later: TransactionResultBuilder) -> None:
        if error is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
            return
        later.context.completions[transactional_id] = target
        key = TransactionTimerKey(TransactionTimerKind.RETRY_COMPLETION, transactional_id)
        later.context.timers.schedule(key, later.now_ms + RETRY_MS, CompletionRetry(transactional_id))

    append_transition(result, live, target, written, retries_if_unavailable=True)
