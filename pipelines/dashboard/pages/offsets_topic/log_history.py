"""The topic of committed offsets as the job read it: records by log partition, groups that write, quarantine, batches."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from pipelines.dashboard.history.span import Span
from pipelines.dashboard.state.moment import Moment
from pipelines.tables.store import literal, timestamp_literal

Row = dict[str, Any]
#: Completion of a batch, and its next offsets by log partition.
Position = tuple[datetime, Mapping[int, int]]

#: Points of a series: the newest batch of each interval.
BUCKETS = 60
#: Newest rows of the quarantine and of the batches.
MOST_QUARANTINED = 100
MOST_BATCHES = 20
MOST_WRITERS = 20
#: Longest span in which commits are counted by group: the history has a row per partition and batch.
LONGEST_COUNT = timedelta(hours=24)
#: Time in which the newest maintenance is looked for.
MAINTENANCE_SPAN = timedelta(days=30)

# `next_offsets` of every batch is too much to read for a month of batches
_POSITIONS = """
SELECT finished_at AS at, next_offsets FROM batches WHERE batch_id IN (
  SELECT max(batch_id) FROM batches WHERE finished_at BETWEEN {before} AND {end}
  GROUP BY ceil((date_part('epoch', finished_at) - {end_seconds}) / {width})
) ORDER BY batch_id
"""
_WRITERS = """
SELECT group_id, min(log_partition) AS log_partition, sum(commits) AS commits, count(DISTINCT topic) AS topics,
       max(record_timestamp) AS last_at
FROM offset_history
WHERE change IN ('commit', 'rewind') AND batch_id > {first} AND record_timestamp BETWEEN {start} AND {end}
GROUP BY group_id ORDER BY commits DESC, group_id LIMIT {most}
"""
_FIRST_READ = (
    "SELECT min(batch_id) AS batch_id, min(COALESCE(log_read_until, finished_at)) AS at FROM batches WHERE records_read > 0"
)
_QUARANTINE = """
SELECT q.reason, {log_topic} AS log_topic, q.log_partition, q.log_offset, q.record_timestamp, q.key, q.value, q.batch_id
FROM quarantine q
ORDER BY q.batch_id DESC, q.log_partition, q.log_offset DESC LIMIT {most}
"""
_QUARANTINED = "SELECT count(*) AS rows FROM quarantine"
_BATCHES = """
SELECT batch_id, started_at, finished_at, records_read, records_kept, phase_ms FROM batches
WHERE batch_id > {newest} - {most} ORDER BY batch_id DESC
"""
#: The last batch of a maintenance has the phase `age`; a part of one that the job has not completed compacts, and reads no log.
_MAINTENANCE = """
SELECT max(CASE WHEN phase_ms['age'] IS NOT NULL THEN finished_at END) AS completed_at, max(finished_at) AS at
FROM batches WHERE finished_at >= {since} AND phase_ms['compact'] IS NOT NULL
  AND phase_ms['read'] IS NULL AND phase_ms['plan'] IS NULL
"""


class LogQueries:
    """The history of the log that the job reads, in a span."""

    def __init__(self, moment: Moment, span: Span) -> None:
        self._moment = moment
        self._span = span

    def positions(self) -> list[Position]:
        """Next offsets by log partition, at the newest batch of each interval; the first one may be before the span."""
        width = self._span.seconds / BUCKETS
        rows = self._rows(
            _POSITIONS,
            before=timestamp_literal(self._span.start - timedelta(seconds=width)),
            end=timestamp_literal(self._end),
            end_seconds=repr(self._end.timestamp()),
            width=repr(width),
        )
        return spaced([(row["at"], dict(row["next_offsets"])) for row in rows], width / 2)

    def writers(self) -> tuple[list[Row], float]:
        """Groups with the most commits, and the seconds in which they are counted: not before the first batch has read the log.

        What the first batch read was committed in an unknown time, and the broker had compacted it.
        """
        (first,) = self._rows(_FIRST_READ)
        if first["at"] is None:
            return [], 0.0
        end = min(self._span.end, self._moment.commits_read_until)
        start = max(first["at"], end - min(timedelta(seconds=self._span.seconds), LONGEST_COUNT))
        seconds = (end - start).total_seconds()
        if seconds <= 0:
            return [], 0.0
        rows = self._rows(
            _WRITERS,
            first=literal(first["batch_id"]),
            start=timestamp_literal(start),
            end=timestamp_literal(end),
            most=literal(MOST_WRITERS),
        )
        return [{**row, "commits_per_second": row["commits"] / seconds} for row in rows], seconds

    def quarantine(self) -> tuple[list[Row], int]:
        """The newest records that could not be decoded, and the number of all. JSON has no bytes: key and value are in hex.

        They may have names of any group, so a viewer with a limited role does not see them.
        """
        number: int = self._moment.query(_QUARANTINED)["rows"][0].as_py()
        # a column of the layout that added transactions
        log_topic = "q.log_topic" if self._moment.batch.has_transactions else "CAST(NULL AS STRING)"
        rows = self._rows(_QUARANTINE, most=literal(MOST_QUARANTINED), log_topic=log_topic) if number else []
        shown = (lambda _: None) if self._moment.is_limited else _hex
        return [{**row, "key": shown(row["key"]), "value": shown(row["value"])} for row in rows], number

    def batches(self) -> list[Row]:
        """The newest batches, with the duration of their phases in ms."""
        rows = self._rows(_BATCHES, newest=literal(self._moment.batch.batch_id), most=literal(MOST_BATCHES))
        return [
            {
                **row,
                "seconds": (row["finished_at"] - row["started_at"]).total_seconds(),
                "phase_ms": {name: ms for name, ms in row["phase_ms"] or [] if ms is not None},
            }
            for row in rows
        ]

    def maintenance(self) -> tuple[datetime | None, datetime | None]:
        """Completion of the newest maintenance in the time that is looked at, and of a part of a later, incomplete one."""
        since = timestamp_literal(self._span.end - MAINTENANCE_SPAN)
        (row,) = self._rows(_MAINTENANCE, since=since)
        completed_at, at = row["completed_at"], row["at"]
        return completed_at, at if at != completed_at else None

    @property
    def _end(self) -> datetime:
        """Batches are complete after the time of the page if it is that of their sample."""
        return max(self._span.end, self._moment.batch.finished_at)

    def _rows(self, sql: str, **values: str) -> list[Row]:
        rows: list[Row] = self._moment.query(sql.format(**values)).to_pylist()
        return rows


def spaced(positions: Sequence[Position], seconds: float) -> list[Position]:
    """The newest position, and earlier ones at a distance of at least `seconds`.

    The sample after a batch follows within a moment, and a rate between the two means nothing.
    """
    found: list[Position] = []
    for position in reversed(positions):
        if not found or (found[-1][0] - position[0]).total_seconds() >= seconds:
            found.append(position)
    return found[::-1]


def read_rates(positions: Sequence[Position]) -> dict[int, list[Row]]:
    """Log partition → records read per second, at the start of the time until the next batch; the last point ends the series.

    A partition begins with the second batch that has it: what was read before the first one is unknown.
    """
    series: dict[int, list[Row]] = {partition: [] for _, offsets in positions for partition in offsets}
    for (at, before), (end, after) in pairwise(positions):
        seconds = (end - at).total_seconds()
        if seconds <= 0:
            continue
        for partition, points in series.items():
            known = partition in before and partition in after
            rate = max(0, after[partition] - before[partition]) / seconds if known else None
            points.append({"at": at, "until": end, "records_per_second": rate})
    return dict(sorted(series.items()))


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
