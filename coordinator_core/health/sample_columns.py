"""End offset samples of many partitions as columns, and the bounds of readable times from them. Times in ms.

If the log end was at or below an offset in one sample and above it in the next, its record became readable after the request of
the first and not later than the answer of the second. This holds for every rate of records, without timestamps of producers, and
after compaction. After a truncation the last sample that did not have the record decides. A missing value is NONE.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import ArrowArray, ArrowColumn, Int64s, Numbers

#: Missing value of an int64 column.
NONE = np.iinfo(np.int64).min


def integers(column: ArrowColumn | ArrowArray) -> Int64s:
    """A column of integers, booleans or times (in µs) as int64, NONE for null."""
    numbers: Int64s = column.cast(pa.int64()).fill_null(NONE).to_numpy()
    return numbers


def nullable(values: Numbers, kind: pa.DataType | None = None) -> ArrowArray:
    """An Arrow array of integers, null for NONE."""
    array = pa.array(values, mask=values == NONE)
    return array if kind is None else array.cast(kind)


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """Samples sorted by partition, oldest first; those of partition p are the rows `starts[p]` to `starts[p + 1]`.

    `topic_id` has numbers chosen by the caller: equal ids have equal numbers, also in `CommitColumns`. `reason` has indices into
    `reasons`. Every partition has at least one sample.
    """

    starts: Int64s
    asked_at_ms: Int64s
    answered_at_ms: Int64s
    log_start: Int64s
    log_end: Int64s
    last_stable: Int64s
    leader_epoch: Int64s
    topic_id: Int64s
    reason: Int64s
    reasons: tuple[str, ...] = ()

    @property
    def newest(self) -> Int64s:
        """The row of the newest sample of each partition."""
        return self.starts[1:] - 1


class CurrentLogs:
    """The samples of each partition since its last recreation, prepared for searches; columns by partition.

    `first` and `stop` bound the rows of a partition's log, in arrays of successful samples; both are equal if there are none.
    """

    def __init__(self, samples: SampleColumns) -> None:
        good = samples.log_end != NONE
        every = bool(good.all())

        def successful(column: Int64s) -> Int64s:
            return column if every else column[good]

        starts = samples.starts if every else np.concatenate([[0], np.cumsum(good)])[samples.starts]
        self.asked_at_ms = successful(samples.asked_at_ms)
        self.answered_at_ms = successful(samples.answered_at_ms)
        self.log_start = successful(samples.log_start)
        self.log_end = successful(samples.log_end)
        self.stop: Int64s = starts[1:]
        events = LogEvents(self.log_start, self.log_end, successful(samples.leader_epoch), successful(samples.topic_id), starts)
        self.first: Int64s = starts[:-1].copy()
        # of several events of a partition the last assignment remains
        self.first[events.recreated_partition] = events.recreated
        self.recreated = self.first != starts[:-1]
        truncation = np.full(len(self.stop), -1)
        truncation[events.truncated_partition] = events.truncated
        #: Row of the first sample after the last truncation of the log; -1 for none.
        self.truncation: Int64s = np.where(truncation >= self.first, truncation, -1)
        self._least_later_end = self.log_end
        shortened = np.flatnonzero(self.truncation >= 0)
        if len(shortened):
            self._least_later_end = self.log_end.copy()
        for p in shortened:
            rows = slice(self.first[p], self.stop[p])
            self._least_later_end[rows] = np.minimum.accumulate(self.log_end[rows][::-1])[::-1]

    def log_start_until(self, partition: Int64s, at_ms: Int64s) -> Int64s:
        """The newest log start of each partition that was answered until a time; NONE without one."""
        low: Int64s = self.first[partition] - 1
        high: Int64s = self.stop[partition] - 1
        first = low + 1
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high + 1) >> 1
            is_until = (low < high) & (self.answered_at_ms[middle] <= at_ms)
            high = np.where(is_until | (low == high), high, middle - 1)
            low = np.where(is_until, middle, low)
        # leaders that answered without a log start show nothing new
        rows = np.arange(len(self.log_start))
        low = np.append(np.maximum.accumulate(np.where(self.log_start == NONE, -1, rows)), -1)[low]
        starts: Int64s = np.append(self.log_start, NONE)
        return np.where(low >= first, starts[low], NONE)

    def last_without(self, partition: Int64s, offset: Int64s) -> Int64s:
        """The last row in which the log of the partition did not have the record; `first - 1` if all rows had it.

        The least of the log ends from a row on never falls, also after truncations, so a binary search finds the row. All
        searches take their steps together.
        """
        low: Int64s = self.first[partition] - 1
        high: Int64s = self.stop[partition] - 1
        if not len(low):
            return low
        for _ in range(int((high - low).max()).bit_length()):
            middle = (low + high + 1) >> 1
            unreadable = (low < high) & (self._least_later_end[middle] <= offset)
            high = np.where(unreadable | (low == high), high, middle - 1)
            low = np.where(unreadable, middle, low)
        return low


@dataclass(frozen=True, slots=True)
class ReadableColumns:
    """Bounds of the times at which records became readable (`ReadableSince`) with an estimate, one row per record.

    `readable` is false for records at or after the log end. `after_ms` is NONE and `estimate_ms` undefined where the record was
    readable at the first sample.
    """

    readable: Numbers
    after_ms: Int64s
    by_ms: Int64s
    estimate_ms: Numbers

    @property
    def bracketed(self) -> Numbers:
        bracketed: Numbers = self.readable & (self.after_ms != NONE)
        return bracketed


def readable_columns(logs: CurrentLogs, partition: Int64s, offset: Int64s) -> ReadableColumns:
    """Bounds for the record at each `offset`; partitions without a successful sample are not readable."""
    before = logs.last_without(partition, offset)
    first, stop = logs.first[partition], logs.stop[partition]
    readable = before + 1 < stop
    after = np.where(readable, before + 1, 0)
    bracketed = readable & (before >= first)
    before = np.where(bracketed, before, 0)
    if not len(logs.log_end):
        none = np.full(len(offset), NONE)
        return ReadableColumns(readable, none, none, none.astype(np.float64))
    asked, answered = logs.asked_at_ms[before], logs.answered_at_ms[after]
    grown = np.where(bracketed, logs.log_end[after] - logs.log_end[before], 1)
    share = (offset - logs.log_end[before] + 0.5) / grown
    estimate = asked + (answered - asked) * share
    return ReadableColumns(readable, np.where(bracketed, asked, NONE), answered, estimate)


class LogEvents:
    """Rows that begin a recreated topic or a truncated log, with their partitions.

    A recreated topic is a new log under an old name. A truncated log lost its last records in an unclean leader election; the
    records below the new end are the same as before. The topic id decides where both samples have one. Without ids (brokers
    before 2.8) a log start, log end or leader epoch that fell shows a recreated topic, unless the leader epoch rose: epochs begin
    at 0 in a new topic.
    """

    def __init__(self, log_start: Int64s, log_end: Int64s, leader_epoch: Int64s, topic_id: Int64s, starts: Int64s) -> None:
        # few rows differ in these ways, and only they are looked at closely; NONE is less than every value
        differs = log_end[1:] < log_end[:-1]
        for column in (log_start, leader_epoch):
            differs |= column[1:] < column[:-1]
        differs |= topic_id[1:] != topic_id[:-1]
        after = np.flatnonzero(differs) + 1
        partition: Int64s = np.searchsorted(starts, after, side="right") - 1
        within = starts[partition] < after
        after, partition = after[within], partition[within]
        before = after - 1
        shorter = log_end[after] < log_end[before]
        with_ids = (topic_id[after] != NONE) & (topic_id[before] != NONE)
        both_epochs = (leader_epoch[after] != NONE) & (leader_epoch[before] != NONE)
        epoch_fell = both_epochs & (leader_epoch[after] < leader_epoch[before])
        epoch_rose = both_epochs & (leader_epoch[after] > leader_epoch[before])
        both_starts = (log_start[after] != NONE) & (log_start[before] != NONE)
        fell = epoch_fell | (~epoch_rose & (shorter | (both_starts & (log_start[after] < log_start[before]))))
        recreated = np.where(with_ids, topic_id[after] != topic_id[before], fell)
        truncated = shorter & ~recreated
        self.recreated, self.recreated_partition = after[recreated], partition[recreated]
        self.truncated, self.truncated_partition = after[truncated], partition[truncated]
