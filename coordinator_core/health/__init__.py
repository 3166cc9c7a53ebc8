"""Lag and health of consumer groups: end offset samples, lag in messages and in time, status rules. Pure; times in ms."""

from coordinator_core.health.burrow_columns import WindowColumns, burrow_rule_numbers
from coordinator_core.health.burrow_rules import BURROW_RULES, BurrowRule, CommitPoint, CommitWindow, burrow_rule, commit_points
from coordinator_core.health.end_offsets import EndOffsetSample, LogEnd, log_ends, samples_until
from coordinator_core.health.group_evidence import GroupEvidence, PartitionEvidence, evidence_at
from coordinator_core.health.group_history import CommitEvent, ExpiryEvent, GroupHistory, MembershipEvent, PendingCommit
from coordinator_core.health.group_rules import GROUP_RULES, Cause, GroupRule
from coordinator_core.health.group_status import DEFAULT_SETTINGS, GroupStatus, PartitionStatus, evaluate, group_status
from coordinator_core.health.incarnations import CurrentLog, Incarnation, IncarnationStart, current_log, incarnations
from coordinator_core.health.lag_columns import LAG_SCHEMA, CommitColumns, FactColumns, lag_columns
from coordinator_core.health.lag_inputs import NO_FACTS, Commit, EarlierLag, RecordCount, TopicFacts, count_is_due, window_start
from coordinator_core.health.offset_jumps import JumpedBy, OffsetJump, offset_jumps
from coordinator_core.health.partition_lag import LagMethod, LagReason, PartitionLag, partition_lag
from coordinator_core.health.readable import ReadableSince, readable_since
from coordinator_core.health.retention_columns import kept_samples, kept_times
from coordinator_core.health.sample_columns import NONE, SampleColumns
from coordinator_core.health.sample_retention import DEFAULT_KEEP, KeepRule, keep_rules, thin
from coordinator_core.health.sample_runs import add_sample, fold_runs
from coordinator_core.health.sample_tables import END_OFFSETS_SCHEMA, SampledPartitions, samples_table
from coordinator_core.health.status import BURROW_NUMBERS, Finding, Status, StatusSettings
from coordinator_core.health.timestamp_search import AppendTime, TimestampSearch

__all__ = [
    "BURROW_NUMBERS",
    "BURROW_RULES",
    "DEFAULT_KEEP",
    "DEFAULT_SETTINGS",
    "END_OFFSETS_SCHEMA",
    "GROUP_RULES",
    "LAG_SCHEMA",
    "NONE",
    "NO_FACTS",
    "AppendTime",
    "BurrowRule",
    "Cause",
    "Commit",
    "CommitColumns",
    "CommitEvent",
    "CommitPoint",
    "CommitWindow",
    "CurrentLog",
    "EarlierLag",
    "EndOffsetSample",
    "ExpiryEvent",
    "FactColumns",
    "Finding",
    "GroupEvidence",
    "GroupHistory",
    "GroupRule",
    "GroupStatus",
    "Incarnation",
    "IncarnationStart",
    "JumpedBy",
    "KeepRule",
    "LagMethod",
    "LagReason",
    "LogEnd",
    "MembershipEvent",
    "OffsetJump",
    "PartitionEvidence",
    "PartitionLag",
    "PartitionStatus",
    "PendingCommit",
    "ReadableSince",
    "RecordCount",
    "SampleColumns",
    "SampledPartitions",
    "Status",
    "StatusSettings",
    "TimestampSearch",
    "TopicFacts",
    "WindowColumns",
    "add_sample",
    "burrow_rule",
    "burrow_rule_numbers",
    "commit_points",
    "count_is_due",
    "current_log",
    "evaluate",
    "evidence_at",
    "fold_runs",
    "group_status",
    "incarnations",
    "keep_rules",
    "kept_samples",
    "kept_times",
    "lag_columns",
    "log_ends",
    "offset_jumps",
    "partition_lag",
    "readable_since",
    "samples_table",
    "samples_until",
    "thin",
    "window_start",
]
