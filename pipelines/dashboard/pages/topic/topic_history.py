"""The partitions of one topic: their logs at a moment and over a span, the lag of each group on them, and the topic ids."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import groupby, pairwise
from typing import Any

from coordinator_core.health import (
    END_OFFSETS_SCHEMA,
    HotPartition,
    LagReason,
    SampledPartitions,
    hot_columns,
)
from pipelines.dashboard.history.span import Span
from pipelines.dashboard.state.moment import Moment
from pipelines.lag.settings import settings_of
from pipelines.runtime.errors import RemovedState
from pipelines.tables.store import literal, timestamp_literal

Row = dict[str, Any]

#: A sample of a partition that did not change is at most ten minutes after the one before it.
_BEFORE = timedelta(minutes=10)
#: Buckets of the growth in a span.
_BUCKETS = 120

_ENDS = """
SELECT topic_id, partition, asked_at AS at, log_start, log_end, reason FROM end_offsets
WHERE topic = {topic} AND asked_at BETWEEN {before} AND {end} ORDER BY partition, asked_at
"""
_COMPARED = """
SELECT topic_id, topic, partition, asked_at, answered_at, log_start, log_end, last_stable, leader_epoch, reason FROM end_offsets
WHERE topic = {topic} AND answered_at BETWEEN {compared} AND {end}
"""
_REPLICAS = """
SELECT partition, leader, replicas, in_sync_replicas FROM topic_partitions WHERE topic = {topic} ORDER BY partition
"""
_INCARNATIONS = """
SELECT t.topic_id, t.learned_from, b.finished_at AS first_seen_at, t.batch_id
FROM topic_ids t LEFT JOIN batches b ON b.batch_id = t.batch_id WHERE t.topic = {topic} ORDER BY t.batch_id, t.topic_id
"""
_CELLS = """
SELECT group_id, partition, lag, lag_seconds, lag_seconds_low, lag_seconds_high, lag_method, lag_reason FROM lag
WHERE topic = {topic} ORDER BY group_id, partition
"""
_PAST_CELLS = """
SELECT h.group_id, h.partitions, h.unknown_partitions, h.behind, h.lag_seconds_high FROM (
  SELECT *, row_number() OVER (PARTITION BY group_id, topic ORDER BY batch_id DESC, sampled_at DESC) AS age
  FROM lag_history WHERE topic = {topic} AND sampled_at <= {end}
) h WHERE h.age = 1
"""
#: Reason of samples of a topic that does not exist, and of a partition that it does not have.
_UNKNOWN = "unknown_topic_or_partition"
_ABSENT = {"lag_seconds_low": None, "lag_method": None, "lag_reason": None}


class TopicQueries:
    """The histories of one topic in a span."""

    def __init__(self, moment: Moment, topic: str, span: Span) -> None:
        self._moment = moment
        self._settings = settings_of(moment.batch)
        self._span = span
        self._values = {
            "topic": literal(topic),
            "before": timestamp_literal(span.start - _BEFORE),
            "compared": timestamp_literal(span.end - 2 * (_BEFORE + timedelta(milliseconds=self._settings.hot_ms))),
            "end": timestamp_literal(span.end),
        }

    def logs(self) -> list[Row]:
        """Samples of log start and log end in the span, by partition in the order of time."""
        return self._rows(_ENDS) if "end_offsets" in self._moment.batch.versions else []

    def hot(self) -> dict[int, HotPartition]:
        """The hot partitions at the end of the span, by partition."""
        if "end_offsets" not in self._moment.batch.versions:
            return {}
        rows = self._moment.query(_COMPARED.format(**self._values))
        sampled = SampledPartitions(rows.select(END_OFFSETS_SCHEMA.names))
        newest_ms = int(sampled.columns.answered_at_ms.max(initial=0))
        found = hot_columns(sampled.columns, sampled.topic_of_partition, newest_ms, self._settings)
        return {number: found.hot(row) for row, number in enumerate(sampled.partitions[found.partition].tolist())}

    def replicas(self) -> dict[int, Row]:
        """Leader and replicas by partition; empty for tables without brokers, and once their files are removed."""
        if not self._moment.is_newest or "topic_partitions" not in self._moment.batch.versions:
            return {}
        return {row["partition"]: row for row in self._rows(_REPLICAS)}

    def incarnations(self) -> list[Row]:
        """Topic ids of the name in the order in which the tables first had them; none if the tables of the batch are removed."""
        with suppress(RemovedState):
            return self._rows(_INCARNATIONS)
        return []

    def cells(self) -> list[Row]:
        """Lag and age by group and partition.

        At a past time the partitions that are behind; the history keeps no other ones.
        """
        if self._moment.sampled_at is None:
            return []
        if self._moment.is_newest:
            return self._rows(_CELLS)
        return [
            # the history has the upper bound of the oldest partition only
            {"group_id": row["group_id"], **each, **_ABSENT, "lag_seconds_high": row["lag_seconds_high"]}
            for row in self._rows(_PAST_CELLS)
            for each in sorted(row["behind"], key=lambda each: int(each["partition"]))
        ]

    def _rows(self, sql: str) -> list[Row]:
        rows: list[Row] = self._moment.query(sql.format(**self._values)).to_pylist()
        return rows


def partition_logs(samples: Sequence[Row], span: Span) -> dict[int, Row]:
    """Partition → newest log start and log end, and the growth per second since the first sample of the same topic id.

    A partition that the topic does not have, although it has others, has the reason `unknown_partition`.
    """
    found = {}
    for partition, rows in groupby(samples, lambda row: row["partition"]):
        known = list(rows)
        newest = known[-1]
        same = [row for row in known if row["log_end"] is not None and row["topic_id"] == newest["topic_id"]]
        inside = [row for row in same if row["at"] >= span.start] or same
        seconds = (inside[-1]["at"] - inside[0]["at"]).total_seconds() if inside else 0.0
        found[partition] = {
            "log_start": newest["log_start"],
            "log_end": newest["log_end"],
            "reason": newest["reason"],
            "records_per_second": (inside[-1]["log_end"] - inside[0]["log_end"]) / seconds if seconds else None,
        }
    if any(log["log_end"] is not None for log in found.values()):
        for log in found.values():
            if log["reason"] == _UNKNOWN:
                log["reason"] = LagReason.UNKNOWN_PARTITION
    return found


def growth_series(samples: Sequence[Row], span: Span) -> list[Row]:
    """Records per second that were appended to all partitions, by the start of the interval in which they were.

    An interval without samples is a gap. Growth between the samples of two topic ids is unknown and does not count.
    """
    width = span.seconds / _BUCKETS
    rates: list[float | None] = [None] * _BUCKETS
    for _, rows in groupby(samples, lambda row: (row["partition"], row["topic_id"])):
        grown, covered = [0.0] * _BUCKETS, [0.0] * _BUCKETS
        for before, after in pairwise(row for row in rows if row["log_end"] is not None):
            first, last = ((row["at"] - span.start).total_seconds() / width for row in (before, after))
            _spread(grown, covered, first, last, max(0, after["log_end"] - before["log_end"]))
        for number, (amount, part) in enumerate(zip(grown, covered, strict=True)):
            if part:
                # a bucket that is covered in part has the rate of this part
                rates[number] = (rates[number] or 0.0) + amount / (part * width)
    return [
        {"at": span.start + timedelta(seconds=number * width), "records_per_second": rate} for number, rate in enumerate(rates)
    ]


def _spread(grown: list[float], covered: list[float], first: float, last: float, amount: float) -> None:
    """Add an amount that is spread evenly between two places, counted in buckets, and the parts of the buckets between them."""
    for number in range(max(0, int(first)), min(len(grown) - 1, int(last)) + 1):
        overlap = min(last, number + 1) - max(first, number)
        if overlap > 0:
            grown[number] += amount * overlap / (last - first)
            covered[number] += overlap
