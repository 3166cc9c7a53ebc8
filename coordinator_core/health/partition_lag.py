"""Lag of one group and partition, in messages and in time, at the newest sample. This is the specification of `lag_columns`.

Age means the time since the record at the committed offset became readable. It is computed for the instant at which the newest
sample was answered (`sampled_at_ms`), never for the time of a query.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.health.end_offsets import EndOffsetSample, log_ends
from coordinator_core.health.incarnations import CurrentLog, current_log
from coordinator_core.health.lag_inputs import NO_FACTS, Commit, EarlierLag, RecordCount, TopicFacts
from coordinator_core.health.readable import ReadableSince, readable_since
from coordinator_core.health.timestamp_search import AppendTime


class LagMethod(StrEnum):
    """Origin of `lag_seconds`."""

    #: Caught up, or the append time of the record is known.
    EXACT = "exact"
    #: Linear between two samples; the truth is between `lag_seconds_low` and `lag_seconds_high`.
    INTERPOLATED = "interpolated"
    #: The record was readable at the oldest sample; the age is at least `lag_seconds`.
    LOWER_BOUND = "lower_bound"
    #: Unknown.
    NONE = "none"


class LagReason(StrEnum):
    """Why values of a row are missing or need care. A failed sample adds its own reason."""

    NO_COMMIT = "no_commit"
    NO_SAMPLE = "no_sample"
    SOURCE_WITHOUT_CLUSTER = "source_without_cluster"
    OTHER_INCARNATION = "other_incarnation"
    TRUNCATED = "truncated"
    COMMIT_BEYOND_END = "commit_beyond_end"
    FIRST_SAMPLE = "first_sample"
    RECORDS_LOST = "records_lost"
    OPEN_TRANSACTION = "open_transaction"
    BEFORE_FIRST_SAMPLE = "before_first_sample"
    ONLY_MARKERS = "only_markers"
    COMPACTED = "compacted"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Lag columns of one partition. Unknown values are None; seconds are finite and never negative.

    - `lag`: log end minus committed offset as `kafka-consumer-groups` prints it, so negative for a commit beyond the end.
    - `data_lag`: data records that are left to read.
    - `lag_seconds`: age of the record at the committed offset; the truth is between `lag_seconds_low` and `lag_seconds_high`.
    - `messages_lost`: offsets that the log deleted before the group read them.
    - `blocked_by_transaction`: a consumer with read_committed cannot pass the open transaction at its position.
    - `stuck_seconds`: time without a new position although there was a record to read; a lower bound.
    - `drain_seconds`: lag divided by the rate at which it shrinks.
    - `retention_margin_seconds`: time until retention deletes the record at the committed offset.
    """

    group_offset: int | None = None
    latest_offset: int | None = None
    earliest_offset: int | None = None
    lag: int | None = None
    data_lag: int | None = None
    lag_seconds: float | None = None
    lag_seconds_low: float | None = None
    lag_seconds_high: float | None = None
    lag_method: LagMethod = LagMethod.NONE
    lag_reason: str | None = None
    messages_lost: int | None = None
    blocked_by_transaction: bool | None = None
    lag_slope_per_second: float | None = None
    stuck_seconds: float | None = None
    drain_seconds: float | None = None
    retention_margin_seconds: float | None = None
    sampled_at_ms: int | None = None


def partition_lag(
    commit: Commit | None,
    samples: Sequence[EndOffsetSample],
    facts: TopicFacts = NO_FACTS,
    *,
    counted: RecordCount | None = None,
    append_time: AppendTime | None = None,
    earlier: EarlierLag | None = None,
    without_samples: LagReason = LagReason.NO_SAMPLE,
) -> PartitionLag:
    """Lag at the newest of `samples` (one topic partition, oldest first), whose end was read after the commit.

    `earlier` starts the window of the slope. `without_samples` is the reason if there are no samples.
    """
    if not samples:
        return PartitionLag(None if commit is None else commit.offset, lag_reason=without_samples)
    newest = samples[-1]
    position = _Position(newest, None if commit is None else commit.offset)
    if commit is None or newest.log_end is None:
        reason = LagReason.NO_COMMIT if commit is None and newest.reason is None else newest.reason
        return position.without_time(reason)
    log = current_log(samples)
    foreign = _other_log(commit, newest, log)
    if foreign is not None:
        return position.without_time(foreign)
    return _Measured(commit, newest, newest.log_end, log, facts, counted, append_time, earlier).lag()


