"""Logs as samples show them, one sample at a time: the model of `sample_columns` and of `retention_columns`. Times in ms.

Incarnations are spans of samples in which the log only grows at its end. A recreated topic is a new log under an old name. A
truncated log lost its last records in an unclean leader election; the records below the new end are the same as before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from coordinator_core.health import DEFAULT_KEEP, EndOffsetSample, KeepRule, ReadableSince
from coordinator_core.health.sample_retention import RetentionSpan, spans_of


@dataclass(frozen=True, slots=True)
class SampledEnd:
    """The part of a successful sample that ages are computed from."""

    asked_at_ms: int
    answered_at_ms: int
    offset: int


def log_ends(samples: Iterable[EndOffsetSample]) -> tuple[SampledEnd, ...]:
    """The log ends of the samples that succeeded, in the given order."""
    return tuple(SampledEnd(s.asked_at_ms, s.answered_at_ms, s.log_end) for s in samples if s.log_end is not None)


def samples_until(samples: Sequence[EndOffsetSample], at_ms: int) -> tuple[EndOffsetSample, ...]:
    """The samples that were answered by `at_ms`."""
    return tuple(sample for sample in samples if sample.answered_at_ms <= at_ms)


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


class EstimatedSince(NamedTuple):
    """`ReadableSince` with an estimate; `after_ms` and `estimate_ms` are None if the record was readable at the first sample."""

    after_ms: int | None
    by_ms: int
    estimate_ms: float | None

    @property
    def bounds(self) -> ReadableSince:
        return ReadableSince(self.after_ms, self.by_ms)


def readable_since(ends: Sequence[SampledEnd], offset: int) -> EstimatedSince | None:
    """Bounds for the record at `offset`, from the log ends of one log, oldest first; None if it is not readable yet.

    After a truncation `log_end` may be less than before. The last sample that did not have the record decides.
    """
    without_record = [k for k, end in enumerate(ends) if end.offset <= offset]
    if not without_record:
        return EstimatedSince(None, ends[0].answered_at_ms, None) if ends else None
    last = without_record[-1]
    if last + 1 == len(ends):
        return None
    return between(ends[last], ends[last + 1], offset)


def between(before: SampledEnd, after: SampledEnd, offset: int) -> EstimatedSince:
    """Bounds between two successive samples; the estimate assumes a steady rate and takes the middle of the record's share."""
    share = (offset - before.offset + 0.5) / (after.offset - before.offset)
    span = after.answered_at_ms - before.asked_at_ms
    return EstimatedSince(before.asked_at_ms, after.answered_at_ms, before.asked_at_ms + span * share)


def fold_runs(samples: Iterable[EndOffsetSample]) -> tuple[EndOffsetSample, ...]:
    """Keep the first and the last sample of each run of equal values; samples of one topic partition, oldest first."""
    kept: tuple[EndOffsetSample, ...] = ()
    for sample in samples:
        kept = add_sample(kept, sample)
    return kept


def add_sample(kept: Sequence[EndOffsetSample], sample: EndOffsetSample) -> tuple[EndOffsetSample, ...]:
    """Add a newer sample to folded ones: it replaces the last sample of its run.

    Raises ValueError if the sample is older than the last one.
    """
    if kept and sample.answered_at_ms < kept[-1].answered_at_ms:
        raise ValueError(f"sample answered at {sample.answered_at_ms} ms after one of {kept[-1].answered_at_ms} ms")
    continues_run = len(kept) > 1 and kept[-2].values == kept[-1].values == sample.values
    return (*(kept[:-1] if continues_run else kept), sample)


def thin(
    samples: Sequence[EndOffsetSample], now_ms: int, rules: Sequence[KeepRule] = DEFAULT_KEEP
) -> tuple[EndOffsetSample, ...]:
    """Thin the samples of one topic partition, oldest first.

    These samples remain:

    - the last one of each span of a rule's distance, and the first one after an empty span: it may be the end of a folded run;
    - both samples around a recreation or truncation;
    - the newest sample that is older than all rules, while newer ones exist: a record that no member has read for 30 days grows
      older still.
    """
    spans = spans_of(now_ms, rules)
    horizon = spans[-1].from_ms
    if not samples or samples[-1].answered_at_ms < horizon:
        return ()
    events = _events(samples)
    old = [k for k, sample in enumerate(samples) if sample.answered_at_ms < horizon and sample.reason is None]
    oldest = old[-1] if old else 0
    kept = {oldest, len(samples) - 1, *events[-2:], *(k for k in events if k >= oldest)}
    kept |= {k for k in _of_spans(samples, spans) if samples[k].answered_at_ms >= horizon}
    return tuple(samples[k] for k in sorted(kept))


def _events(samples: Sequence[EndOffsetSample]) -> list[int]:
    """Positions of the samples just before and just after each recreation or truncation."""
    successful = [k for k, sample in enumerate(samples) if sample.reason is None]
    pairs = [pair for pair in pairwise(successful) if incarnation_start(*(samples[k] for k in pair)) is not None]
    return [k for pair in pairs for k in pair]


def _of_spans(samples: Sequence[EndOffsetSample], spans: Sequence[RetentionSpan]) -> set[int]:
    """Positions of the last sample of each span, and of the first after an empty span; failed samples have their own spans."""
    lasts: dict[tuple[int, bool, int], int] = {}
    firsts = set()
    before: dict[bool, int] = {}
    for k, sample in enumerate(samples):
        good, at = sample.reason is None, sample.answered_at_ms
        distance = next((s.distance_ms for s in spans if at >= s.from_ms), spans[-1].distance_ms)
        # without a distance every sample is a span of its own
        number = at // distance if distance else k
        lasts[distance, good, number] = k
        if distance and (good not in before or before[good] // distance < number - 1):
            firsts.add(k)
        before[good] = at
    return firsts | set(lasts.values())
