"""Commits per second of a group, each over the time between two batches of which both have read the log.

A batch has one number of commits, made at any time since the batch before it, so this time is the window of its rate. Times that
no batch has read are unknown, not 0.
"""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from pipelines.dashboard.history.span import Span

Row = dict[str, Any]

#: Most windows in a span.
BUCKETS = 120
#: A commit that is older than the window by more than its width, and by this, was read late: the job was catching up.
_LATE = timedelta(seconds=60)

#: The newest batch that has read the log until each part of the span, and the one before the span. A sample that found no further
#: records has read the log, too.
READS = """
SELECT batch_id, COALESCE(log_read_until, finished_at) AS at FROM batches WHERE batch_id IN (
  SELECT max(batch_id) FROM batches WHERE (records_read > 0 OR log_read_until IS NOT NULL)
    AND COALESCE(log_read_until, finished_at) BETWEEN {start} AND {end}
  GROUP BY ceil((date_part('epoch', COALESCE(log_read_until, finished_at)) - {start_seconds}) / {width})
  UNION ALL SELECT max(batch_id) FROM batches WHERE (records_read > 0 OR log_read_until IS NOT NULL)
    AND COALESCE(log_read_until, finished_at) < {start}
) ORDER BY batch_id
"""
COMMITS = """
SELECT batch_id, sum(commits) AS commits, min(record_timestamp) AS oldest_at FROM offset_history
WHERE group_id = {group} AND change IN ('commit', 'rewind') AND batch_id > {first} AND batch_id <= {last}
GROUP BY batch_id ORDER BY batch_id
"""


def commit_rates(reads: Sequence[Row], commits: Sequence[Row], span: Span) -> list[Row]:
    """Windows with `at`, `until` and `commits_per_second`, in the order of time; the last point, without a rate, ends them."""
    read = _spaced(reads, span.seconds / BUCKETS / 2)
    sums: list[int] = [0] * len(read)
    oldest: list[datetime | None] = [None] * len(read)
    batches = [row["batch_id"] for row in read]
    for row in commits:
        number = bisect_left(batches, row["batch_id"])
        sums[number] += row["commits"]
        known = [at for at in (oldest[number], row["oldest_at"]) if at is not None]
        oldest[number] = min(known, default=None)
    found = []
    for number, (before, after) in enumerate(pairwise(read), start=1):
        width = after["at"] - before["at"]
        first = oldest[number]
        is_late = first is not None and first < before["at"] - max(_LATE, width)
        rate = None if is_late else sums[number] / width.total_seconds()
        found.append({"at": max(span.start, before["at"]), "until": after["at"], "commits_per_second": rate})
    return [*found, {"at": read[-1]["at"], "until": None, "commits_per_second": None}] if found else []


def _spaced(reads: Sequence[Row], seconds: float) -> list[Row]:
    """The newest batch, and earlier ones at a distance of at least `seconds`, which is greater than 0."""
    found: list[Row] = []
    for row in reversed(reads):
        if not found or (found[-1]["at"] - row["at"]).total_seconds() >= seconds:
            found.append(row)
    return found[::-1]
