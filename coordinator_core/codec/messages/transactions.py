"""Records of `__transaction_state`: one per transactional id."""

from dataclasses import dataclass

from coordinator_core.codec.messages.offsets import Tags


@dataclass(frozen=True, slots=True)
class TransactionLogKey:
    transactional_id: str


@dataclass(frozen=True, slots=True)
class PartitionsSchema:
    topic: str
    partition_ids: tuple[int, ...] = ()
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class TransactionLogValue:
    """State of a transaction (versions 0–1). Times in ms; `transaction_partitions` is None exactly in state Empty."""

    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: tuple[PartitionsSchema, ...] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    previous_producer_id: int = -1
    next_producer_id: int = -1
    client_transaction_version: int = 0
    next_producer_epoch: int = -1
    unknown_tags: Tags = ()
