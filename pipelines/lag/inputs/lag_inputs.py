"""Inputs of the lag of groups besides offsets: settings of topics, counts of records, append times."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import NONE, CommitColumns, LagReason, SampledPartitions, TrendColumns, lag_columns
from pipelines.lag.inputs.append_times import NarrowedAges
from pipelines.lag.inputs.counted_records import CountedRecords, ReadableEnds
from pipelines.lag.inputs.open_transactions import ReadFirstRecords
from pipelines.lag.inputs.topic_facts import TopicFactsCache


@dataclass(frozen=True)
class LagInputs:
    """Inputs of a source; None for those that it does not have or that are turned off.

    `without_samples` is the reason of partitions that were never sampled.
    """

    facts: TopicFactsCache | None = None
    counts: CountedRecords | None = None
    append_times: NarrowedAges | None = None
    first_records: ReadFirstRecords | None = None
    without_samples: LagReason = LagReason.NO_SAMPLE

    def begin(self, lag: pa.Table) -> None:
        """Continue with the rows of the table `lag` that an earlier process wrote."""
        if self.counts is not None:
            self.counts.begin(lag)

    def lag(
        self, commits: CommitColumns, positions: pa.Table, samples: SampledPartitions, trend: TrendColumns | None = None
    ) -> pa.Table:
        """The lag of every position, which has its row in `commits` and `trend`."""
        columns = samples.columns
        if not len(columns.answered_at_ms):
            return lag_columns(commits, columns, trend=trend, without_samples=self.without_samples)
        now_ms, facts = int(columns.answered_at_ms.max()), None
        if self.facts is not None:
            self.facts.refresh(samples.topics, now_ms)
            facts = self.facts.columns(samples.topics, samples.topic_of_partition)
        if self.counts is not None:
            commits = replace(commits, **self.counts.columns(positions, ReadableEnds.of(columns, commits.partition), now_ms))
        lag = lag_columns(commits, columns, facts, trend=trend, without_samples=self.without_samples)
        if self.append_times is not None and self.facts is not None:
            topics = [name for name in samples.topics if self.facts.has_append_times(name)]
            narrowed = self.append_times.columns(positions, lag, next_offsets(commits), topics)
            if narrowed:
                commits = replace(commits, **narrowed)
                lag = lag_columns(commits, columns, facts, trend=trend, without_samples=self.without_samples)
        return lag


def next_offsets(commits: CommitColumns) -> Int64s:
    """The offset of the next data record of each row, as far as counts show it; otherwise the committed offset."""
    first, to = commits.column("counted_first"), commits.column("counted_to")
    return np.where(to == NONE, commits.offset, np.where(first == NONE, to, first))
