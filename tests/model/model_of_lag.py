"""Lag of one group and partition, in messages and in time, at the newest sample: the model of `lag_columns`. Times in ms.

Age means the time since the record at the committed offset became readable. It is computed for the instant at which the newest
sample was answered (`sampled_at_ms`), never for the time of a query.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from model_of_logs import CurrentLog, EstimatedSince, current_log, log_ends, readable_since
from model_of_trends import LagTrend

from coordinator_core.health import AppendTime, EndOffsetSample, LagMethod, LagReason, PartitionLag, RecordCount
from coordinator_core.health.record_counts import COUNTED_LAG


class Commit(NamedTuple):
    """A committed offset.

    - `committed_at_ms`: time of the commit on the coordinator; None if the record has none.
    - `topic_id`: id in the commit (value version 4); None for none.
    - `moved_at_ms`: time of the commit that moved the offset to its value; commits of the same offset do not change it.
    - `pending_offset`: greatest offset that an open transaction holds for the partition.
    """

    offset: int
    committed_at_ms: int | None = None
    topic_id: str | None = None
    moved_at_ms: int | None = None
    pending_offset: int | None = None


class TopicFacts(NamedTuple):
    """Properties of a topic; None for unknown.

    - `transactional`: the topic has had transactions, so it may hold markers.
    - `compacted`: `cleanup.policy` contains `compact`.
    - `retention_ms`: `retention.ms` of a topic whose policy contains `delete`; None also for unlimited.
    - `size_limited`: `retention.bytes` limits the log.
    """

    transactional: bool | None = None
    compacted: bool | None = None
    retention_ms: int | None = None
    size_limited: bool | None = None


@dataclass(frozen=True, slots=True)
class LagRow(PartitionLag):
    """All columns of `lag` of one partition. Those that no rule reads:

    - `data_lag`: data records that are left to read.
    - `lag_seconds`: age of the record at the committed offset; the truth is between `lag_seconds_low` and `lag_seconds_high`.
    - `blocked_by_transaction`: an open transaction ends what a consumer with read_committed can read, and no data record is left
      before it, only markers and aborted records. None if the records between position and last stable offset are not counted.
    - `stuck_seconds`: time without a new position although there was a record to read; a lower bound.
    - `slope_window_seconds`, `consume_rate`: see `LagTrend`.
    - `drain_seconds`: lag divided by the rate at which it shrinks.
    """

    group_offset: int | None = None
    latest_offset: int | None = None
    earliest_offset: int | None = None
    data_lag: int | None = None
    lag_seconds: float | None = None
    blocked_by_transaction: bool | None = None
    stuck_seconds: float | None = None
    drain_seconds: float | None = None
    slope_window_seconds: float | None = None
    consume_rate: float | None = None


#: A topic without known properties.
NO_FACTS = TopicFacts()
#: A time after all samples.
AFTER_ALL_MS = 2**62


def partition_lag(
    commit: Commit | None,
    samples: Sequence[EndOffsetSample],
    facts: TopicFacts = NO_FACTS,
    *,
    counted: RecordCount | None = None,
    append_time: AppendTime | None = None,
    trend: LagTrend | None = None,
    without_samples: LagReason = LagReason.NO_SAMPLE,
    read_until_ms: int | None = AFTER_ALL_MS,
) -> LagRow:
    """Lag at the newest of `samples` (one topic partition, oldest first), whose end was read after the commit.

    All commits before `read_until_ms` are counted; None if that time is unknown.
    `without_samples` is the reason if there are no samples.
    """
    if not samples:
        return LagRow(group_offset=None if commit is None else commit.offset, lag_reason=without_samples)
    newest = samples[-1]
    position = _Position(newest, None if commit is None else commit.offset)
    if commit is None or newest.log_end is None:
        reason = LagReason.NO_COMMIT if commit is None and newest.reason is None else newest.reason
        return position.without_time(reason)
    log = current_log(samples)
    foreign = _other_log(commit, newest, log)
    if foreign is not None:
        return position.without_time(foreign)
    return _Measured(commit, newest, newest.log_end, log, facts, counted, append_time, trend, read_until_ms).lag()


class _Position(NamedTuple):
    newest: EndOffsetSample
    group_offset: int | None

    def without_time(self, reason: str | None) -> LagRow:
        """Offsets and lag only, as Kafka's tool prints them."""
        end = self.newest.log_end
        return LagRow(
            group_offset=self.group_offset,
            latest_offset=end,
            earliest_offset=self.newest.log_start,
            lag=None if end is None or self.group_offset is None or self.group_offset < 0 else end - self.group_offset,
            lag_reason=reason,
            sampled_at_ms=self.newest.answered_at_ms,
        )


