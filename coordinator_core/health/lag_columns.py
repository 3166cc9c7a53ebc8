"""Lag of many groups and partitions, in numpy. Times in ms. docs/lag.md has the rules in words."""

from dataclasses import fields
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import ArrowArray, Int64s, Numbers
from coordinator_core.health.lag_input_columns import CommitColumns, FactColumns
from coordinator_core.health.partition_lag import LagMethod, LagReason
from coordinator_core.health.sample_columns import NONE, CurrentLogs, SampleColumns, readable_columns
from coordinator_core.health.time_limits import LATEST_MS, difference, seconds_left
from coordinator_core.health.trend_points import TrendColumns

_METHODS = tuple(LagMethod)
_REASONS = tuple(LagReason)
_METHOD_CODE = {method: code for code, method in enumerate(_METHODS)}
_REASON_CODE = {reason: code for code, reason in enumerate(_REASONS)}
_NO_REASON = -1


#: Columns of the result, in the order and with the names of the table `lag`.
LAG_SCHEMA = pa.schema(
    {
        "group_offset": pa.int64(),
        "latest_offset": pa.int64(),
        "earliest_offset": pa.int64(),
        "lag": pa.int64(),
        "data_lag": pa.int64(),
        "lag_seconds": pa.float64(),
        "lag_seconds_low": pa.float64(),
        "lag_seconds_high": pa.float64(),
        "lag_method": pa.string(),
        "lag_reason": pa.string(),
        "messages_lost": pa.int64(),
        "blocked_by_transaction": pa.bool_(),
        "lag_slope_per_second": pa.float64(),
        "stuck_seconds": pa.float64(),
        "drain_seconds": pa.float64(),
        "retention_margin_seconds": pa.float64(),
        "sampled_at": pa.timestamp("us", tz="UTC"),
        "slope_window_seconds": pa.float64(),
        "produce_rate": pa.float64(),
        "consume_rate": pa.float64(),
        "falls_behind_since": pa.timestamp("us", tz="UTC"),
        "falls_behind_since_is_latest": pa.bool_(),
        "committed_at": pa.timestamp("us", tz="UTC"),
    }
)


def lag_columns(
    commits: CommitColumns,
    samples: SampleColumns,
    facts: FactColumns | None = None,
    *,
    trend: TrendColumns | None = None,
    without_samples: LagReason = LagReason.NO_SAMPLE,
) -> pa.Table:
    """Lag of every row of `commits`, in its order, with the columns of `LAG_SCHEMA`.

    `facts` has a row per partition of `samples`, `trend` one per commit. `without_samples` is the reason of rows with
    partition -1.
    """
    return _LagRows(commits, samples, facts, trend, without_samples).table()


class _Nullable(NamedTuple):
    """Values with a mark for each that is present."""

    values: Numbers
    present: Numbers

    @classmethod
    def of(cls, values: Int64s) -> Self:
        return cls(values, values != NONE)

    def where(self, condition: Numbers, other: "_Nullable") -> "_Nullable":
        """These values where the condition holds, the other ones elsewhere."""
        return _Nullable(np.where(condition, self.values, other.values), np.where(condition, self.present, other.present))


