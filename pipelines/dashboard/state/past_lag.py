"""Lag of all groups at an earlier batch, from `lag_history`."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.state.query_cache import QueryCache
from pipelines.dashboard.state.summary_rows import GROUP
from pipelines.tables.store import Batch, timestamp_literal

_ROWS = """
SELECT group_id, topic, sampled_at, commits_read_until, partitions, unknown_partitions, lag, lag_seconds, lag_seconds_low,
       lag_seconds_high
FROM lag_history WHERE batch_id <= {batch} AND sampled_at <= {until} AND sampled_at > {since}
"""
_ANY = """
SELECT max(sampled_at) AS at FROM lag_history WHERE batch_id <= {batch} AND sampled_at <= {until}
"""
#: A group without changes has a row at least every ten minutes (`lag_history`), thinned ones have the distance of `lag.keep`.
_LOOK_BACK = (timedelta(minutes=25), timedelta(hours=25))


def past_lag(queries: QueryCache, batch: Batch, groups: pa.ChunkedArray) -> pa.Table:
    """The newest rows of `lag_history` until the batch, of these groups, by group and topic."""
    rows = newest_rows(_read(queries, batch))
    return rows.filter(pc.is_in(rows[GROUP], groups.combine_chunks())).sort_by([(GROUP, "ascending"), ("topic", "ascending")])


def _read(queries: QueryCache, batch: Batch) -> pa.Table:
    """Rows of the time before the batch; after a pause of the samples those before the newest one."""
    until = batch.finished_at
    for look_back in _LOOK_BACK:
        rows = _between(queries, batch, until - look_back, until)
        if rows.num_rows:
            return rows
    at = queries.query(_ANY.format(batch=batch.batch_id, until=timestamp_literal(until)), keep=False)["at"][0].as_py()
    return rows if at is None else _between(queries, batch, at - _LOOK_BACK[-1], at)


def _between(queries: QueryCache, batch: Batch, since: datetime, until: datetime) -> pa.Table:
    sql = _ROWS.format(batch=batch.batch_id, since=timestamp_literal(since), until=timestamp_literal(until))
    return queries.query(sql, keep=False)


def newest_rows(rows: pa.Table) -> pa.Table:
    """The rows of each group with its newest time: rows of all topics of a group are stored together."""
    if not rows.num_rows:
        return rows
    group = rows[GROUP].combine_chunks().dictionary_encode()
    codes = group.indices.to_numpy()
    at = rows["sampled_at"].cast(pa.int64()).to_numpy()
    newest = np.full(len(group.dictionary), np.iinfo(np.int64).min)
    np.maximum.at(newest, codes, at)
    return rows.filter(pa.array(at == newest[codes]))


def lag_times(rows: pa.Table | None) -> tuple[datetime | None, datetime | None]:
    """Time of the newest sample among rows of `past_lag`, and time until which it has the commits."""
    if rows is None:
        return None, None
    return pc.max(rows["sampled_at"]).as_py(), pc.max(rows["commits_read_until"]).as_py()