def _other_log(commit: Commit, newest: EndOffsetSample, log: CurrentLog) -> LagReason | None:
    """Reason why the commit does not belong to the sampled log."""
    assert newest.log_end is not None
    if commit.offset < 0:
        return LagReason.NEGATIVE_COMMIT
    if commit.topic_id is not None and newest.topic_id is not None:
        if commit.topic_id != newest.topic_id:
            return LagReason.OTHER_INCARNATION
    elif log.recreated and commit.committed_at_ms is not None and commit.committed_at_ms < log.samples[0].asked_at_ms:
        return LagReason.OTHER_INCARNATION
    if commit.offset <= newest.log_end:
        return None
    return LagReason.TRUNCATED if _precedes_truncation(commit, log) else LagReason.COMMIT_BEYOND_END


def _precedes_truncation(commit: Commit, log: CurrentLog) -> bool:
    """True for a commit of records that a truncation removed."""
    cut = log.truncation
    if cut is None or cut.log_end is None or commit.offset <= cut.log_end:
        return False
    return commit.committed_at_ms is None or commit.committed_at_ms < cut.asked_at_ms


class _Measured(NamedTuple):
    """A commit at or below the end of its own log."""

    commit: Commit
    newest: EndOffsetSample
    log_end: int
    log: CurrentLog
    facts: TopicFacts
    counted: RecordCount | None
    append_time: AppendTime | None
    trend: LagTrend | None
    read_until_ms: int | None

    def lag(self) -> LagRow:
        since = readable_since(log_ends(self.log.samples), self.position)
        age = self._age(since)
        trend = self.trend
        return LagRow(
            group_offset=self.commit.offset,
            latest_offset=self.log_end,
            earliest_offset=self.newest.log_start,
            lag=self.offsets,
            data_lag=self._data_lag(),
            lag_seconds=age.seconds,
            lag_seconds_low=age.low,
            lag_seconds_high=age.high,
            lag_method=age.method,
            lag_reason=next((reason for reason, applies in _REASONS if applies(self, age)), None),
            messages_lost=self.lost,
            blocked_by_transaction=self.blocked,
            lag_slope_per_second=None if trend is None else trend.slope,
            stuck_seconds=self._stuck(since, age),
            drain_seconds=self._drain(),
            retention_margin_seconds=self._retention_margin(age),
            sampled_at_ms=self.now_ms,
            slope_window_seconds=None if trend is None else trend.window_seconds,
            produce_rate=None if trend is None else trend.produce_rate,
            consume_rate=None if trend is None else trend.consume_rate,
            falls_behind_since_ms=None if trend is None or trend.falls_behind is None else trend.falls_behind.at_ms,
            falls_behind_since_is_latest=None if trend is None or trend.falls_behind is None else trend.falls_behind.is_latest,
        )

    @property
    def now_ms(self) -> int:
        return self.newest.answered_at_ms

    @property
    def offsets(self) -> int:
        return self.log_end - self.commit.offset

    @property
    def lost(self) -> int | None:
        """Offsets that were deleted before commits that are counted; None where later commits may have covered them."""
        if self.newest.log_start is None:
            return None
        if not self.is_deleted:
            return 0
        before = [
            sample.log_start
            for sample in self.log.samples
            if sample.log_start is not None and self.read_until_ms is not None and sample.answered_at_ms <= self.read_until_ms
        ]
        pending = self.commit.offset if self.commit.pending_offset is None else self.commit.pending_offset
        proven = min(before[-1], self.newest.log_start) - max(self.commit.offset, pending) if before else 0
        return proven if proven > 0 else None

    @property
    def is_deleted(self) -> bool:
        """True if the log starts after the committed offset."""
        return self.newest.log_start is not None and self.newest.log_start > self.commit.offset

    @property
    def blocked(self) -> bool | None:
        stable = self.newest.last_stable
        if self.offsets == 0:
            return False
        if stable is None:
            return None
        if stable >= self.log_end:
            return False
        if stable <= self.commit.offset:
            return True
        if self.counted is None or self.counted.from_offset != self.commit.offset:
            return None
        first = self.counted.first_offset
        if first is not None and first < stable:
            return False
        return True if self.counted.to_offset >= stable else None

    @property
    def position(self) -> int:
        """Offset of the next data record, as far as a count after the committed offset shows it; at most the log end."""
        if self.counted is None or self.counted.from_offset != self.commit.offset:
            return self.commit.offset
        first = self.counted.first_offset
        return min(self.counted.to_offset if first is None else first, self.log_end)

    def _data_lag(self) -> int | None:
        if self.offsets == 0:
            return 0
        if self.counted is not None and self.counted[:2] == (self.commit.offset, self.log_end):
            return self.counted.records
        if self.facts.transactional is False and self.facts.compacted is False and self.newest.log_start is not None:
            return self.log_end - max(self.commit.offset, self.newest.log_start)
        return None

    def _age(self, since: EstimatedSince | None) -> "_Age":
        if since is None:
            return _Age(LagMethod.EXACT, 0.0, 0.0, (self.now_ms - self.newest.asked_at_ms) / 1000)
        low = (self.now_ms - since.by_ms) / 1000
        if self.append_time is not None and self.append_time.offset == self.position:
            start = self.append_time.from_ms if since.after_ms is None else max(since.after_ms, self.append_time.from_ms)
            end = min(since.by_ms, self.append_time.until_ms)
            # an empty intersection shows that the clocks of broker and job differ: the samples alone count
            if start <= end:
                middle = (start + end) / 2
                return _Age(LagMethod.EXACT, *((self.now_ms - ms) / 1000 for ms in (middle, end, start)))
        if since.after_ms is not None and since.estimate_ms is not None:
            high = (self.now_ms - since.after_ms) / 1000
            return _Age(LagMethod.INTERPOLATED, (self.now_ms - since.estimate_ms) / 1000, low, high)
        return _Age(LagMethod.LOWER_BOUND, low, low, None) if low > 0 else _Age(LagMethod.NONE, None, None, None)

    @property
    def stands_still(self) -> bool:
        """True if records wait and the position has not changed since the start of the window of the trend."""
        return self.trend is not None and self.trend.consume_rate == 0 and self.position < self.log_end

    def _stuck(self, since: EstimatedSince | None, age: "_Age") -> float | None:
        if since is None:
            return 0.0
        if self.commit.moved_at_ms is None or age.seconds is None:
            return None
        return max(0, self.now_ms - max(self.commit.moved_at_ms, since.by_ms)) / 1000

    def _drain(self) -> float | None:
        """None unless the lag shrinks."""
        if self.offsets == 0:
            return 0.0
        return None if self.trend is None or self.trend.slope >= 0 else self.offsets / -self.trend.slope

    def _retention_margin(self, age: "_Age") -> float | None:
        """The lesser of two estimates: `retention.ms`, and the age that the log's first record has now.

        The second one needs a log start that moved, to a record appended after the first sample: only then is the first record
        as old as the log lets records become, and its age known.
        """
        if self.offsets == 0:
            return None
        if self.lost:
            return 0.0
        if self.is_deleted:
            return None
        estimates = []
        if self.facts.retention_ms is not None:
            retention = self.facts.retention_ms / 1000
            if age.high is not None:
                estimates.append(retention - age.high)
            elif age.low is not None and age.low >= retention:
                estimates.append(0.0)
        oldest = self._age_of_log_start()
        moved_by_requests = self.facts.size_limited is False and self.facts.retention_ms is not None
        if oldest is not None and age.high is not None and not moved_by_requests:
            estimates.append(oldest - age.high)
        return max(0.0, min(estimates)) if estimates else None

    def _age_of_log_start(self) -> float | None:
        """Least age of the first record, if a sample of this log had an earlier log start, and another one no such record."""
        starts = [sample.log_start for sample in self.log.samples if sample.log_start is not None]
        if self.newest.log_start is None or starts[0] >= self.newest.log_start:
            return None
        since = readable_since(log_ends(self.log.samples), self.newest.log_start)
        return None if since is None or since.after_ms is None else (self.now_ms - since.by_ms) / 1000


