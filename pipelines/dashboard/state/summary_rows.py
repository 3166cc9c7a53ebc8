"""Rows of `summaries`: one per group, joined in columns from parts that each have a row per group."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.health import NONE
from coordinator_core.health.sample_columns import integers, nullable
from pipelines.lag.columns import starts_of_runs
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables import definitions

GROUP = "group_id"

#: Columns of the lag of a group.
LAG_SUMS = pa.schema(
    [
        (GROUP, pa.string()),
        ("topics", pa.list_(pa.string())),
        ("partitions", pa.int64()),
        ("unknown_partitions", pa.int64()),
        ("lag", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("lag_seconds_low", pa.float64()),
        ("lag_seconds_high", pa.float64()),
    ]
)
_AGES = ("lag_seconds", "lag_seconds_low", "lag_seconds_high")

#: Columns of `group_status` in `summaries`.
STATUS_COLUMNS = [GROUP, "status", "rule", "detail", "findings"]


@cache
def summary_schema() -> pa.Schema:
    """Columns of `summaries`. Made at the first use, because it reads the DDL of `group_status`."""
    return pa.schema(
        [
            (GROUP, pa.string()),
            ("group_type", pa.string()),
            ("state", pa.string()),
            ("protocol", pa.string()),
            ("generation", pa.int32()),
            ("member_count", pa.int32()),
            *(field for field in LAG_SUMS if field.name != GROUP),
            ("status", pa.string()),
            ("rule", pa.string()),
            ("detail", pa.string()),
            ("findings", definitions.table("group_status").schema.field("findings").type),
            ("last_commit_at", TIMESTAMP),
            ("last_rebalance_at", TIMESTAMP),
        ]
    )


def summary_rows(groups: pa.Table, lag: pa.Table, *more: pa.Table) -> pa.Table:
    """One row per group of `groups` or `lag`, sorted, with the columns of all parts; columns of no part are null.

    Each part has unique groups. `more` may have groups that no longer exist.
    """
    names = pa.chunked_array([part[GROUP].combine_chunks() for part in (groups, lag)], pa.string()).unique()
    names = names.take(pc.sort_indices(names))
    columns: dict[str, pa.ChunkedArray | pa.Array] = {GROUP: names}
    for part in (groups, lag, *more):
        wanted = [name for name in part.column_names if name in summary_schema().names and name != GROUP]
        found = part.select(wanted).take(pc.index_in(names, value_set=part[GROUP].combine_chunks()))
        columns |= {name: found[name] for name in wanted}
    schema, count = summary_schema(), len(names)
    return pa.table([columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema], schema)


def lag_sums(lag: pa.Table) -> pa.Table:
    """Sums over rows of `lag`, sorted by group and topic. Unknown lags are counted, and null if none is known.

    The age is the greatest known one. It is null if that is 0 and a partition that is behind has an unknown age. It has an upper
    bound if the ages of all partitions have one.
    """
    starts = starts_of_runs(lag[GROUP])
    if not lag.num_rows:
        return LAG_SUMS.empty_table()
    known = lag["lag"].is_valid().to_numpy().astype(np.int64)
    floored = np.maximum(lag["lag"].fill_null(0).to_numpy(), 0)
    partitions = np.diff(starts)
    is_age_unknown = lag["lag_seconds"].is_null().to_numpy() & (floored > 0)
    is_unbounded = is_age_unknown | _without_bound(lag)
    known_partitions = np.add.reduceat(known, starts[:-1])
    return _sums(
        lag,
        starts,
        {
            "partitions": partitions,
            "unknown_partitions": partitions - known_partitions,
            "lag": pa.array(np.add.reduceat(floored, starts[:-1]), mask=known_partitions == 0),
        },
        np.logical_or.reduceat(is_age_unknown, starts[:-1]),
        np.logical_or.reduceat(is_unbounded, starts[:-1]),
    )


def topic_sums(history: pa.Table) -> pa.Table:
    """The same from rows of `lag_history`, sorted by group and topic, one per topic.

    They do not count unknown ages, so the age of any group that is behind is unknown if the greatest known one is 0.
    """
    starts = starts_of_runs(history[GROUP])
    if not history.num_rows:
        return LAG_SUMS.empty_table()
    lag = integers(history["lag"])
    total = np.add.reduceat(np.where(lag == NONE, 0, lag), starts[:-1])
    is_unknown = np.maximum.reduceat(lag, starts[:-1]) == NONE
    counts = {name: np.add.reduceat(history[name].to_numpy(), starts[:-1]) for name in ("partitions", "unknown_partitions")}
    sums = {**counts, "lag": nullable(np.where(is_unknown, NONE, total))}
    return _sums(history, starts, sums, total > 0, np.logical_or.reduceat(_without_bound(history), starts[:-1]))


def _without_bound(rows: pa.Table) -> Numbers:
    """True for rows whose age is known to be at least `lag_seconds`, and perhaps much more."""
    seconds: Numbers = np.nan_to_num(rows["lag_seconds"].to_numpy())
    found: Numbers = (seconds > 0) & rows["lag_seconds_high"].is_null().to_numpy()
    return found


def _sums(
    rows: pa.Table, starts: Int64s, sums: Mapping[str, Int64s | pa.Array], may_be_older: Numbers, is_unbounded: Numbers
) -> pa.Table:
    """`may_be_older` marks the groups with an unknown age beside the known ones, `is_unbounded` those without an upper bound."""
    ages = rows.select(_AGES).take(_oldest(rows["lag_seconds"].to_numpy(), starts))
    is_unknown = pc.and_(pa.array(may_be_older), pc.equal(ages["lag_seconds"], 0.0))
    ages = ages.set_column(2, "lag_seconds_high", pc.if_else(pa.array(is_unbounded), None, ages["lag_seconds_high"]))
    columns = {
        GROUP: rows[GROUP].take(starts[:-1]),
        "topics": _topics(rows, starts),
        **sums,
        **{name: pc.if_else(pc.fill_null(is_unknown, False), None, ages[name]) for name in _AGES},
    }
    return pa.table({field.name: columns[field.name] for field in LAG_SUMS}).cast(LAG_SUMS)


def _oldest(age: np.ndarray, starts: Int64s) -> Int64s:
    """The row with the greatest known age of each group; its first row if none is known."""
    order = np.nan_to_num(age, nan=-1.0)
    greatest = np.repeat(np.maximum.reduceat(order, starts[:-1]), np.diff(starts))
    rows = np.where(order == greatest, np.arange(len(age)), len(age))
    found: Int64s = np.minimum.reduceat(rows, starts[:-1])
    return found


def _topics(rows: pa.Table, starts: Int64s) -> pa.ListArray:
    firsts = starts_of_runs(rows[GROUP], rows["topic"])[:-1]
    bounds = np.searchsorted(firsts, starts)
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), rows["topic"].take(firsts).combine_chunks())
