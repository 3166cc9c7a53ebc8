"""The history of one group in a span: lag and age, commits, owners of partitions, rebalances and resets.

Most of the time of a page is the planning of its statements: tables are read by plain ones, once where that suffices, and a view
with many steps only where its tables have rows that it could show.
"""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.history.commit_rates import BUCKETS, COMMITS, READS, commit_rates
from pipelines.dashboard.history.group_samples import SAMPLES, sums_of_topics
from pipelines.dashboard.history.partition_lags import chosen_samples
from pipelines.dashboard.history.removed_offsets import DISCONTINUITIES, removals, returns
from pipelines.dashboard.history.sampling_gaps import gaps_of_batches, gaps_of_samples, with_unsampled, without_unread
from pipelines.dashboard.history.span import Span
from pipelines.dashboard.history.thinned_series import thinned
from pipelines.query.engine import Queries
from pipelines.query.histories import may_be_older
from pipelines.tables.store import literal, timestamp_literal

Row = dict[str, Any]

#: A row of `lag_history` is at most ten minutes after the one before it, where `maintain` has not thinned the rows.
_LEAST_GAP_SECONDS = 1_200
_DISTANCES_OF_A_GAP = 3
#: Distances on either side that show what is usual.
_NEARBY = 3

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
_MEMBERS = """
SELECT change, member_id, detail, generation, record_timestamp AS at, {may_be_older} AS may_be_older,
       log_partition < 0 AS is_polled
FROM group_history
WHERE group_id = {group}
  AND change IN ('member_joined', 'member_left', 'group_created', 'group_deleted', 'moved', 'type_changed')
  AND record_timestamp BETWEEN {start} AND {end} ORDER BY batch_id, log_offset
"""
_RESETS = """
SELECT topic, partition, reset_at, from_offset, to_offset, from_is_least, size, direction, reset_by FROM resets
WHERE group_id = {group} AND reset_at BETWEEN {start} AND {end} ORDER BY reset_at, topic, partition
"""
#: Each rebalance is a row of this history. Commits by an administrator are to an empty group.
_STATES = """
SELECT COALESCE(bool_or(record_timestamp BETWEEN {start} AND {end}), FALSE) AS has_changed,
       COALESCE(bool_or(state = 'Empty' AND record_timestamp >= {start}), FALSE) AS became_empty,
       last_value(state ORDER BY batch_id, log_offset) FILTER (WHERE record_timestamp < {start}) AS state_before
FROM membership_history WHERE group_id = {group}
"""


class GroupQueries:
    """The histories of one group in a span."""

    def __init__(self, tables: Queries, group: str, is_empty: bool, span: Span) -> None:
        """`is_empty`: the group has no members now."""
        self._tables = tables
        self._is_empty = is_empty
        self._group = group
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
        rows: list[Row] = sums_of_topics(self._samples()).to_pylist()
        points = with_gaps(with_unsampled(rows, gaps_of_samples(self._tables.query, self._before, self._span.end)))
        before = [number for number, point in enumerate(points) if point["at"] < self._span.start]
        # of the points before the span, the last one has the value at its start
        return thinned(points[before[-1] :] if before else points, "lag")

    def chosen_samples(self) -> pa.Table:
        """The samples that the chart of partitions shows."""
        return chosen_samples(self._tables.query, self._group, self._span, self._samples())

    def has_losses(self) -> bool:
        """True if records were lost in a sample of the span, or shortly before it."""
        return bool(pc.any(pc.greater(self._samples()["messages_lost"], 0)).as_py())

    def has_blocked_partitions(self) -> bool:
        """True if a transaction blocked a partition in a sample of the span, or shortly before it."""
        return bool(pc.any(pc.greater(self._samples()["blocked_partitions"], 0)).as_py())

    def _samples(self) -> pa.Table:
        # one statement, so that its result is kept
        return self._tables.query(SAMPLES.format(**self._values))

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
        return self._rows(_REBALANCES) if self._states()["has_changed"] else []

    def member_changes(self) -> list[Row]:
        """Members that joined and left, and the creation and deletion of the group."""
        return self._rows(_MEMBERS, may_be_older=may_be_older(self._tables.query))

    def resets(self) -> list[Row]:
        """Jumps of committed offsets."""
        may_have = self._was_empty() or any(row["change"] == "rewind" for row in self._discontinuities())
        return self._rows(_RESETS) if may_have else []

    def removals(self) -> list[Row]:
        """Removed offsets by time and topic."""
        return removals(self._discontinuities(), self._span)

    def returns(self) -> list[Row]:
        """First commits of partitions whose offset had been removed."""
        return returns(self._discontinuities(), self._span)

    def _discontinuities(self) -> list[Row]:
        return self._rows(DISCONTINUITIES)

    def _states(self) -> Row:
        return self._rows(_STATES)[0]

    def _was_empty(self) -> bool:
        states = self._states()
        # as the view: the state of now counts where the history does not reach back
        was_empty = self._is_empty if states["state_before"] is None else states["state_before"] == "Empty"
        return was_empty or states["became_empty"]

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
