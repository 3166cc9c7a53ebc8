"""The volatile part of a transactional id: its next state, while the record of the transition is being appended.

Each `prepare_*` computes the state after a transition and marks the transition as pending (`TransactionMetadata.prepare*`).
Once the log has the record, `complete` makes it the current state; `cancel` drops it. A second transition cannot begin before.
"""

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.state.transaction_metadata import (
    MAX_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TransactionMetadata,
)
from coordinator_core.state.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    VALID_PREVIOUS_STATES,
    TransactionState,
)
from coordinator_core.transaction_coordinator.behaviour import TransactionBehaviour
from coordinator_core.transaction_coordinator.transition_checks import IllegalTxnTransition, check_transition

#: First transaction version whose every EndTxn increments the epoch.
EPOCH_BUMP_VERSION = 2


class RequestRefused(Exception):
    """A transition that the state of the id does not allow to this client; `error` is the response."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


class LiveTransaction:
    """One transactional id. `metadata` is its current state, `pending` the state of the transition that is being appended.

    A new id has epoch -1 until the log has its first record.
    """

    __slots__ = ("_behaviour", "has_failed_fence", "metadata", "pending")

    def __init__(self, metadata: TransactionMetadata, behaviour: TransactionBehaviour) -> None:
        self.metadata = metadata
        self.pending: TransactionState | None = None
        #: The epoch was incremented by a fence whose record was refused by the log.
        self.has_failed_fence = False
        self._behaviour = behaviour

    @property
    def transactional_id(self) -> str:
        return self.metadata.transactional_id

    @property
    def is_fencing(self) -> bool:
        """True while the coordinator aborts the transaction of a fenced producer."""
        return self.pending is PREPARE_EPOCH_FENCE

    # ---- transitions

    def prepare_init(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> TransactionMetadata:
        """Increment the epoch (`prepareIncrementProducerEpoch`). `expected_epoch` is the client's own one (KIP-360).

        Raises RequestRefused for a fenced client, IllegalTxnTransition if the epochs of the producer id are exhausted.
        """
        now = self.metadata
        if now.is_exhausted:
            raise IllegalTxnTransition(
                f"{now.transactional_id!r}: producer id {now.producer_id} has no epoch after {now.producer_epoch}"
            )
        if expected_epoch is None:
            epoch, last_epoch = now.producer_epoch + 1, NO_PRODUCER_EPOCH
        elif expected_epoch == now.producer_epoch or now.producer_epoch == NO_PRODUCER_EPOCH:
            epoch, last_epoch = now.producer_epoch + 1, now.producer_epoch
        elif expected_epoch == now.last_producer_epoch:
            epoch, last_epoch = now.producer_epoch, now.last_producer_epoch
        else:
            raise RequestRefused(ErrorCode.PRODUCER_FENCED)
        return self._prepare(self._empty(now_ms, timeout_ms, producer_epoch=epoch, last_producer_epoch=last_epoch))

    def prepare_rotation(self, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_last_epoch: bool) -> TransactionMetadata:
        """Continue with another producer id at epoch 0 (`prepareProducerIdRotation`). Raises IllegalTxnTransition."""
        now = self.metadata
        if now.state is ONGOING or now.state.is_prepared:
            raise IllegalTxnTransition(f"{now.transactional_id!r}: the producer id cannot change in state {now.state.label}")
        last_epoch = now.producer_epoch if keeps_last_epoch else NO_PRODUCER_EPOCH
        return self._prepare(
            self._empty(now_ms, timeout_ms, producer_id=producer_id, producer_epoch=0, last_producer_epoch=last_epoch)
        )

    def prepare_add(
        self, partitions: frozenset[TopicPartition], now_ms: int, client_transaction_version: int
    ) -> TransactionMetadata:
        """Add partitions, and begin a transaction unless one is open (`prepareAddPartitions`)."""
        now = self.metadata
        return self._prepare(
            now._replace(
                state=ONGOING,
                partitions=now.partitions | partitions,
                start_ms=now_ms if now.state.expires else now.start_ms,
                last_update_ms=now_ms,
                client_transaction_version=client_transaction_version,
            )
        )

    def prepare_fence(self) -> TransactionMetadata:
        """Increment the epoch to fence the current producer (`prepareFenceProducerEpoch`). This state is never written."""
        now = self.metadata
        at_last_epoch = now.producer_epoch == MAX_EPOCH
        if at_last_epoch and not self._behaviour.fences_last_epoch:
            raise IllegalTxnTransition(f"{now.transactional_id!r}: producer id {now.producer_id} has no epoch to fence with")
        epoch = now.producer_epoch if self.has_failed_fence or at_last_epoch else now.producer_epoch + 1
        return self._prepare(now._replace(state=PREPARE_EPOCH_FENCE, producer_epoch=epoch))

    def prepare_end(
        self,
        state: TransactionState,
        now_ms: int,
        client_transaction_version: int,
        *,
        next_producer_id: int = NO_PRODUCER_ID,
        is_empty: bool = False,
    ) -> TransactionMetadata:
        """Commit or abort (`prepareAbortOrCommit`). `is_empty`: nothing was added; only version 2 aborts such a transaction."""
        now = self.metadata
        epoch, last_epoch = now.producer_epoch, now.last_producer_epoch
        if client_transaction_version >= EPOCH_BUMP_VERSION:
            last_epoch = epoch
            if not (epoch == MAX_EPOCH and state is PREPARE_ABORT):
                epoch += 1
        return self._prepare(
            now._replace(
                state=state,
                producer_epoch=epoch,
                last_producer_epoch=last_epoch,
                start_ms=now_ms if is_empty else now.start_ms,
                last_update_ms=now_ms,
                next_producer_id=next_producer_id,
                client_transaction_version=client_transaction_version,
            )
        )

    def prepare_complete(self, now_ms: int) -> TransactionMetadata:
        """End the transaction whose markers are written (`prepareComplete`)."""
        self.has_failed_fence = False
        now = self.metadata
        producer_id, epoch = now.producer_id, now.producer_epoch
        if now.client_transaction_version >= EPOCH_BUMP_VERSION and now.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = now.next_producer_id, 0
        return self._prepare(
            now._replace(
                state=COMPLETE_COMMIT if now.state is PREPARE_COMMIT else COMPLETE_ABORT,
                producer_id=producer_id,
                producer_epoch=epoch,
                next_producer_id=NO_PRODUCER_ID,
                partitions=frozenset(),
                last_update_ms=now_ms,
            )
        )

    def prepare_dead(self) -> TransactionMetadata:
        """Expire the id (`prepareDead`). Its record is a tombstone, after which the id is removed."""
        return self._prepare(self.metadata._replace(state=DEAD, partitions=frozenset()))

    # ---- results of the log

    def complete(self, target: TransactionMetadata) -> None:
        """The log has the record (`completeTransitionTo`). Raises IllegalTxnTransition if the target does not fit the state."""
        if self.pending is not target.state:
            raise IllegalTxnTransition(f"{self.transactional_id!r}: {target.state.label} completed, {self.pending!r} pending")
        check_transition(self.metadata, target)
        if target.state is EMPTY and self._behaviour.empty_keeps_start:
            target = target._replace(start_ms=self.metadata.start_ms)
        self.metadata = target
        self.pending = None

    def cancel(self) -> None:
        """The log has refused the record: the state before the transition stays."""
        self.pending = None

    def begin_abort_of_fenced(self, producer_epoch: int) -> None:
        """Replace the pending fence by the abort that follows it, and keep the incremented epoch even if the abort is refused."""
        self.pending = None
        self.metadata = self.metadata._replace(producer_epoch=producer_epoch, last_producer_epoch=NO_PRODUCER_EPOCH)

    def fence_failed(self) -> None:
        """The log has refused the abort of a fenced producer (KAFKA-9666)."""
        self.has_failed_fence = self._behaviour.reuses_failed_fence

    def marker_written(self, partition: TopicPartition) -> None:
        """The partition has its marker or never gets one (`removePartition`). Raises IllegalTxnTransition unless prepared."""
        if not self.metadata.state.is_prepared:
            raise IllegalTxnTransition(f"{self.transactional_id!r}: marker of {partition} in state {self.metadata.state.label}")
        self.metadata = self.metadata._replace(partitions=self.metadata.partitions - {partition})

    def _empty(
        self, now_ms: int, timeout_ms: int, *, producer_id: int | None = None, producer_epoch: int, last_producer_epoch: int
    ) -> TransactionMetadata:
        now = self.metadata
        return now._replace(
            state=EMPTY,
            producer_id=now.producer_id if producer_id is None else producer_id,
            producer_epoch=producer_epoch,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        )

    def _prepare(self, target: TransactionMetadata) -> TransactionMetadata:
        name = f"{self.transactional_id!r}: {self.metadata.state.label} → {target.state.label}"
        if self.pending is not None:
            raise IllegalTxnTransition(f"{name} while the transition to {self.pending.label} is pending")
        if target.producer_id < 0:
            raise IllegalTxnTransition(f"{name} with producer id {target.producer_id}")
        if target.producer_epoch < 0 and target.state is not DEAD:
            raise IllegalTxnTransition(f"{name} with producer epoch {target.producer_epoch}")
        if self.metadata.state not in VALID_PREVIOUS_STATES[target.state]:
            raise IllegalTxnTransition(f"{name} is not valid")
        self.pending = target.state
        return target._replace(previous_producer_id=self.metadata.producer_id)
