"""Lag and health of consumer groups: end offset samples, lag in messages and in time, status rules. Pure; times in ms."""

from coordinator_core.health.burrow_columns import WindowColumns, burrow_rule_numbers
from coordinator_core.health.burrow_rules import (
    BURROW_RULES,
    FORMER_NAMES,
    BurrowRule,
    CommitPoint,
    CommitWindow,
)
from coordinator_core.health.end_offsets import EndOffsetSample
from coordinator_core.health.finding_causes import EXPLANATIONS, Explanation, Incident, incidents
from coordinator_core.health.finding_text import lag_reason, rule_label, rule_word, text_of
from coordinator_core.health.group_events import CommitEvent, MembershipEvent, PendingCommit, present_membership
from coordinator_core.health.group_evidence import GroupEvidence, PartitionEvidence, PartitionOwner
from coordinator_core.health.group_facts import Fact, FactKind
from coordinator_core.health.group_rules import GROUP_RULES, Cause, GroupRule
from coordinator_core.health.group_status import (
    DEFAULT_SETTINGS,
    GroupStatus,
    PartitionStatus,
    evaluate,
    ok_finding,
)
from coordinator_core.health.hot_partitions import HotColumns, HotPartition, hot_columns, lags_behind_others
from coordinator_core.health.lag_columns import LAG_SCHEMA, lag_columns
from coordinator_core.health.lag_input_columns import CommitColumns, FactColumns
from coordinator_core.health.offset_jumps import JumpedBy, OffsetJump, offset_jumps
from coordinator_core.health.offset_syncs import OffsetSync, without_syncs
from coordinator_core.health.open_transactions import (
    FirstRecord,
    KnownTransaction,
    OpenTransaction,
    ReadableSince,
    StartMethod,
    hangs,
    open_transaction,
)
from coordinator_core.health.partition_lag import LagMethod, LagReason, PartitionLag
from coordinator_core.health.recent_points import RecentPoints
from coordinator_core.health.record_counts import RecordCount
from coordinator_core.health.retention_columns import kept_samples, kept_times
from coordinator_core.health.sample_columns import NONE, SampleColumns
from coordinator_core.health.sample_retention import DEFAULT_KEEP, KeepRule, keep_rules
from coordinator_core.health.sample_tables import END_OFFSETS_SCHEMA, SampledPartitions, samples_table
from coordinator_core.health.sampled_ends import SampledEnds
from coordinator_core.health.status import BURROW_NUMBERS, Finding, Status, StatusSettings
from coordinator_core.health.timestamp_search import AppendTime, TimestampSearch
from coordinator_core.health.trend_columns import trend_columns
from coordinator_core.health.trend_points import GrowthStarts, PointColumns, TrendColumns
from coordinator_core.health.unconsumed import GroupSubscription, Unconsumed, UnconsumedTopic

__all__ = [
    "BURROW_NUMBERS",
    "BURROW_RULES",
    "DEFAULT_KEEP",
    "DEFAULT_SETTINGS",
    "END_OFFSETS_SCHEMA",
    "EXPLANATIONS",
    "FORMER_NAMES",
    "GROUP_RULES",
    "LAG_SCHEMA",
    "NONE",
    "AppendTime",
    "BurrowRule",
    "Cause",
    "CommitColumns",
    "CommitEvent",
    "CommitPoint",
    "CommitWindow",
    "EndOffsetSample",
    "Explanation",
    "Fact",
    "FactColumns",
    "FactKind",
    "Finding",
    "FirstRecord",
    "GroupEvidence",
    "GroupRule",
    "GroupStatus",
    "GroupSubscription",
    "GrowthStarts",
    "HotColumns",
    "HotPartition",
    "Incident",
    "JumpedBy",
    "KeepRule",
    "KnownTransaction",
    "LagMethod",
    "LagReason",
    "MembershipEvent",
    "OffsetJump",
    "OffsetSync",
    "OpenTransaction",
    "PartitionEvidence",
    "PartitionLag",
    "PartitionOwner",
    "PartitionStatus",
    "PendingCommit",
    "PointColumns",
    "ReadableSince",
    "RecentPoints",
    "RecordCount",
    "SampleColumns",
    "SampledEnds",
    "SampledPartitions",
    "StartMethod",
    "Status",
    "StatusSettings",
    "TimestampSearch",
    "TrendColumns",
    "Unconsumed",
    "UnconsumedTopic",
    "WindowColumns",
    "burrow_rule_numbers",
    "evaluate",
    "hangs",
    "hot_columns",
    "incidents",
    "keep_rules",
    "kept_samples",
    "kept_times",
    "lag_columns",
    "lag_reason",
    "lags_behind_others",
    "offset_jumps",
    "ok_finding",
    "open_transaction",
    "present_membership",
    "rule_label",
    "rule_word",
    "samples_table",
    "text_of",
    "trend_columns",
    "without_syncs",
]
