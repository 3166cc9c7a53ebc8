"""The history of one group in a span: lag and age, commits, owners of partitions, rebalances and resets."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.history.commit_rates import BUCKETS, COMMITS, READS, commit_rates
from pipelines.dashboard.history.sampling_gaps import gaps_of_batches, gaps_of_samples, with_unsampled, without_unread
from pipelines.dashboard.history.span import Span
from pipelines.dashboard.history.thinned_series import thinned
from pipelines.query.engine import Queries
from pipelines.query.histories import IS_CHANGE, MAY_BE_OLDER, REMOVALS_SQL
from pipelines.tables.store import literal, timestamp_literal

Row = dict[str, Any]

#: A row of `lag_history` is at most ten minutes after the one before it, where `maintain` has not thinned the rows.
_LEAST_GAP_SECONDS = 1_200
_DISTANCES_OF_A_GAP = 3
#: Distances on either side that show what is usual.
_NEARBY = 3

_LAG = """
SELECT sampled_at AS at, sum(lag) AS lag, max(lag_seconds) AS lag_seconds, max(lag_seconds_low) AS lag_seconds_low,
       CASE WHEN NOT bool_or(lag_seconds > 0 AND lag_seconds_high IS NULL) THEN max(lag_seconds_high) END AS lag_seconds_high,
       sum(unknown_partitions) AS unknown_partitions, sum(messages_lost) AS messages_lost,
       sum(blocked_partitions) AS blocked_partitions
FROM lag_history WHERE group_id = {group} AND sampled_at BETWEEN {before} AND {end} GROUP BY sampled_at ORDER BY sampled_at
"""
#: Columns of these rows that are not in a point.
_COUNTS = ["messages_lost", "blocked_partitions"]
_OWNERS = """
SELECT topic, partition, member_id, group_instance_id, client_id, client_host, generation, since, until FROM ownership
WHERE group_id = {group} AND (since IS NULL OR since <= {end}) AND (until IS NULL OR until >= {start})
ORDER BY topic, partition, since
"""
_REBALANCES = """
SELECT from_generation, to_generation, trigger, outcome, protocol, recorded_at, started_at, finished_at, duration_seconds,
       members_before, members_after, members_joined, members_left, partitions_moved, seconds_without_owner,
       log_partition < 0 AS is_polled
FROM rebalances WHERE group_id = {group} AND recorded_at BETWEEN {start} AND {end} ORDER BY recorded_at, to_generation
"""
_MEMBERS = f"""
SELECT change, member_id, detail, generation, record_timestamp AS at, {MAY_BE_OLDER} AS may_be_older,
       log_partition < 0 AS is_polled
FROM group_history
WHERE group_id = {{group}}
  AND change IN ('member_joined', 'member_left', 'group_created', 'group_deleted', 'moved', 'type_changed')
  AND record_timestamp BETWEEN {{start}} AND {{end}} ORDER BY batch_id, log_offset
"""
_RESETS = """
SELECT topic, partition, reset_at, from_offset, to_offset, from_is_least, size, direction, reset_by FROM resets
WHERE group_id = {group} AND reset_at BETWEEN {start} AND {end} ORDER BY reset_at, topic, partition
"""
_REMOVALS = f"""
SELECT change, record_timestamp AS at, topic, count(*) AS partitions FROM offset_history
WHERE group_id = {{group}} AND change IN ({REMOVALS_SQL}) AND record_timestamp BETWEEN {{start}} AND {{end}}
GROUP BY change, record_timestamp, topic ORDER BY at
"""
#: A commit without a previous offset whose partition had one that was removed.
_RETURNS = f"""
SELECT topic, partition, at, to_offset, from_offset FROM (
  SELECT topic, partition, record_timestamp AS at, change, min_offset AS to_offset,
         lag(change) OVER before AS change_before, lag(previous_offset) OVER before AS from_offset
  FROM offset_history
  WHERE group_id = {{group}} AND {IS_CHANGE} AND (change IN ({REMOVALS_SQL}) OR previous_offset IS NULL)
  WINDOW before AS (PARTITION BY topic, partition ORDER BY batch_id, log_offset)
) c
WHERE change IN ('commit', 'rewind') AND change_before IN ({REMOVALS_SQL}) AND from_offset IS NOT NULL
  AND at BETWEEN {{start}} AND {{end}}
