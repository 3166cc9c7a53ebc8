"""Lag of one group and partition as the rules read it: methods, reasons, values.

Age means the time since the record at the committed offset became readable. It is computed for the instant at which the newest
sample was answered (`sampled_at_ms`), never for the time of a query.
"""

from dataclasses import dataclass
from enum import StrEnum

from coordinator_core.health.time_limits import comes, later


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

    CATCHING_UP = "catching_up"
    NO_COMMIT = "no_commit"
    NEGATIVE_COMMIT = "negative_commit"
    NO_SAMPLE = "no_sample"
    SOURCE_WITHOUT_CLUSTER = "source_without_cluster"
    UNKNOWN_PARTITION = "unknown_partition"
    OTHER_INCARNATION = "other_incarnation"
    TRUNCATED = "truncated"
    COMMIT_BEYOND_END = "commit_beyond_end"
    FIRST_SAMPLE = "first_sample"
    RECORDS_LOST = "records_lost"
    LOSS_UNKNOWN = "loss_unknown"
    OPEN_TRANSACTION = "open_transaction"
    BEFORE_FIRST_SAMPLE = "before_first_sample"
    ONLY_MARKERS = "only_markers"
    COMPACTED = "compacted"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The columns of `lag` that rules read, of one partition. Unknown values are None; seconds are finite and never negative.

    - `lag`: log end minus committed offset as `kafka-consumer-groups` prints it, so negative for a commit beyond the end.
      Of a negative commit it is unknown.
    - `lag_seconds_low`, `lag_seconds_high`: bounds of the age of the record at the committed offset.
    - `messages_lost`: offsets that the log deleted before the group read them, as far as a sample proves it.
    - `lag_slope_per_second`, `produce_rate`, `falls_behind_since_ms`: see `TrendColumns`.
    - `falls_behind_since_is_latest`: see `GrowthStarts`; None unless the group falls behind.
    - `retention_margin_seconds`: time until retention deletes the record at the committed offset, until the year 9999 for never.
    """

    lag: int | None = None
    lag_seconds_low: float | None = None
    lag_seconds_high: float | None = None
    lag_method: LagMethod = LagMethod.NONE
    lag_reason: str | None = None
    messages_lost: int | None = None
    lag_slope_per_second: float | None = None
    retention_margin_seconds: float | None = None
    sampled_at_ms: int | None = None
    produce_rate: float | None = None
    falls_behind_since_ms: int | None = None
    falls_behind_since_is_latest: bool | None = None

    @property
    def deletion_seconds(self) -> float | None:
        """Time until retention deletes unread records at the present rates.

        None unless it is known and comes, and the group falls behind.

        Of the records of a second the group leaves a share unread, so its position ages by that share of a second.
        """
        margin, slope, produced = self.retention_margin_seconds, self.lag_slope_per_second, self.produce_rate
        if margin is None or slope is None or produced is None or slope <= 0:
            return None
        seconds = margin * max(1.0, produced / slope)
        return seconds if self.sampled_at_ms is None or comes(later(self.sampled_at_ms, seconds)) else None
