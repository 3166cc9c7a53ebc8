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


class Finding(NamedTuple):
    """A rule that fired for a group or one of its partitions.

    `window_rows` and `window_seconds` are the number and the span of the events that the rule looked at; None for a rule about a
    single value. `from_offset`, `to_offset` and `by` describe a rewind or reset.
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
    #: Rebalances within the window that make a storm.
    storm_rebalances: int = 5
    storm_window_ms: int = 600_000
    #: Time that a member may have no partitions after a change of the membership.
    idle_member_ms: int = 300_000
    #: Share of the group's lag on one of at least `skew_partitions` partitions, from `skew_lag` messages on.
    skew_share: float = 0.8
    skew_lag: int = 1_000
    skew_partitions: int = 3
    #: Time before the expiry of an offset.
    expiry_ms: int = 86_400_000
    #: Time for which a rewind or reset is reported.
    jump_window_ms: int = 3_600_000
    #: Age of an open transaction that is hanging: the default of `transaction.max.timeout.ms` of brokers.
    transaction_ms: int = 900_000
    #: Share of its time in the log that an unread record has spent.
    retention_share: float = 0.8
    #: Age of the newest sample from which on the lag is unknown.
    stale_sample_ms: int = 600_000
