"""Statuses of partitions and groups, and the findings that they come from."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition


class Status(StrEnum):
    """Statuses in the order of their severity: Burrow's, with UNKNOWN between OK and WARN."""

    NOTFOUND = "NOTFOUND"
    OK = "OK"
    #: The lag is not known, so the group is not known to be well.
    UNKNOWN = "UNKNOWN"
    WARN = "WARN"
    ERR = "ERR"
    STOP = "STOP"
    STALL = "STALL"
    REWIND = "REWIND"

    @property
    def severity(self) -> int:
        """Position in the order of severity."""
        return _SEVERITY[self]


_SEVERITY: Mapping[Status, int] = MappingProxyType({status: number for number, status in enumerate(Status)})
#: Numbers of Burrow's metrics; it has no UNKNOWN.
BURROW_NUMBERS: Mapping[Status, int] = MappingProxyType(
    {status: number for number, status in enumerate(s for s in Status if s is not Status.UNKNOWN)}
)


class Ownership(StrEnum):
    """Whether a member owned the partition of a finding."""

    MEMBER = "member"
    #: The group has members, and none of them owns the partition.
    UNOWNED = "unowned"
    NO_MEMBERS = "no_members"


class Finding(NamedTuple):
    """A rule that fired for a group or one of its partitions.

    - `detail`, `consequence`, `next_step`: sentences of `finding_text`, which are made from the other fields.
    - `window_rows`, `window_seconds`: number and span of the events that the rule looked at; None for a single value.
    - `from_offset`, `to_offset`, `by`: a rewind or reset.
    - `since_ms`: start of the defect; `due_ms`: time of its consequence, such as the deletion of unread records.
    - `transactional_id`, `producer_id`: those of the open transaction that blocks the group.
    - `client_id`, `member_host`, `ownership`: owner of the partition; all None if it is unknown.
    - `amount`, `total`: the number that the sentence names (records that wait or are lost, members, rebalances), and the number
      that it is a part of. `rate`: records per second by which the lag grows.
    - `reason`: why the lag is unknown, what waits for a transaction, or why a number is a lower bound.
    - `caused_by`: rule of the root cause (`finding_causes`); None if the finding is a root cause itself.
    """

    rule: str
    status: Status
    partition: TopicPartition | None = None
    detail: str = ""
    window_rows: int | None = None
    window_seconds: float | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    by: str | None = None
    since_ms: int | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    member_host: str | None = None
    ownership: str | None = None
    amount: int | None = None
    total: int | None = None
    due_ms: int | None = None
    reason: str | None = None
    consequence: str | None = None
    next_step: str | None = None
    caused_by: str | None = None
    producer_id: int | None = None
    rate: float | None = None


class StatusSettings(NamedTuple):
    """Limits of the rules. Those of Burrow have its defaults. Times in ms."""

    #: Commits in the window of a partition (Burrow's `intervals`).
    window_commits: int = 10
    #: Age up to which commits are in the window; the last one always is. Burrow forgets a group after a week (`expire-group`).
    window_ms: int = 86_400_000
    #: Commits closer than this count as one (Burrow's `min-distance`).
    min_distance_ms: int = 0
    #: Share of the window that must be filled (Burrow's `minimum-complete`).
    minimum_complete: float = 0.0
    #: Age of log ends that rule 2 of Burrow looks at (ten polls at its default of 10 s).
    recent_ends_ms: int = 100_000
    #: Lag that counts as caught up (Burrow's `allowed-lag`).
    allowed_lag: int = 0
    #: Silence, or commits of one offset, from which on a partition has stopped or stalled; after fewer than `few_commits` known
    #: commits, whose distance is unknown, silence of `few_commits_silent_ms`.
    least_silence_ms: int = 60_000
    few_commits: int = 3
    few_commits_silent_ms: int = 600_000
    #: Rebalances within the window that make a storm.
    storm_rebalances: int = 5
    storm_window_ms: int = 600_000
    #: Time that a member may have no partitions after a change of the membership.
    idle_member_ms: int = 300_000
    #: Share of the group's lag on one of at least `skew_partitions` partitions, from `skew_lag` messages on.
    skew_share: float = 0.8
    skew_lag: int = 1_000
    skew_partitions: int = 3
    #: A partition of at least `hot_partitions` of a topic is hot if it has at least `hot_rate` records per second,
    #: `hot_ratio` times the median of the partitions, and `hot_deviations` robust standard deviations more than it, in each part
    #: of `hot_ms`.
    hot_partitions: int = 3
    hot_rate: float = 1.0
    hot_ratio: float = 2.0
    hot_deviations: float = 5.0
    hot_ms: int = 600_000
    #: Age of the oldest unread record of a hot partition from which on the group lags there.
    hot_lag_ms: int = 60_000
    #: Time before the expiry of an offset.
    expiry_ms: int = 86_400_000
    #: Time for which a rewind or reset is reported.
    jump_window_ms: int = 3_600_000
    #: A transaction hangs if it is open for longer (`hangs`): the default of `transaction.max.timeout.ms` of brokers.
    transaction_ms: int = 900_000
    #: Share of its time in the log that an unread record has spent.
    retention_share: float = 0.8
    #: Least share of the produced records by which lag grows, and time for which it does so, until a group falls behind.
    falls_behind_share: float = 0.02
    falls_behind_ms: int = 200_000
    #: Traffic of more than this multiple of the minutes before is a burst, during which a group may be behind.
    falls_behind_burst: float = 1.3
    #: Time until the deletion of unread records, at the present rates, below which falling behind is an error.
    falls_behind_deletion_ms: int = 21_600_000
    #: Time without commits or samples that a trend does not bridge.
    trend_gap_ms: int = 180_000
    #: Age of the newest sample from which on the lag is unknown.
    stale_sample_ms: int = 600_000
