"""Number of transactional ids by state, and the transactions that are not complete, for metrics."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator_core.state.transaction_state import ONGOING
from coordinator_core.transactions.context import TransactionContext


@dataclass(frozen=True, slots=True)
class TransactionCounts:
    """`states` by the names in ListTransactions; `pending_markers` of decided transactions.

    `oldest_start_ms` is the start of the oldest transaction that is not complete; None without one.
    """

    states: Counter[str] = field(default_factory=Counter)
    pending_markers: int = 0
    oldest_start_ms: int | None = None


def count_transactions(contexts: Iterable[TransactionContext]) -> TransactionCounts:
    """Count the transactional ids of these log partitions."""
    states: Counter[str] = Counter()
    pending_markers = 0
    oldest: int | None = None
    for context in contexts:
        for live in context.live.values():
            now = live.metadata
            states[now.state.label] += 1
            if now.state.is_prepared:
                pending_markers += len(now.partitions)
            if now.state is ONGOING or now.state.is_prepared:
                oldest = now.start_ms if oldest is None else min(oldest, now.start_ms)
    return TransactionCounts(states, pending_markers, oldest)
