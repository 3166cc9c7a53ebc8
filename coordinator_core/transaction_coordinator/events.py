"""Events of transactions for logs and metrics. No response and no record depends on them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionTimedOut:
    """The coordinator aborts a transaction above its timeout; `error` is NONE unless the log has refused the abort."""

    transactional_id: str
    producer_id: int
    error: str


@dataclass(frozen=True, slots=True)
class ProducerFenced:
    """Another producer has initialized the id, so the coordinator aborts the open transaction of this one."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionalIdExpired:
    """The log has the tombstone of the id."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class MarkersAbandoned:
    """A partition has refused the marker for good: another coordinator or a later epoch has ended the transaction.

    The id stays in Prepare* until its log partition is loaded again.
    """

    transactional_id: str
    topic: str
    partition: int
    error: str


@dataclass(frozen=True, slots=True)
class TransactionWriteRefused:
    """The record of a transition cannot be encoded."""

    transactional_id: str


TransactionEvent = TransactionTimedOut | ProducerFenced | TransactionalIdExpired | MarkersAbandoned | TransactionWriteRefused
