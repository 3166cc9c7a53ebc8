"""The state of one transactional id (`TransactionMetadata`, `TxnTransitMetadata`), and its form in the log."""

from collections import defaultdict
from typing import NamedTuple

from coordinator_core.codec.messages.transactions import PartitionsSchema, TransactionLogKey, TransactionLogValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.codec.transactions import TransactionRecord
from coordinator_core.state.transaction_state import TransactionState

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH = 32767
#: Transaction timeout of a producer that takes part in two-phase commits (KIP-939): its transactions never time out.
TWO_PHASE_COMMIT_TIMEOUT_MS = 2**31 - 1
#: Levels of the feature `transaction.version` (`TransactionVersion`).
TRANSACTION_VERSIONS = range(3)
#: First value version with tags: producer ids of an epoch overflow, and the client's transaction version.
_TAGS_SINCE = 1


def is_exhausted(producer_epoch: int) -> bool:
    """True for the last epoch of a client, 32766, and for 32767, which only fences (`isEpochExhausted`)."""
    return producer_epoch >= MAX_EPOCH - 1


class TransactionMetadata(NamedTuple):
    """State of a transactional id. Times in ms.

    `partitions` have data or offsets of the transaction; in Prepare* they are those without a marker. `last_producer_epoch` is
    never in the log: it is -1 after every load. `previous_producer_id` is the producer id before the last transition,
    `next_producer_id` the one that Complete* will have after an epoch overflow. `client_transaction_version` is 2 for clients
    whose every EndTxn increments the epoch (KIP-890).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    client_transaction_version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """True if no client can get a further epoch of this producer id."""
        return is_exhausted(self.producer_epoch)

    @property
    def is_two_phase(self) -> bool:
        """True if transactions of this id never time out (KIP-939)."""
        return self.timeout_ms == TWO_PHASE_COMMIT_TIMEOUT_MS

    def as_logged(self, value_version: int) -> "TransactionMetadata":
        """The state that a load finds in a record of this version: without the fields that the record does not have."""
        if value_version >= _TAGS_SINCE:
            return self._replace(last_producer_epoch=NO_PRODUCER_EPOCH)
        return self._replace(
            last_producer_epoch=NO_PRODUCER_EPOCH,
            previous_producer_id=NO_PRODUCER_ID,
            next_producer_id=NO_PRODUCER_ID,
            client_transaction_version=0,
        )


def transaction_record(metadata: TransactionMetadata, value_version: int) -> TransactionRecord:
    """Return the record of a transition (`TransactionLog.valueToBytes`), with partitions sorted; brokers have them in hash order.

    Raises ValueError for state Empty with partitions, which brokers refuse to write.
    """
    if metadata.state is TransactionState.EMPTY and metadata.partitions:
        raise ValueError(f"{metadata.transactional_id!r} is Empty with {len(metadata.partitions)} partitions: use none")
    logged = metadata.as_logged(value_version)
    value = TransactionLogValue(
        producer_id=logged.producer_id,
        producer_epoch=logged.producer_epoch,
        transaction_timeout_ms=logged.timeout_ms,
        transaction_status=logged.state,
        transaction_partitions=None if logged.state is TransactionState.EMPTY else _by_topic(logged.partitions),
        transaction_last_update_timestamp_ms=logged.last_update_ms,
        transaction_start_timestamp_ms=logged.start_ms,
        previous_producer_id=logged.previous_producer_id,
        next_producer_id=logged.next_producer_id,
        client_transaction_version=logged.client_transaction_version,
    )
    return TransactionRecord(TransactionLogKey(metadata.transactional_id), value, value_version)


def transaction_tombstone(transactional_id: str) -> TransactionRecord:
    """Return the tombstone of an expired id."""
    return TransactionRecord(TransactionLogKey(transactional_id), None, None)


def loaded_metadata(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    """Return the state in a record (`TransactionLog.read`). Partitions of an Empty id are ignored.

    Raises ValueError for a value that no broker loads: an unknown state or transaction version, or null partitions in a state
    other than Empty.
    """
    state = TransactionState(value.transaction_status)
    listed = () if state is TransactionState.EMPTY else value.transaction_partitions
    if listed is None:
        raise ValueError(f"state {state.label} with null partitions")
    if value.client_transaction_version not in TRANSACTION_VERSIONS:
        raise ValueError(f"client transaction version {value.client_transaction_version} is not in 0–2")
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(TopicPartition(each.topic, number) for each in listed for number in each.partition_ids),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_transaction_version=value.client_transaction_version,
    )


def _by_topic(partitions: frozenset[TopicPartition]) -> tuple[PartitionsSchema, ...]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        topics[topic].append(number)
    return tuple(PartitionsSchema(topic, tuple(numbers)) for topic, numbers in topics.items())
