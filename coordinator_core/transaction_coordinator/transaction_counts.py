"""Number of transactional ids by state, and the transactions that are not complete, for metrics."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator_core.state.transaction_state import ONGOING, PREPARE_ABORT, PREPARE_COMMIT
from coordinator_core.transaction_coordinator.context import TransactionContext

_DECIDED = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
_INCOMPLETE = _DECIDED | {ONGOING}


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
    metadata = [live.metadata for context in contexts for live in context.live.values()]
    states = Counter(each.state for each in metadata)
    decided = [each for each in metadata if each.state in _DECIDED] if states.keys() & _DECIDED else []
    starts = (each.start_ms for each in metadata if each.state in _INCOMPLETE) if states.keys() & _INCOMPLETE else ()
    return TransactionCounts(
        Counter({state.label: count for state, count in states.items()}),
        sum(len(each.partitions) for each in decided),
        min(starts, default=None),
    )
