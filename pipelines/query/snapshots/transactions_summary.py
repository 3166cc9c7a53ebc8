"""Transactional ids of a batch by state, and the oldest open transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

_SQL = """
SELECT state, count(*) AS ids,
       min(CASE WHEN state IN ('Ongoing', 'PrepareCommit', 'PrepareAbort') THEN start_timestamp END) AS oldest_start
FROM transactions
GROUP BY state
"""


@dataclass(frozen=True)
class TransactionsSummary:
    """Number of ids by state; start of the oldest transaction that is not complete, None without one."""

    ids: Mapping[str, int]
    oldest_start: datetime | None


def summarize_transactions(query: Callable[[str], pa.Table]) -> TransactionsSummary:
    """Read the table `transactions` with `query`."""
    rows = query(_SQL).to_pylist()
    starts = [row["oldest_start"] for row in rows if row["oldest_start"] is not None]
    return TransactionsSummary({row["state"]: row["ids"] for row in rows}, min(starts, default=None))
