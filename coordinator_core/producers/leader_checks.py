"""Checks of a client's batch at the leader (`UnifiedLog.analyzeAndValidateProducerState`)."""

from typing import NamedTuple

from coordinator_core.producers.append import AppendOrigin, DataBatch, ProducerAppend, ProducerRejected
from coordinator_core.producers.entry import BatchMetadata
from coordinator_core.producers.rules import ProducerError
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.producers.verification import NO_GUARD


class CheckedBatch(NamedTuple):
    """The result of the checks: the batch of which this one is a repetition, or the update to apply after the write."""

    duplicate: BatchMetadata | None
    append: ProducerAppend | None


def check_client_batch(
    states: ProducerStateManager,
    batch: DataBatch,
    guard: int = NO_GUARD,
    *,
    verification_enabled: bool = True,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> CheckedBatch:
    """Check a batch of data. Raises ProducerRejected.

    The search for a duplicate precedes all checks, so a repetition succeeds even after its transaction has ended.
    """
    rules, entry = states.rules, states.entry(batch.producer_id)
    if origin is AppendOrigin.CLIENT:
        found = entry.find_duplicate(batch.epoch, batch.first_sequence, batch.last_sequence, rules.remembered_batches)
        if found is not None:
            return CheckedBatch(found, None)
    if rules.verifies and batch.transactional and not states.has_ongoing_transaction(batch.producer_id, batch.epoch):
        if rules.checks_epoch_first and batch.epoch < entry.epoch:
            raise ProducerRejected(
                ProducerError.INVALID_PRODUCER_EPOCH,
                f"producer {batch.producer_id}: epoch {batch.epoch} is stale, the newest one is {entry.epoch}",
            )
        if verification_enabled and not states.verifications.matches(batch.producer_id, guard):
            raise ProducerRejected(
                ProducerError.INVALID_TXN_STATE,
                f"producer {batch.producer_id}: the batch is not part of an open transaction of this partition",
            )
    append = states.prepare_update(batch.producer_id, origin)
    append.append_data(batch)
    return CheckedBatch(None, append)


def start_verification(
    states: ProducerStateManager, producer_id: int, sequence: int, epoch: int, now_ms: int, *, supports_epoch_bump: bool
) -> int:
    """Return the guard of a verification; NO_GUARD if a transaction is open, whose batches need none.

    Raises ProducerRejected for a stale epoch.
    """
    entry = states.entry(producer_id)
    if states.rules.checks_epoch_first and epoch < entry.epoch:
        raise ProducerRejected(
            ProducerError.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id}: epoch {epoch} is stale, the newest one is {entry.epoch}",
        )
    if states.has_ongoing_transaction(producer_id, epoch):
        return NO_GUARD
    verifications = states.verifications
    return verifications.get_or_create(producer_id, sequence, epoch, now_ms, supports_epoch_bump=supports_epoch_bump).guard