ORDER BY at, topic, partition
"""


class GroupQueries:
    """The histories of one group in a span."""

    def __init__(self, tables: Queries, group: str, span: Span) -> None:
        self._tables = tables
        self._span = span
        # the value at the start of the span is that of the row before it
        self._before = span.start - timedelta(seconds=max(_LEAST_GAP_SECONDS, span.seconds / 20))
        self._values = {
            "group": literal(group),
            "start": timestamp_literal(span.start),
            "end": timestamp_literal(span.end),
            "before": timestamp_literal(self._before),
        }

    def lag(self) -> list[Row]:
        """Points of lag and age in the order of time. A point without values begins a gap, in which nothing was sampled."""
        rows: list[Row] = self._samples().drop_columns(_COUNTS).to_pylist()
        points = with_gaps(with_unsampled(rows, gaps_of_samples(self._tables.query, self._before, self._span.end)))
        before = [number for number, point in enumerate(points) if point["at"] < self._span.start]
        # of the points before the span, the last one has the value at its start
        return thinned(points[before[-1] :] if before else points, "lag")

    def has_losses(self) -> bool:
        """True if records were lost in a sample of the span, or shortly before it."""
        return bool(pc.any(pc.greater(self._samples()["messages_lost"], 0)).as_py())

    def has_blocked_partitions(self) -> bool:
        """True if a transaction blocked a partition in a sample of the span, or shortly before it."""
        return bool(pc.any(pc.greater(self._samples()["blocked_partitions"], 0)).as_py())

    def _samples(self) -> pa.Table:
        # one statement, so that its result is kept
        return self._tables.query(_LAG.format(**self._values))

    def commits(self) -> list[Row]:
        """Commits per second between two batches that read the log; null in times that no batch has read."""
        width = self._span.seconds / BUCKETS
        reads = self._rows(READS, start_seconds=repr(self._span.start.timestamp()), width=repr(width))
        if len(reads) < 2:
            return []
        first, last = (str(row["batch_id"]) for row in (reads[0], reads[-1]))
        rates = commit_rates(reads, self._rows(COMMITS, first=first, last=last), self._span)
        gaps = gaps_of_batches(self._tables.query, self._before, self._span.end)
        return without_unread(rates, "commits_per_second", gaps)

    def owners(self) -> list[Row]:
        """Intervals in which a member had a partition, cut to nothing: they may begin before the span."""
        return self._rows(_OWNERS)

    def rebalances(self) -> list[Row]:
        """Rebalances in the order of time."""
        return self._rows(_REBALANCES)

    def member_changes(self) -> list[Row]:
        """Members that joined and left, and the creation and deletion of the group."""
        return self._rows(_MEMBERS)

    def resets(self) -> list[Row]:
        """Jumps of committed offsets."""
        return self._rows(_RESETS)

    def removals(self) -> list[Row]:
        """Removed offsets by time and topic."""
        return self._rows(_REMOVALS)

    def returns(self) -> list[Row]:
        """First commits of partitions whose offset had been removed."""
        return self._rows(_RETURNS)

    def _rows(self, sql: str, **values: str) -> list[Row]:
        rows: list[Row] = self._tables.query(sql.format(**self._values, **values)).to_pylist()
        return rows


def with_gaps(points: Sequence[Row]) -> list[Row]:
    """The points, with an empty one after each point that is followed by an unusually long time without samples.

    Usual is what is usual nearby: `maintain` keeps older samples at greater distances.
    """
    distances = [(after["at"] - before["at"]).total_seconds() for before, after in pairwise(points)]
    found: list[Row] = []
    for number, point in enumerate(points):
        found.append(point)
        if number == len(distances):
            break
        usual = median(distances[max(0, number - _NEARBY) : number + _NEARBY + 1])
        if distances[number] > max(_LEAST_GAP_SECONDS, _DISTANCES_OF_A_GAP * usual):
            found.append({**dict.fromkeys(point), "at": point["at"]})
    return found
