"""Incarnations of a topic partition: spans of samples in which the log only grows at its end.

A recreated topic is a new log under an old name. A truncated log lost its last records in an unclean leader election; the
records below the new end are the same as before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from coordinator_core.health.end_offsets import EndOffsetSample


class IncarnationStart(Enum):
    """Event that begins an incarnation."""

    FIRST_SAMPLE = "first_sample"
    RECREATED = "recreated"
    TRUNCATED = "truncated"


@dataclass(frozen=True, slots=True)
class Incarnation:
    """Successive samples of one log. Failed samples belong to the incarnation before them."""

    start: IncarnationStart
    samples: tuple[EndOffsetSample, ...]


def incarnation_start(before: EndOffsetSample, after: EndOffsetSample) -> IncarnationStart | None:
    """The event between two successful samples; None if the log only grew.

    The topic id decides where both samples have one. Without ids (brokers before 2.8) a log start, log end or leader epoch that
    fell shows a recreated topic, unless the leader epoch rose: epochs begin at 0 in a new topic.
    """
    assert before.log_end is not None
    assert after.log_end is not None
    truncated = IncarnationStart.TRUNCATED if after.log_end < before.log_end else None
    if before.topic_id is not None and after.topic_id is not None:
        return truncated if before.topic_id == after.topic_id else IncarnationStart.RECREATED
    if _fell(before.leader_epoch, after.leader_epoch):
        return IncarnationStart.RECREATED
    if _fell(after.leader_epoch, before.leader_epoch):
        return truncated
    return IncarnationStart.RECREATED if truncated or _fell(before.log_start, after.log_start) else None


def incarnations(samples: Sequence[EndOffsetSample]) -> tuple[Incarnation, ...]:
    """Split the samples of one topic partition, oldest first, at each recreation and truncation."""
    found: list[Incarnation] = []
    start, members = IncarnationStart.FIRST_SAMPLE, list[EndOffsetSample]()
    last: EndOffsetSample | None = None
    for sample in samples:
        if sample.log_end is not None:
            event = None if last is None else incarnation_start(last, sample)
            if event is not None:
                found.append(Incarnation(start, tuple(members)))
                start, members = event, []
            last = sample
        members.append(sample)
    return (*found, Incarnation(start, tuple(members))) if members else ()


@dataclass(frozen=True, slots=True)
class CurrentLog:
    """The successful samples since the last recreation, truncations included.

    `recreated` is true if samples of an earlier topic of this name exist; `truncation` is the first sample after the last
    truncation.
    """

    samples: tuple[EndOffsetSample, ...]
    recreated: bool
    truncation: EndOffsetSample | None


def current_log(samples: Sequence[EndOffsetSample]) -> CurrentLog:
    """The newest log under this name. Of the records before a truncation, those below its end are still valid."""
    all_of_them = incarnations(samples)
    first = max((k for k, i in enumerate(all_of_them) if i.start is IncarnationStart.RECREATED), default=0)
    newest = all_of_them[first:]
    truncations = [i.samples[0] for i in newest if i.start is IncarnationStart.TRUNCATED]
    return CurrentLog(
        tuple(sample for incarnation in newest for sample in incarnation.samples if sample.reason is None),
        any(i.start is IncarnationStart.RECREATED for i in newest),
        truncations[-1] if truncations else None,
    )


def _fell(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after < before
