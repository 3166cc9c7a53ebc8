"""Topics that groups read: the sums of each group and topic at the moment of a page, and the growth of the logs."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pyarrow as pa

from pipelines.dashboard.state.moment import Moment
from pipelines.runtime.errors import RemovedState
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables.store import literal, timestamp_literal

#: Time in which the growth of a log is measured for the list of topics.
GROWTH = timedelta(hours=1)

#: Lag of each group and topic, with the partition of the greatest age.
GROUP_TOPICS = pa.schema(
    [
        ("topic", pa.string()),
        ("group_id", pa.string()),
        ("partitions", pa.int64()),
        ("unknown_partitions", pa.int64()),
        ("lag", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("lag_seconds_low", pa.float64()),
        ("lag_seconds_high", pa.float64()),
        ("messages_lost", pa.int64()),
        ("sampled_at", TIMESTAMP),
    ]
)
_FROM_LAG = """
SELECT topic, group_id, count(*) AS partitions, count(*) - count(lag) AS unknown_partitions,
       sum(CASE WHEN lag < 0 THEN 0 ELSE lag END) AS lag, max(lag_seconds) AS lag_seconds,
       first_value(lag_seconds_low ORDER BY lag_seconds DESC NULLS LAST) AS lag_seconds_low,
       CASE WHEN NOT bool_or(lag > 0 AND lag_seconds_high IS NULL)
            THEN first_value(lag_seconds_high ORDER BY lag_seconds DESC NULLS LAST) END AS lag_seconds_high,
       sum(messages_lost) AS messages_lost, max(sampled_at) AS sampled_at
FROM lag WHERE {where} GROUP BY topic, group_id
"""
#: The rows of `lag` are removed after an hour, its history is kept.
_FROM_HISTORY = """
SELECT h.topic, h.group_id, h.partitions, h.unknown_partitions, h.lag, h.lag_seconds, h.lag_seconds_low, h.lag_seconds_high,
       h.messages_lost, h.sampled_at
FROM (
  SELECT *, row_number() OVER (PARTITION BY group_id, topic ORDER BY batch_id DESC, sampled_at DESC) AS age
  FROM lag_history WHERE {where} AND sampled_at <= {at}
) h WHERE h.age = 1
"""
_FROM_OFFSETS = """
SELECT topic, group_id, count(*) AS partitions, count(*) AS unknown_partitions FROM offsets WHERE {where} GROUP BY topic, group_id
"""

_GROWTH = """
SELECT topic, sum(grown / seconds) AS records_per_second FROM (
  SELECT topic, topic_id, partition, max(log_end) - min(log_end) AS grown,
         date_part('epoch', max(asked_at)) - date_part('epoch', min(asked_at)) AS seconds
  FROM end_offsets WHERE log_end IS NOT NULL AND asked_at BETWEEN {start} AND {end} GROUP BY topic, topic_id, partition
) p WHERE seconds > 0 GROUP BY topic
"""
_INCARNATIONS = "SELECT topic, count(*) AS incarnations FROM topic_ids GROUP BY topic"


def group_topics(moment: Moment, topic: str | None = None) -> pa.Table:
    """Rows GROUP_TOPICS of all topics, or of one. Without samples the lag is unknown."""
    where = "TRUE" if topic is None else f"topic = {literal(topic)}"
    sampled = _FROM_LAG if moment.is_newest else _FROM_HISTORY
    sql = _FROM_OFFSETS if moment.sampled_at is None else sampled
    rows = moment.query(sql.format(where=where, at=timestamp_literal(moment.at)))
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in GROUP_TOPICS
    ]
    return pa.table(columns, GROUP_TOPICS)


def growth(moment: Moment) -> Mapping[str, float]:
    """Records per second that were appended to each topic in the time before the moment; topics without samples are left out."""
    if "end_offsets" not in moment.batch.versions:
        return {}
    sql = _GROWTH.format(start=timestamp_literal(moment.at - GROWTH), end=timestamp_literal(moment.at))
    return {row["topic"]: row["records_per_second"] for row in moment.query(sql).to_pylist()}


def incarnations(moment: Moment) -> Mapping[str, int]:
    """Number of topic ids by topic name; brokers before 2.8 have none, nor has a batch whose tables are removed."""
    rows: list[dict[str, Any]] = []
    with suppress(RemovedState):
        rows = moment.query(_INCARNATIONS).to_pylist()
    return {row["topic"]: row["incarnations"] for row in rows}
