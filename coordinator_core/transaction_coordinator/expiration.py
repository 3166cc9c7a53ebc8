"""Transactional ids that were not used for long (`removeExpiredTransactionalIds`)."""

from collections.abc import Iterable, Iterator

from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.state.transaction_metadata import TransactionMetadata, transaction_tombstone
from coordinator_core.state.transaction_state import DEAD
from coordinator_core.transaction_coordinator.events import TransactionalIdExpired
from coordinator_core.transaction_coordinator.live_transaction import LiveTransaction
from coordinator_core.transaction_coordinator.result import TransactionResultBuilder
from coordinator_core.transaction_coordinator.timers import ExpirationSweep, TransactionTimerKey, TransactionTimerKind

#: Bytes of a batch before its records, and an upper bound for those of a tombstone beside the id.
_BATCH_OVERHEAD = 61
_TOMBSTONE_OVERHEAD = 24


def expire_transactional_ids(result: TransactionResultBuilder) -> None:
    """Write tombstones of all ids without a transaction that were not used within `transactional.id.expiration.ms`."""
    context = result.context
    latest_ms = result.now_ms - context.config.transactional_id_expiration_ms
    expired = (
        live
        for live in tuple(context.live.values())
        if live.pending is None and live.metadata.state.expires and live.metadata.last_update_ms <= latest_ms
    )
    for batch in _batches(expired, context.config.message_max_bytes):
        _remove(result, [(live, live.prepare_dead()) for live in batch])


def schedule_expiration(result: TransactionResultBuilder) -> None:
    """Set the timer of the next expiration."""
    interval_ms = result.context.config.transaction_remove_expired_transaction_cleanup_interval_ms
    key = TransactionTimerKey(TransactionTimerKind.EXPIRE_IDS)
    result.context.timers.schedule(key, result.now_ms + interval_ms, ExpirationSweep())


def _batches(expired: Iterable[LiveTransaction], most_bytes: int) -> Iterator[list[LiveTransaction]]:
    """Groups of ids whose tombstones fit into one batch; a batch has at least one."""
    batch: list[LiveTransaction] = []
    size = _BATCH_OVERHEAD
    for live in expired:
        tombstone_bytes = _TOMBSTONE_OVERHEAD + len(live.transactional_id.encode("utf-8", "surrogatepass"))
        if batch and size + tombstone_bytes > most_bytes:
            yield batch
            batch, size = [], _BATCH_OVERHEAD
        batch.append(live)
        size += tombstone_bytes
    if batch:
        yield batch


def _remove(result: TransactionResultBuilder, dead: list[tuple[LiveTransaction, TransactionMetadata]]) -> None:
    def written(error: ErrorCode, later: TransactionResultBuilder) -> None:
        for live, target in dead:
            is_unchanged = live.pending is DEAD and live.metadata.producer_epoch == target.producer_epoch
            if error is ErrorCode.NONE and is_unchanged:
                later.context.live.pop(live.transactional_id, None)
                later.emit(TransactionalIdExpired(live.transactional_id))
            else:
                live.cancel()

    result.write(tuple(transaction_tombstone(live.transactional_id) for live, _ in dead), written)
