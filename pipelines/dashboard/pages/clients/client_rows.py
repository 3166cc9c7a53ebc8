"""Clients of the members at the moment of a page, with the lag of the partitions that they own."""

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.state.moment import Moment
from pipelines.tables.store import timestamp_literal

# rows of groups, so that those of groups that a viewer may not see can be left out
_MEMBERS = """
SELECT client_id, client_host, group_id, sum(is_member) AS members, sum(partitions) AS partitions
FROM (
  SELECT client_id, client_host, group_id, 1 AS is_member, 0 AS partitions FROM members
  UNION ALL
  SELECT client_id, client_host, group_id, 0 AS is_member, CAST(cardinality(part['partitions']) AS BIGINT) AS partitions
  FROM (SELECT client_id, client_host, group_id, unnest(assigned) AS part FROM members WHERE assigned IS NOT NULL) a
) m GROUP BY client_id, client_host, group_id
"""
_LAG = """
SELECT client_id, group_id, sum(CASE WHEN lag < 0 THEN 0 ELSE lag END) AS lag,
       count(*) - count(lag) AS unknown_partitions, max(lag_seconds) AS lag_seconds,
       first_value(lag_seconds_low ORDER BY lag_seconds DESC NULLS LAST) AS lag_seconds_low,
       CASE WHEN NOT bool_or(lag > 0 AND lag_seconds_high IS NULL)
            THEN first_value(lag_seconds_high ORDER BY lag_seconds DESC NULLS LAST) END AS lag_seconds_high
FROM lag WHERE client_id IS NOT NULL GROUP BY client_id, group_id
"""
_CLIENTS = pa.schema(
    [
        ("client_id", pa.string()),
        ("hosts", pa.int64()),
        ("host", pa.string()),
        ("groups", pa.int64()),
        ("group_id", pa.string()),
        ("members", pa.int64()),
        ("partitions", pa.int64()),
    ]
)
#: Where the table of members was removed: members with partitions, from the history of owners.
_OWNERS = """
SELECT client_id, client_host, group_id, count(DISTINCT member_id) AS members, count(*) AS partitions FROM ownership
WHERE (since IS NULL OR since <= {at}) AND (until IS NULL OR until > {at}) GROUP BY client_id, client_host, group_id
"""
#: Columns of the lag of a client.
LAG_COLUMNS = pa.schema(
    [
        ("lag", pa.int64()),
        ("unknown_partitions", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("lag_seconds_low", pa.float64()),
        ("lag_seconds_high", pa.float64()),
    ]
)


def client_rows(moment: Moment) -> pa.Table:
    """One row per client id; `host` and `group_id` are the first ones by name.

    The lag is known for the newest sample only: the rows of `lag` are not kept. Where the table of members was removed, members
    without partitions are unknown.
    """
    at = timestamp_literal(moment.batch.finished_at)
    rows = _clients(moment.query(_OWNERS.format(at=at) if moment.is_derived else _MEMBERS))
    if not moment.is_newest or moment.sampled_at is None:
        for field in LAG_COLUMNS:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows
    lag = _lag(moment.query(_LAG))
    places = pc.index_in(rows["client_id"], value_set=lag["client_id"].combine_chunks())
    for field in LAG_COLUMNS:
        rows = rows.append_column(field, lag[field.name].take(places).cast(field.type))
    return rows


def _clients(members: pa.Table) -> pa.Table:
    """Sums over rows by client id, host and group."""
    names = [("client_host", "count_distinct"), ("client_host", "min"), ("group_id", "count_distinct"), ("group_id", "min")]
    found = members.group_by("client_id").aggregate([*names, ("members", "sum"), ("partitions", "sum")])
    return found.rename_columns(_CLIENTS.names).cast(_CLIENTS)


def _lag(lag: pa.Table) -> pa.Table:
    """Sums over rows by client id and group, with the bounds of the greatest age."""
    rows = lag.sort_by([("client_id", "ascending"), ("lag_seconds", "descending")])
    ages = [(name, "first", pc.ScalarAggregateOptions(skip_nulls=False)) for name in LAG_COLUMNS.names[2:]]
    sums = [("lag", "sum"), ("unknown_partitions", "sum")]
    found = rows.group_by("client_id", use_threads=False).aggregate([*sums, *ages])
    return found.rename_columns(["client_id", *LAG_COLUMNS.names])
