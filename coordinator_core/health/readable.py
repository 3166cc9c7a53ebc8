"""The time at which a record became readable, from samples of log ends.

If `log_end_i <= offset < log_end_j` for successive samples i and j, the record became readable after the request of i and not
later than the answer of j. This holds for every rate of records, without timestamps of producers, and after compaction.
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_core.health.end_offsets import LogEnd


class ReadableSince(NamedTuple):
    """Bounds of the time at which a record became readable, in ms.

    `after_ms` and `estimate_ms` are None if the record was readable at the first sample.
    """

    after_ms: int | None
    by_ms: int
    estimate_ms: float | None


def readable_since(ends: Sequence[LogEnd], offset: int) -> ReadableSince | None:
    """Bounds for the record at `offset`, from the log ends of one log, oldest first; None if it is not readable yet.

    After a truncation `log_end` may be less than before. The last sample that did not have the record decides.
    """
    without_record = [k for k, end in enumerate(ends) if end.offset <= offset]
    if not without_record:
        return ReadableSince(None, ends[0].answered_at_ms, None) if ends else None
    last = without_record[-1]
    if last + 1 == len(ends):
        return None
    return between(ends[last], ends[last + 1], offset)


def between(before: LogEnd, after: LogEnd, offset: int) -> ReadableSince:
    """Bounds between two successive samples; the estimate assumes a steady rate and takes the middle of the record's share."""
    share = (offset - before.offset + 0.5) / (after.offset - before.offset)
    span = after.answered_at_ms - before.asked_at_ms
    return ReadableSince(before.asked_at_ms, after.answered_at_ms, before.asked_at_ms + span * share)