class _Position(NamedTuple):
    newest: EndOffsetSample
    group_offset: int | None

    def without_time(self, reason: str | None) -> PartitionLag:
        """Offsets and lag only, as Kafka's tool prints them."""
        end = self.newest.log_end
        return PartitionLag(
            group_offset=self.group_offset,
            latest_offset=end,
            earliest_offset=self.newest.log_start,
            lag=None if end is None or self.group_offset is None else end - self.group_offset,
            lag_reason=reason,
            sampled_at_ms=self.newest.answered_at_ms,
        )


def _other_log(commit: Commit, newest: EndOffsetSample, log: CurrentLog) -> LagReason | None:
    """Reason why the commit does not belong to the sampled log."""
    assert newest.log_end is not None
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
    earlier: EarlierLag | None

    def lag(self) -> PartitionLag:
        since = readable_since(log_ends(self.log.samples), self.position)
        age = self._age(since)
        slope = self._slope()
        return PartitionLag(
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
            lag_slope_per_second=slope,
            stuck_seconds=self._stuck(since, age),
            drain_seconds=self._drain(slope),
            retention_margin_seconds=self._retention_margin(age),
            sampled_at_ms=self.now_ms,
        )

    @property
    def now_ms(self) -> int:
        return self.newest.answered_at_ms

    @property
    def offsets(self) -> int:
        return self.log_end - self.commit.offset

    @property
    def lost(self) -> int | None:
        return None if self.newest.log_start is None else max(0, self.newest.log_start - self.commit.offset)

    @property
    def blocked(self) -> bool | None:
        if self.offsets == 0:
            return False
        return None if self.newest.last_stable is None else self.newest.last_stable <= self.commit.offset

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

    def _age(self, since: ReadableSince | None) -> "_Age":
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
    def window(self) -> EarlierLag | None:
        """The start of the window of the slope, if it belongs to the same log."""
        if self.earlier is None or not self.log.samples[0].asked_at_ms <= self.earlier.sampled_at_ms < self.now_ms:
            return None
        return self.earlier

    @property
    def stands_still(self) -> bool:
        """True if records wait and the position has not changed since the start of the window."""
        unmoved = self.window is not None and self.window.group_offset == self.commit.offset
        return unmoved and self.position < self.log_end

    def _slope(self) -> float | None:
        if self.window is None:
            return None
        return (self.offsets - self.window.lag) * 1000 / (self.now_ms - self.window.sampled_at_ms)

    def _stuck(self, since: ReadableSince | None, age: "_Age") -> float | None:
        if since is None:
            return 0.0
        if self.commit.moved_at_ms is None or age.seconds is None:
            return None
        return max(0, self.now_ms - max(self.commit.moved_at_ms, since.by_ms)) / 1000

    def _drain(self, slope: float | None) -> float | None:
        """None unless the lag shrank in the window, and so by at least one message."""
        if self.offsets == 0:
            return 0.0
        return None if slope is None or slope >= 0 else self.offsets / -slope

    def _retention_margin(self, age: "_Age") -> float | None:
        """The lesser of two estimates: `retention.ms`, and the age that the log's first record has now.

        The second one needs a log start that moved, to a record appended after the first sample: only then is the first record
        as old as the log lets records become, and its age known.
        """
        if self.offsets == 0:
            return None
        if self.lost:
            return 0.0
        estimates = []
        if self.facts.retention_ms is not None:
            retention = self.facts.retention_ms / 1000
            if age.high is not None:
                estimates.append(retention - age.high)
            elif age.low is not None and age.low >= retention:
                estimates.append(0.0)
        oldest = self._age_of_log_start()
        if oldest is not None and age.high is not None:
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
    (LagReason.OPEN_TRANSACTION, lambda m, _: m.blocked is True),
    (LagReason.BEFORE_FIRST_SAMPLE, lambda _, age: age.method is LagMethod.LOWER_BOUND),
    (LagReason.ONLY_MARKERS, lambda m, _: m.offsets > 0 and m.position == m.log_end),
    (LagReason.TRUNCATED, lambda m, _: _precedes_truncation(m.commit, m.log)),
    (LagReason.COMPACTED, lambda m, _: m.offsets > 0 and m.facts.compacted is True),
    (LagReason.STOPPED, lambda m, _: m.stands_still),
)
