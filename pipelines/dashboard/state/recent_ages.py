"""Lag and age of groups in the last hour, for the small chart of each group of the list."""

import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.state.query_cache import Query, QueryCache
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables.store import Batch, is_in, timestamp_literal

#: Span of the small charts.
TREND = timedelta(hours=1)
#: The value at the start of a span is that of the row before it, which is at most this much earlier.
BEFORE = timedelta(minutes=20)

_AGES = """
SELECT group_id, sampled_at AS at, sum(lag) AS lag, max(lag_seconds) AS lag_seconds,
       CASE WHEN NOT bool_or(lag_seconds > 0 AND lag_seconds_high IS NULL) THEN max(lag_seconds_high) END AS lag_seconds_high
FROM lag_history
WHERE {condition} GROUP BY group_id, sampled_at ORDER BY group_id, sampled_at
"""
_ORDER = [("group_id", "ascending"), ("at", "ascending")]
_NAMES = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    [
        *(("group_id", _NAMES), ("at", TIMESTAMP), ("lag", pa.int64())),
        *(("lag_seconds", pa.float64()), ("lag_seconds_high", pa.float64())),
    ]
)


def ages_between(query: Query, groups: Iterable[str], start: datetime, end: datetime) -> pa.Table:
    """Rows with `group_id`, `at`, `lag`, `lag_seconds` and its upper bound, by group and time; of many groups also others."""
    return query(_AGES.format(condition=f"{is_in('group_id', groups)} AND {_between(start, end)}"))


def _between(start: datetime, end: datetime) -> str:
    return f"sampled_at BETWEEN {timestamp_literal(start)} AND {timestamp_literal(end)}"


def _with_present_names(rows: pa.Table) -> pa.Table:
    """One chunk, with a dictionary of the names that occur: unified dictionaries would keep those of groups long gone."""
    names = rows["group_id"].cast(pa.string()).combine_chunks().dictionary_encode()
    return rows.set_column(0, _SCHEMA.field(0), names).combine_chunks()


class RecentAges:
    """The last hour of all groups until a batch."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self._names: pa.Array = rows["group_id"].chunk(0).dictionary if rows.num_rows else pa.array([], pa.string())
        self._numbers = rows["group_id"].chunk(0).indices.to_numpy() if rows.num_rows else np.empty(0, np.int32)

    def of(self, groups: Iterable[str], end: datetime) -> pa.Table:
        """The rows of some groups before `end`, as `ages_between` has them; no others."""
        wanted = pc.is_in(self._names, value_set=pa.array(sorted(set(groups)), pa.string()))
        chosen = wanted.to_numpy(zero_copy_only=False)[self._numbers]
        found = self._rows.take(np.flatnonzero(chosen))
        found = found.filter(pc.greater_equal(found["at"], pa.scalar(end - TREND - BEFORE, TIMESTAMP)))
        return found.cast(found.schema.set(0, pa.field("group_id", pa.string()))).sort_by(_ORDER)


class NewestAges:
    """The last hour for one newest batch after the other: only the rows of new batches are read. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The batch that was read last.
        self.batch_id = -1
        self._rows = _SCHEMA.empty_table()
        self._ages = RecentAges(self._rows)

    def until(self, queries: QueryCache, batch: Batch, end: datetime) -> RecentAges:
        """The hour before `end`, the time of the newest sample, until a batch; of a later batch if it was asked for before."""
        with self._lock:
            if batch.batch_id > self.batch_id and "lag_history" in batch.versions:
                start = end - TREND - BEFORE
                condition = f"batch_id > {self.batch_id} AND {_between(start, end)}"
                new = queries.query(_AGES.format(condition=condition), keep=False)
                new = new.set_column(0, "group_id", new["group_id"].dictionary_encode()).cast(_SCHEMA)
                old = self._rows.filter(pc.greater_equal(self._rows["at"], pa.scalar(start, TIMESTAMP)))
                self._rows = _with_present_names(pa.concat_tables([old, new]))
                self._ages = RecentAges(self._rows)
                self.batch_id = batch.batch_id
            return self._ages
