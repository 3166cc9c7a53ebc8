"""The history of one group in a span: lag and age, commits, owners of partitions, rebalances and resets."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any, Protocol

import pyarrow as pa

from pipelines.dashboard.history.span import Span
from pipelines.dashboard.history.thinned_series import thinned
from pipelines.tables.store import literal, timestamp_literal

Row = dict[str, Any]

#: Buckets of the commit rate in a span.
_BUCKETS = 120
#: A row of `lag_history` is at most ten minutes after the one before it, where `maintain` has not thinned the rows.
_LEAST_GAP_SECONDS = 1_200
_DISTANCES_OF_A_GAP = 3
#: Distances on either side that show what is usual.
_NEARBY = 3

_LAG = """
SELECT sampled_at AS at, sum(lag) AS lag, max(lag_seconds) AS lag_seconds, max(lag_seconds_low) AS lag_seconds_low,
       max(lag_seconds_high) AS lag_seconds_high, sum(unknown_partitions) AS unknown_partitions
FROM lag_history WHERE group_id = {group} AND sampled_at BETWEEN {before} AND {end} GROUP BY sampled_at ORDER BY sampled_at
"""
_COMMITS = """
SELECT max(record_timestamp) AS at, sum(commits) AS commits
FROM offset_history WHERE group_id = {group} AND change IN ('commit', 'rewind') AND record_timestamp BETWEEN {before} AND {end}
GROUP BY batch_id ORDER BY at
"""
_OWNERS = """
SELECT topic, partition, member_id, group_instance_id, client_id, client_host, generation, since, until FROM ownership
WHERE group_id = {group} AND (since IS NULL OR since <= {end}) AND (until IS NULL OR until >= {start})
ORDER BY topic, partition, since
"""
_REBALANCES = """
SELECT from_generation, to_generation, trigger, outcome, protocol, recorded_at, started_at, finished_at, duration_seconds,
       members_before, members_after, members_joined, members_left, partitions_moved, seconds_without_owner
FROM rebalances WHERE group_id = {group} AND recorded_at BETWEEN {start} AND {end} ORDER BY recorded_at, to_generation
"""
_MEMBERS = """
SELECT h.change, h.member_id, h.detail, h.generation, h.record_timestamp AS at FROM group_history h
WHERE h.group_id = {group} AND h.change IN ('member_joined', 'member_left', 'group_created', 'group_deleted', 'type_changed')
  AND h.record_timestamp BETWEEN {start} AND {end} ORDER BY h.log_offset
"""
_RESETS = """
SELECT topic, partition, reset_at, from_offset, to_offset, size, direction, reset_by FROM resets
WHERE group_id = {group} AND reset_at BETWEEN {start} AND {end} ORDER BY reset_at, topic, partition
"""
_REMOVALS = """
SELECT change, record_timestamp AS at, topic, count(*) AS partitions FROM offset_history
WHERE group_id = {group} AND change IN ('tombstone', 'expire') AND record_timestamp BETWEEN {start} AND {end}
GROUP BY change, record_timestamp, topic ORDER BY at
"""
#: A commit without a previous offset whose partition had one that was removed.
_RETURNS = """
SELECT topic, partition, at, to_offset, from_offset FROM (
  SELECT topic, partition, record_timestamp AS at, change, min_offset AS to_offset,
         lag(change) OVER before AS change_before, lag(previous_offset) OVER before AS from_offset
  FROM offset_history
  WHERE group_id = {group} AND (change IN ('tombstone', 'expire') OR previous_offset IS NULL)
  WINDOW before AS (PARTITION BY topic, partition ORDER BY log_offset, batch_id)
) c
WHERE change IN ('commit', 'rewind') AND change_before IN ('tombstone', 'expire') AND from_offset IS NOT NULL
  AND at BETWEEN {start} AND {end}
ORDER BY at, topic, partition
"""


class Queries(Protocol):
    """Where the histories are read: a moment of the page."""

    def query(self, sql: str) -> pa.Table:
        """The rows of a reading statement."""


class GroupQueries:
    """The histories of one group in a span."""

    def __init__(self, tables: Queries, group: str, span: Span, read_until: datetime) -> None:
        """`read_until` is the end of the batch: what was committed later is unknown."""
        self._read_until = read_until
        self._tables = tables
        self._span = span
        self._values = {
            "group": literal(group),
            "start": timestamp_literal(span.start),
            "end": timestamp_literal(span.end),
            # the value at the start of the span is that of the row before it
            "before": timestamp_literal(span.start - timedelta(seconds=max(_LEAST_GAP_SECONDS, span.seconds / 20))),
        }

    def lag(self) -> list[Row]:
        """Points of lag and age in the order of time. A point without values begins a gap, in which nothing was sampled."""
        points = with_gaps(self._rows(_LAG))
        before = [number for number, point in enumerate(points) if point["at"] < self._span.start]
        # of the points before the span, the last one has the value at its start
        return thinned(points[before[-1] :] if before else points, "lag")

    def commits(self) -> list[Row]:
        """Commits per second by bucket; `at` is the start of the bucket. Null for buckets after the end of the batch."""
        rates = _rates([(row["at"], row["commits"]) for row in self._rows(_COMMITS)], self._span)
        return [row if row["at"] < self._read_until else {**row, "commits_per_second": None} for row in rates]

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

    def _rows(self, sql: str) -> list[Row]:
        rows: list[Row] = self._tables.query(sql.format(**self._values)).to_pylist()
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


def _rates(commits: Sequence[tuple[datetime, int]], span: Span) -> list[Row]:
    """A batch has one number of commits, so they are spread over the time since the batch before, at most the usual distance."""
    distances = [(after - before).total_seconds() for (before, _), (after, _) in pairwise(commits)]
    usual = max(1.0, 2 * median(distances)) if distances else span.seconds / _BUCKETS
    width = max(span.seconds / _BUCKETS, usual)
    buckets = [0.0] * max(1, -(-int(span.seconds) // max(1, int(width))))
    width = span.seconds / len(buckets)
    spread = [min(usual, distance) for distance in distances]
    for (at, number), seconds in zip(commits, [usual, *spread], strict=False):
        end = (at - span.start).total_seconds()
        _add(buckets, width, end - max(seconds, 1e-3), end, number)
    return [
        {"at": span.start + timedelta(seconds=number * width), "commits_per_second": amount / width}
        for number, amount in enumerate(buckets)
    ]


def _add(buckets: list[float], width: float, start: float, end: float, amount: float) -> None:
    """Add an amount that is spread evenly between two times, in seconds since the start of the first bucket."""
    for number in range(max(0, int(start // width)), min(len(buckets) - 1, int(end // width)) + 1):
        overlap = min(end, (number + 1) * width) - max(start, number * width)
        buckets[number] += amount * max(0.0, overlap) / (end - start)