class _LagRows:
    """All rows; the rows whose commit belongs to the sampled log go to `_MeasuredRows`."""

    def __init__(
        self,
        commits: CommitColumns,
        samples: SampleColumns,
        facts: FactColumns | None,
        trend: TrendColumns | None,
        without_samples: LagReason,
    ) -> None:
        self.commits = commits
        self.trend = TrendColumns.unknown(len(commits.offset)) if trend is None else trend
        self.logs = CurrentLogs(samples)
        partitions = len(samples.starts) - 1
        self.facts = FactColumns.unknown(partitions) if facts is None else facts
        self.log_start_ages = _ages_of_log_starts(self.logs, samples)
        self.reasons = (*_REASONS, *samples.reasons)

        def newest(column: Int64s, unsampled: int = NONE) -> Int64s:
            """The newest value of each row's partition; rows without samples have partition -1, so the value after the last."""
            return np.append(column[samples.newest], unsampled)[commits.partition]

        self.log_end = newest(samples.log_end)
        self.log_start = newest(samples.log_start)
        self.last_stable = newest(samples.last_stable)
        self.asked_at_ms = newest(samples.asked_at_ms)
        self.answered_at_ms = newest(samples.answered_at_ms)
        self.topic_id = newest(samples.topic_id)
        self.failure = newest(samples.reason, _REASON_CODE[without_samples] - len(_REASONS)) + len(_REASONS)
        # NONE is negative as well
        self.has_lag = (commits.offset >= 0) & (self.log_end != NONE)

    def table(self) -> pa.Table:
        """The result as an Arrow table."""
        committed = self.commits.offset
        reason = self._reason_without_time()
        rows = np.flatnonzero(reason == _NO_REASON)
        measured = _MeasuredRows(self, rows)
        columns = {
            "group_offset": _Nullable.of(committed),
            "latest_offset": _Nullable.of(self.log_end),
            "earliest_offset": _Nullable.of(self.log_start),
            "lag": _Nullable(
                difference(np.where(self.has_lag, self.log_end, 0), np.where(self.has_lag, committed, 0)), self.has_lag
            ),
            "sampled_at": _Nullable.of(self.answered_at_ms),
            "committed_at": _Nullable.of(self.commits.column("committed_at_ms")),
        }
        columns |= {name: _scattered(column, rows, len(reason)) for name, column in measured.columns().items()}
        reason[rows] = measured.reason()
        method = np.full(len(reason), _METHOD_CODE[LagMethod.NONE])
        method[rows] = measured.method
        arrays = {name: _arrow(column, LAG_SCHEMA.field(name).type) for name, column in columns.items()}
        arrays["lag_method"] = _names(method, _METHODS)
        arrays["lag_reason"] = _names(reason, self.reasons)
        return pa.Table.from_arrays([arrays[name] for name in LAG_SCHEMA.names], schema=LAG_SCHEMA)

    def _reason_without_time(self) -> Int64s:
        """Reasons of rows that have no time at all; _NO_REASON for the others."""
        commits = self.commits
        failed = self.log_end == NONE
        no_commit = commits.offset == NONE
        committed_at, commit_id = commits.column("committed_at_ms"), commits.column("topic_id")
        with_ids = (commit_id != NONE) & (self.topic_id != NONE)
        recreated = np.append(self.logs.recreated, False)[commits.partition]
        older = recreated & (committed_at != NONE) & (committed_at < self.of_log(self.logs.first, self.logs.asked_at_ms))
        other = np.where(with_ids, commit_id != self.topic_id, older)
        beyond = commits.offset > self.log_end
        return np.select(
            [failed, no_commit, commits.offset < 0, other, beyond & self.precedes_truncation(), beyond],
            [
                self.failure,
                _REASON_CODE[LagReason.NO_COMMIT],
                _REASON_CODE[LagReason.NEGATIVE_COMMIT],
                _REASON_CODE[LagReason.OTHER_INCARNATION],
                _REASON_CODE[LagReason.TRUNCATED],
                _REASON_CODE[LagReason.COMMIT_BEYOND_END],
            ],
            _NO_REASON,
        )

    def of_log(self, row_of_partition: Int64s, column: Int64s) -> Int64s:
        """Values in the given row of each partition's log; NONE for row -1 and rows without samples."""
        rows = np.append(row_of_partition, -1)[self.commits.partition]
        # the first row of a log without successful samples may be after the last row
        values: Int64s = np.append(column, NONE)[np.minimum(rows, len(column))]
        return values

    def precedes_truncation(self) -> Numbers:
        """True for commits of records that a truncation removed."""
        cut_end, cut_at = (self.of_log(self.logs.truncation, column) for column in (self.logs.log_end, self.logs.asked_at_ms))
        committed_at = self.commits.column("committed_at_ms")
        older = (committed_at == NONE) | (committed_at < cut_at)
        precedes: Numbers = (cut_end != NONE) & (self.commits.offset > cut_end) & older
        return precedes


