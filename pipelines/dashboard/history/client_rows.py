"""Clients of the members at the moment of a page, with the lag of the partitions that they own."""

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.moments.moment import Moment

_CLIENTS = """
SELECT client_id, sum(is_member) AS members, count(DISTINCT client_host) AS hosts, min(client_host) AS host,
       count(DISTINCT group_id) AS groups, min(group_id) AS group_id, sum(partitions) AS partitions
FROM (
  SELECT client_id, client_host, group_id, 1 AS is_member, 0 AS partitions FROM members
  UNION ALL
  SELECT client_id, client_host, group_id, 0 AS is_member, CAST(cardinality(part['partitions']) AS BIGINT) AS partitions
  FROM (SELECT client_id, client_host, group_id, unnest(assigned) AS part FROM members) a
) m GROUP BY client_id
"""
_LAG = """
SELECT client_id, sum(CASE WHEN lag < 0 THEN 0 ELSE lag END) AS lag, count(*) - count(lag) AS unknown_partitions,
       max(lag_seconds) AS lag_seconds,
       first_value(lag_seconds_low ORDER BY lag_seconds DESC NULLS LAST) AS lag_seconds_low,
       first_value(lag_seconds_high ORDER BY lag_seconds DESC NULLS LAST) AS lag_seconds_high
FROM lag WHERE client_id IS NOT NULL GROUP BY client_id
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
    """One row per client id. The lag is known for the newest sample only: the rows of `lag` are not kept."""
    rows = moment.query(_CLIENTS)
    if not moment.is_newest or moment.sampled_at is None:
        for field in LAG_COLUMNS:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows
    lag = moment.query(_LAG)
    places = pc.index_in(rows["client_id"], value_set=lag["client_id"].combine_chunks())
    for field in LAG_COLUMNS:
        rows = rows.append_column(field, lag[field.name].take(places).cast(field.type))
    return rows
