"""Times in which the job was away, from the table `batches`: what happened in them is unknown.

`lag_history` has no row for a sample that changed nothing, so its rows do not show when the job sampled. Batches do: each sample
is one, with the interval at which the next one was expected.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.tables.store import timestamp_literal

Row = dict[str, Any]

#: A time between two samples of more than this many intervals is a gap.
INTERVALS = 3
#: A run of equal rows is stored at least every ten minutes (`LagHistory`), so a value holds no longer without a row.
_LONGEST_RUN = timedelta(minutes=11)

# a batch before the first one of the window may have been finished just before it
_GAPS = """
SELECT before, started_at, finished_at FROM (
  SELECT started_at, finished_at, COALESCE(lag(finished_at) OVER (ORDER BY batch_id), {start}) AS before,
         COALESCE(lag(interval_seconds) OVER (ORDER BY batch_id), interval_seconds) AS seconds
  FROM batches WHERE {kind} AND finished_at BETWEEN {start} AND {end}
) b
WHERE arrow_cast(started_at, 'Int64') - arrow_cast(before, 'Int64') > {intervals} * 1000000 * seconds ORDER BY finished_at
"""
_SAMPLES = "phase_ms['write_lag'] IS NOT NULL"
_OF_JOB = "(phase_ms['read'] IS NOT NULL OR phase_ms['plan'] IS NOT NULL)"


class Gap(NamedTuple):
    """A time without samples, from the end of one batch to the start of the next one, which was `finished` later."""

    start: datetime
    end: datetime
    finished: datetime


def gaps_of_samples(query: Callable[[str], pa.Table], start: datetime, end: datetime) -> list[Gap]:
    """The gaps between samples of end offsets, in the order of time; none where the job has declared no interval."""
    return _gaps(query, _SAMPLES, start, end)


def gaps_of_batches(query: Callable[[str], pa.Table], start: datetime, end: datetime) -> list[Gap]:
    """The gaps in which the job has neither read the log nor sampled."""
    return _gaps(query, _OF_JOB, start, end)


def _gaps(query: Callable[[str], pa.Table], kind: str, start: datetime, end: datetime) -> list[Gap]:
    times = {"start": timestamp_literal(start), "end": timestamp_literal(end)}
    rows = query(_GAPS.format(kind=kind, intervals=INTERVALS, **times)).to_pylist()
    return [Gap(row["before"], row["started_at"], row["finished_at"]) for row in rows]


def with_unsampled(points: Sequence[Row], gaps: Sequence[Gap]) -> list[Row]:
    """Points of lag in the order of time, with an empty one at the start of each gap.

    Until the start a value that was not stored again did not change, and its age grew.
    """
    found: list[Row] = []
    left = list(gaps)
    for point in points:
        while left and left[0].start < point["at"]:
            gap = left.pop(0)
            if found and found[-1]["at"] < gap.start:
                if gap.start - found[-1]["at"] <= _LONGEST_RUN:
                    found.append(_unchanged(found[-1], gap.start))
                found.append({**dict.fromkeys(point), "at": gap.start})
        found.append(point)
    return found


def _unchanged(point: Row, at: datetime) -> Row:
    """The same values at a later time."""
    later = {**point, "at": at}
    if point.get("lag"):
        elapsed = (at - point["at"]).total_seconds()
        for name in ("lag_seconds", "lag_seconds_low", "lag_seconds_high"):
            if point.get(name) is not None:
                later[name] = point[name] + elapsed
    return later


def without_unread(rates: Sequence[Row], name: str, gaps: Sequence[Gap]) -> list[Row]:
    """Rates by bucket, unknown for the buckets that overlap a gap: the batch after it has its commits as one number."""
    width = rates[1]["at"] - rates[0]["at"] if len(rates) > 1 else timedelta(0)
    return [
        {**row, name: None} if any(gap.start < row["at"] + width and row["at"] <= gap.finished for gap in gaps) else row
        for row in rates
    ]
