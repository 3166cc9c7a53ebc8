"""Lag and health of consumer groups: end offset samples, lag in messages and in time, status rules. Pure; times in ms."""

from coordinator_core.lag.end_offsets import EndOffsetSample, LogEnd, log_ends, samples_until
from coordinator_core.lag.incarnations import CurrentLog, Incarnation, IncarnationStart, current_log, incarnations
from coordinator_core.lag.lag_columns import LAG_SCHEMA, CommitColumns, FactColumns, lag_columns
from coordinator_core.lag.lag_inputs import NO_FACTS, Commit, EarlierLag, RecordCount, TopicFacts, count_is_due, window_start
from coordinator_core.lag.partition_lag import LagMethod, LagReason, PartitionLag, partition_lag
from coordinator_core.lag.readable import ReadableSince, readable_since
from coordinator_core.lag.sample_columns import NONE, SampleColumns
from coordinator_core.lag.sample_retention import DEFAULT_KEEP, KeepRule, keep_rules, thin
from coordinator_core.lag.sample_runs import add_sample, fold_runs
from coordinator_core.lag.timestamp_search import AppendTime, TimestampSearch

__all__ = [
    "DEFAULT_KEEP",
    "LAG_SCHEMA",
    "NONE",
    "NO_FACTS",
    "AppendTime",
    "Commit",
    "CommitColumns",
    "CurrentLog",
    "EarlierLag",
    "EndOffsetSample",
    "FactColumns",
    "Incarnation",
    "IncarnationStart",
    "KeepRule",
    "LagMethod",
    "LagReason",
    "LogEnd",
    "PartitionLag",
    "ReadableSince",
    "RecordCount",
    "SampleColumns",
    "TimestampSearch",
    "TopicFacts",
    "add_sample",
    "count_is_due",
    "current_log",
    "fold_runs",
    "incarnations",
    "keep_rules",
    "lag_columns",
    "log_ends",
    "partition_lag",
    "readable_since",
    "samples_until",
    "thin",
    "window_start",
]
