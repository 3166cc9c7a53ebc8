"""A poll of the transaction coordinators: what they answered about their transactional ids within one round of requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.state.transaction_state import TransactionState


class PolledTransaction(NamedTuple):
    """A transactional id as DescribeTransactions reports it.

    `start_ms` is -1 without a transaction. `partitions` are those of the open transaction, by topic.
    """

    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class TransactionPoll:
    """The answers of one poll.

    Attributes:
        answered_at_ms: when its last answer was received (ms)
        transactions: the ids whose coordinator answered
        unknown: ids that were asked for by name, and that their coordinator does not know
        failures: id → the reason why its coordinator gave an error instead
    """

    answered_at_ms: int
    transactions: Mapping[str, PolledTransaction]
    unknown: frozenset[str] = frozenset()
    failures: Mapping[str, str] = field(default_factory=dict)