class _MeasuredRows:
    """Rows with a commit at or below the end of its own log: the columns that need more than offsets."""

    def __init__(self, all_rows: _LagRows, rows: Int64s) -> None:
        commits, logs, facts = all_rows.commits, all_rows.logs, all_rows.facts
        partition = commits.partition[rows]
        self.input = {f.name: commits.column(f.name)[rows] for f in fields(commits)}
        self.trend = all_rows.trend.take(rows)
        self.has_trend = ~np.isnan(self.trend.slope)
        self.offset = self.input["offset"]
        self.now, self.asked = all_rows.answered_at_ms[rows], all_rows.asked_at_ms[rows]
        self.log_start, self.log_end = all_rows.log_start[rows], all_rows.log_end[rows]
        self.last_stable = all_rows.last_stable[rows]
        self.lag = difference(self.log_end, self.offset)
        self.behind = self.lag > 0
        self.transactional, self.compacted, self.retention, self.size_limited = facts.of(partition)
        self.lost = self._lost(logs, partition)
        self.deleted = (self.log_start != NONE) & (self.log_start > self.offset)
        self.blocked = self._blocked()
        self.precedes_truncation = all_rows.precedes_truncation()[rows]
        self.position = self._position()
        self.since = readable_columns(logs, partition, self.position)
        ages = all_rows.log_start_ages
        self.log_start_age = _Nullable(ages.values[partition], ages.present[partition])
        self._set_age()

    def columns(self) -> dict[str, _Nullable]:
        """Columns by name, for these rows."""
        no_count = self.input["counted_to"] == NONE
        counted = ~no_count & (self.input["counted_from"] == self.offset) & (self.input["counted_to"] == self.log_end)
        plain = (self.transactional == 0) & (self.compacted == 0) & (self.log_start != NONE)
        uncounted = _Nullable(difference(self.log_end, np.maximum(self.offset, self.log_start)), plain)
        data_lag = _Nullable(self.input["counted_records"], counted).where(counted, uncounted)
        falls_behind_since = _Nullable.of(self.trend.falls_behind.at_ms)
        return {
            "data_lag": _Nullable(np.where(self.behind, data_lag.values, 0), ~self.behind | data_lag.present),
            "lag_seconds": self.age,
            "lag_seconds_low": self.low,
            "lag_seconds_high": self.high,
            "messages_lost": self.lost,
            "blocked_by_transaction": self.blocked,
            "lag_slope_per_second": _Nullable(self.trend.slope, self.has_trend),
            "stuck_seconds": self._stuck(),
            "drain_seconds": self._drain(),
            "retention_margin_seconds": self._retention_margin(),
            "slope_window_seconds": _Nullable(self.trend.window_seconds, self.has_trend),
            "produce_rate": _Nullable(self.trend.produce_rate, self.has_trend),
            "consume_rate": _Nullable(self.trend.consume_rate, self.has_trend),
            "falls_behind_since": falls_behind_since,
            "falls_behind_since_is_latest": _Nullable(self.trend.falls_behind.is_latest, falls_behind_since.present),
        }

    def reason(self) -> Int64s:
        """The first reason that applies."""
        unmoved = self.has_trend & (self.trend.consume_rate == 0)
        reasons = {
            LagReason.FIRST_SAMPLE: self.method == _METHOD_CODE[LagMethod.NONE],
            LagReason.RECORDS_LOST: self.lost.present & (self.lost.values > 0),
            LagReason.LOSS_UNKNOWN: self.deleted & ~self.lost.present,
            LagReason.OPEN_TRANSACTION: self.blocked.present & self.blocked.values,
            LagReason.BEFORE_FIRST_SAMPLE: self.method == _METHOD_CODE[LagMethod.LOWER_BOUND],
            LagReason.ONLY_MARKERS: self.behind & (self.position == self.log_end),
            LagReason.TRUNCATED: self.precedes_truncation,
            LagReason.COMPACTED: self.behind & (self.compacted == 1),
            LagReason.STOPPED: unmoved & (self.position < self.log_end),
        }
        codes: Int64s = np.select(list(reasons.values()), [_REASON_CODE[reason] for reason in reasons], _NO_REASON)
        return codes

    def _lost(self, logs: CurrentLogs, partition: Int64s) -> _Nullable:
        """Offsets that are proven to be deleted before the group read them; not present where the loss is unknown.

        A log start after the committed offset alone proves nothing: commits up to it may not be read yet, or wait for the marker
        of a transaction. Kafka Streams deletes the records of its repartition topics up to the offset that it has just committed
        (KIP-204, `TaskManager.maybePurgeCommittedRecords`). A log start that was sampled before the commits were read proves it.
        """
        lost = np.zeros(len(self.offset), np.int64)
        present = self.log_start != NONE
        rows = np.flatnonzero(present & (self.log_start > self.offset))
        if len(rows):
            proven = logs.log_start_until(partition[rows], self.input["read_until_ms"][rows])
            known_start = np.minimum(proven, self.log_start[rows])
            position = np.maximum(self.offset[rows], self.input["pending_offset"][rows])
            present[rows] = (proven != NONE) & (known_start > position)
            lost[rows] = np.where(present[rows], difference(known_start, position), 0)
        return _Nullable(lost, present)

    def _blocked(self) -> _Nullable:
        """True where nothing but markers and aborted records is left before an open transaction."""
        stable, first, to = self.last_stable, self.input["counted_first"], self.input["counted_to"]
        is_open = self.behind & (stable != NONE) & (stable < self.log_end)
        counted = (to != NONE) & (self.input["counted_from"] == self.offset)
        has_record = counted & (first != NONE) & (first < stable)
        nothing_left = (stable <= self.offset) | (counted & ~has_record & (to >= stable))
        known = ~self.behind | ((stable != NONE) & (~is_open | nothing_left | has_record))
        return _Nullable(is_open & nothing_left, known)

    def _position(self) -> Int64s:
        """Offset of the next data record, as far as a count after the committed offset shows it."""
        first, to = self.input["counted_first"], self.input["counted_to"]
        counted = (to != NONE) & (self.input["counted_from"] == self.offset)
        return np.where(counted, np.minimum(np.where(first == NONE, to, first), self.log_end), self.offset)

    def _set_age(self) -> None:
        """Set `age`, `low`, `high` and `method`."""
        since, now = self.since, self.now
        low = np.where(since.readable, now - since.by_ms, 0)
        high = np.where(since.bracketed, now - since.after_ms, now - self.asked)
        estimate = np.where(since.bracketed, now - since.estimate_ms, np.where(since.readable, low, 0))
        bounded = since.readable & ~since.bracketed
        unknown = bounded & (low <= 0)
        method = np.select(
            [unknown, bounded, since.bracketed],
            [_METHOD_CODE[m] for m in (LagMethod.NONE, LagMethod.LOWER_BOUND, LagMethod.INTERPOLATED)],
            _METHOD_CODE[LagMethod.EXACT],
        )
        begin = np.where(since.bracketed, np.maximum(since.after_ms, self.input["append_from_ms"]), self.input["append_from_ms"])
        end = np.minimum(since.by_ms, self.input["append_until_ms"])
        refined = since.readable & (self.input["append_offset"] == self.position) & (begin <= end)
        begin, end = np.where(refined, begin, now), np.where(refined, end, now)
        age = np.where(refined, now - (begin + end) / 2, estimate) / 1000
        self.method = np.where(refined, _METHOD_CODE[LagMethod.EXACT], method)
        known = refined | ~unknown
        self.age = _Nullable(age, known)
        self.low = _Nullable(np.where(refined, now - end, low) / 1000, known)
        self.high = _Nullable(np.where(refined, now - begin, high) / 1000, refined | ~bounded)

    def _stuck(self) -> _Nullable:
        moved = self.input["moved_at_ms"]
        present = ~self.since.readable | ((moved != NONE) & self.age.present)
        still = difference(self.now, np.maximum(moved, self.since.by_ms))
        return _Nullable(np.where(self.since.readable, np.maximum(0, still), 0) / 1000, present)

    def _drain(self) -> _Nullable:
        slope = self.trend.slope
        shrinks = self.behind & self.has_trend & (slope < 0)
        return _Nullable(np.where(self.behind, self.lag, 0) / np.where(shrinks, -slope, 1), shrinks | ~self.behind)

    def _retention_margin(self) -> _Nullable:
        """The lesser of two estimates: `retention.ms`, and the age that the log's first record has now.

        The second one needs a log start that moved, to a record appended after the first sample: only then is the first record
        as old as the log lets records become, and its age known. If settings are known and no size limits the log, `retention.ms`
        alone counts: a younger log start was moved by requests (DeleteRecords), which says nothing about the records after it.

        A margin is at most the time that is left until the end of the year 9999; that is the one of unlimited retention, for
        records of any age.
        """
        retention, unlimited = self.retention / 1000, self.retention >= LATEST_MS
        overdue = ~self.high.present & self.low.present & (self.low.values >= retention)
        by_setting = np.where(overdue & ~unlimited, 0.0, retention - np.where(self.high.present, self.high.values, 0.0))
        has_setting = unlimited | ((self.retention != NONE) & (self.high.present | overdue))
        by_start = self.log_start_age.values / 1000 - self.high.values
        by_requests = (self.size_limited == 0) & (self.retention != NONE)
        has_start = self.log_start_age.present & self.high.present & ~by_requests
        least = np.minimum(np.where(has_setting, by_setting, np.inf), np.where(has_start, by_start, np.inf))
        is_lost = self.lost.present & (self.lost.values > 0)
        margin = np.where(is_lost, 0.0, np.clip(least, 0.0, seconds_left(self.now)))
        known = is_lost | ((has_setting | has_start) & ~self.deleted)
        return _Nullable(margin, self.behind & known)