class _Age(NamedTuple):
    method: LagMethod
    seconds: float | None
    low: float | None
    high: float | None


#: The first reason that applies.
_REASONS: tuple[tuple[LagReason, Callable[[_Measured, _Age], bool]], ...] = (
    (LagReason.FIRST_SAMPLE, lambda _, age: age.method is LagMethod.NONE),
    (LagReason.RECORDS_LOST, lambda m, _: bool(m.lost)),
    (LagReason.LOSS_UNKNOWN, lambda m, _: m.is_deleted and m.lost is None),
    (LagReason.OPEN_TRANSACTION, lambda m, _: m.blocked is True),
    (LagReason.BEFORE_FIRST_SAMPLE, lambda _, age: age.method is LagMethod.LOWER_BOUND),
    (LagReason.ONLY_MARKERS, lambda m, _: m.offsets > 0 and m.position == m.log_end),
    (LagReason.TRUNCATED, lambda m, _: _precedes_truncation(m.commit, m.log)),
    (LagReason.COMPACTED, lambda m, _: m.offsets > 0 and m.facts.compacted is True),
    (LagReason.STOPPED, lambda m, _: m.stands_still),
)


def count_is_due(
    lag: int | None, unchanged_samples: int, counted: RecordCount | None, group_offset: int, latest_offset: int
) -> bool:
    """True if the data records between commit and end should be counted once by a Fetch.

    The lag is small and unchanged for two samples, and no count of this range exists: markers and aborted records may be all
    that is left.
    """
    if lag is None or not 0 < lag <= COUNTED_LAG or unchanged_samples < 2:
        return False
    return counted is None or (counted.from_offset, counted.to_offset) != (group_offset, latest_offset)