def _ages_of_log_starts(logs: CurrentLogs, samples: SampleColumns) -> _Nullable:
    """Least age of the first record of each partition, in ms.

    Present where a sample of its log had an earlier log start, and another one did not have the record.
    """
    log_start = samples.log_start[samples.newest]
    has_start = logs.log_start != NONE
    # the first known log start from each row on
    rows = np.append(np.where(has_start, np.arange(len(has_start)), len(has_start)), len(has_start))
    first_known = np.minimum.accumulate(rows[::-1])[::-1][logs.first]
    oldest = np.append(logs.log_start, NONE)[first_known]
    moved = (log_start != NONE) & (oldest < log_start)
    partition = np.arange(len(log_start))
    since = readable_columns(logs, partition, np.where(moved, log_start, 0))
    return _Nullable(samples.answered_at_ms[samples.newest] - since.by_ms, moved & since.readable & since.bracketed)


def _scattered(column: _Nullable, rows: Int64s, count: int) -> _Nullable:
    values, present = np.zeros(count, column.values.dtype), np.zeros(count, np.bool_)
    values[rows], present[rows] = column.values, column.present
    return _Nullable(values, present)


def _arrow(column: _Nullable, kind: pa.DataType) -> ArrowArray:
    values = column.values * 1000 if pa.types.is_timestamp(kind) else column.values
    return pa.array(values, type=kind, mask=~column.present)


def _names(codes: Int64s, names: tuple[str, ...]) -> ArrowArray:
    indices = pa.array(codes, mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, type=pa.string())).cast(pa.string())
