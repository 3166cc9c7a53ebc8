"""Status of a group from its events, one at a time: the model of the columns from which the job evaluates. Times in ms.

A status at a time depends on the events until then only, so it is the same for every longer history.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from model_of_hot_partitions import hot_partitions, lags_there
from model_of_lag import AFTER_ALL_MS, NO_FACTS, Commit, LagRow, TopicFacts, partition_lag
from model_of_logs import SampledEnd, current_log, log_ends, readable_since, samples_until
from model_of_trends import GrowthStart, LagTrend, TrendPoint, falling_since, lag_trend, trend_points

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import (
    BURROW_RULES,
    DEFAULT_SETTINGS,
    BurrowRule,
    CommitEvent,
    CommitPoint,
    CommitWindow,
    EndOffsetSample,
    GroupEvidence,
    GroupStatus,
    GroupSubscription,
    MembershipEvent,
    OpenTransaction,
    PartitionEvidence,
    PartitionOwner,
    PendingCommit,
    StatusSettings,
    Unconsumed,
    UnconsumedTopic,
    evaluate,
    offset_jumps,
    open_transaction,
    present_membership,
)


class ExpiryEvent(NamedTuple):
    """Time at which a committed offset expires, as computed at `at_ms`; None for never."""

    at_ms: int
    partition: TopicPartition
    expires_at_ms: int | None


class PendingSpan(NamedTuple):
    """A commit in a transaction with the time of its marker; None while the transaction is open."""

    commit: PendingCommit
    until_ms: int | None = None


class OwnerEvent(NamedTuple):
    """Owner of a partition from this time on; no client id and no host if no member has it."""

    at_ms: int
    partition: TopicPartition
    client_id: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """Events of one group, oldest first, and the samples of the partitions that it committed to. `others` has those of the other
    partitions of their topics.

    `rebalances` has the time of each new generation or group epoch. `facts` has properties of topics by name. `blocked_by` has
    the open transactions at positions of the group, as a sample at the end of the history found them; None if no sample did.
    `falling` has the partitions that fell behind at the sample before, with since when: they do until their lag stops growing.
    All commits before `read_until_ms` are in the history, and `pending_offsets` has those of open transactions at its end.
    `subscription` is that of its members at the end of the history, None if it is not known; `ended` has the topics whose
    subscription ended, with since when.
    """

    group_id: str
    commits: tuple[CommitEvent, ...] = ()
    samples: Mapping[TopicPartition, tuple[EndOffsetSample, ...]] = field(default_factory=dict)
    memberships: tuple[MembershipEvent, ...] = ()
    rebalances: tuple[int, ...] = ()
    expiries: tuple[ExpiryEvent, ...] = ()
    pending: tuple[PendingSpan, ...] = ()
    facts: Mapping[str, TopicFacts] = field(default_factory=dict)
    blocked_by: Mapping[TopicPartition, OpenTransaction] | None = None
    falling: Mapping[TopicPartition, GrowthStart] = field(default_factory=dict)
    owners: tuple[OwnerEvent, ...] = ()
    read_until_ms: int | None = AFTER_ALL_MS
    pending_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    subscription: GroupSubscription | None = None
    ended: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[TopicPartition, tuple[EndOffsetSample, ...]] = field(default_factory=dict)
    is_polled: bool = False

    def until(self, at_ms: int) -> "GroupHistory":
        """The history as it was known at `at_ms`."""
        samples = {partition: samples_until(taken, at_ms) for partition, taken in self.samples.items()}
        return replace(
            self,
            commits=tuple(event for event in self.commits if event.at_ms <= at_ms),
            samples={partition: taken for partition, taken in samples.items() if taken},
            others={partition: samples_until(taken, at_ms) for partition, taken in self.others.items()},
            memberships=tuple(event for event in self.memberships if event.at_ms <= at_ms),
            rebalances=tuple(at for at in self.rebalances if at <= at_ms),
            expiries=tuple(event for event in self.expiries if event.at_ms <= at_ms),
            falling={partition: start for partition, start in self.falling.items() if start.at_ms <= at_ms},
            owners=tuple(event for event in self.owners if event.at_ms <= at_ms),
            pending=tuple(
                span if span.until_ms is None or span.until_ms <= at_ms else span._replace(until_ms=None)
                for span in self.pending
                if span.commit.since_ms <= at_ms
            ),
        )


def group_status(history: GroupHistory, at_ms: int, settings: StatusSettings = DEFAULT_SETTINGS) -> GroupStatus:
    """The status at `at_ms`, from the events until then; a longer history has the same status at that time."""
    return evaluate(evidence_at(history, at_ms, settings))


def evidence_at(history: GroupHistory, at_ms: int, settings: StatusSettings) -> GroupEvidence:
    """Evidence of a group from its history until `at_ms`."""
    known = history.until(at_ms)
    partitions = _with_hot(tuple(_partitions(known, at_ms, settings)), known, at_ms, settings)
    reasons = {each.partition: _unconsumed(known, each, at_ms, settings) for each in partitions}
    return GroupEvidence(
        known.group_id,
        at_ms,
        settings,
        tuple(replace(each, is_consumed=reasons[each.partition] is None) for each in partitions),
        present_membership(known.memberships),
        known.rebalances,
        offset_jumps(known.commits, known.memberships),
        tuple(span.commit for span in known.pending if span.until_ms is None),
        tuple(_unconsumed_topics(known, reasons)),
        known.is_polled,
    )


def _with_hot(
    partitions: tuple[PartitionEvidence, ...], known: GroupHistory, at_ms: int, settings: StatusSettings
) -> tuple[PartitionEvidence, ...]:
    found: list[PartitionEvidence] = []
    for each in partitions:
        topic = each.partition.topic
        samples = {key: taken for key, taken in (*known.samples.items(), *known.others.items()) if key.topic == topic}
        hot = hot_partitions(samples, at_ms, settings).get(each.partition)
        of_group = [other.lag for other in partitions if other.partition.topic == topic]
        found.append(replace(each, hot=hot if hot is not None and lags_there(each.lag, of_group, settings) else None))
    return tuple(found)


def _unconsumed(known: GroupHistory, partition: PartitionEvidence, at_ms: int, settings: StatusSettings) -> Unconsumed | None:
    subscription, topic = known.subscription, partition.partition.topic
    if subscription is None or not subscription.topics or partition.lag.lag_reason == "catching_up":
        return None
    if topic not in subscription.topics and topic not in subscription.owned:
        since = known.ended.get(topic)
        is_over = since is not None and at_ms - since > settings.least_silence_ms
        if subscription.state == "Stable" or is_over:
            return Unconsumed.NOT_SUBSCRIBED
    return Unconsumed.UNKNOWN_PARTITION if partition.lag.lag_reason == "unknown_partition" else None


def _unconsumed_topics(known: GroupHistory, reasons: Mapping[TopicPartition, Unconsumed | None]) -> Iterator[UnconsumedTopic]:
    expiries = {event.partition: event.expires_at_ms for event in known.expiries}
    for topic, reason in sorted({(p.topic, reason) for p, reason in reasons.items() if reason is not None}):
        partitions = [p for p, found in reasons.items() if (p.topic, found) == (topic, reason)]
        due = [expiries.get(p) for p in partitions]
        times = [at for at in due if at is not None]
        dues = (min(times), max(times)) if len(times) == len(due) else (None, None)
        since = known.ended.get(topic) if reason is Unconsumed.NOT_SUBSCRIBED else None
        yield UnconsumedTopic(topic, reason, len(partitions), min(partitions).partition, since, *dues)


def _partitions(known: GroupHistory, at_ms: int, settings: StatusSettings) -> Iterator[PartitionEvidence]:
    commits: dict[TopicPartition, list[CommitEvent]] = {}
    for event in known.commits:
        commits.setdefault(event.partition, []).append(event)
        if event.offset is None:
            del commits[event.partition]
    expiries = {event.partition: event.expires_at_ms for event in known.expiries}
    trends = _trends(known, commits, settings)
    owners = {event.partition: PartitionOwner(event.client_id, event.host) for event in known.owners}
    for partition, events in sorted(commits.items()):
        samples = known.samples.get(partition, ())
        commit = _commit(events)._replace(pending_offset=known.pending_offsets.get(partition))
        facts = known.facts.get(partition.topic, NO_FACTS)
        lag = partition_lag(commit, samples, facts, trend=trends.get(partition), read_until_ms=known.read_until_ms)
        yield PartitionEvidence(
            partition,
            lag,
            *_window(events, samples, at_ms, settings),
            expiries.get(partition),
            _blocked_by(known, partition, lag, samples),
            _lost_since(events, samples) if lag.messages_lost else None,
            owners.get(partition),
            commit.moved_at_ms,
        )


def _trends(
    known: GroupHistory, commits: Mapping[TopicPartition, Sequence[CommitEvent]], settings: StatusSettings
) -> dict[TopicPartition, LagTrend]:
    """The trend of each partition. Partitions of a topic fall behind together or alone."""
    topics: dict[str, dict[TopicPartition, tuple[tuple[TrendPoint, ...], tuple[SampledEnd, ...]]]] = {}
    for partition, events in sorted(commits.items()):
        samples = known.samples.get(partition, ())
        ends = log_ends(current_log(samples).samples)
        if ends:
            pairs = [(event.at_ms, event.offset) for event in events if event.offset is not None]
            topics.setdefault(partition.topic, {})[partition] = trend_points(pairs, ends, settings), ends
    now_ms = {partition: samples[-1].answered_at_ms for partition, samples in known.samples.items() if samples}
    found = {}
    for partitions in topics.values():
        since = falling_since(partitions, now_ms, settings, known.falling)
        for partition, (points, ends) in partitions.items():
            trend = lag_trend(points, ends, now_ms[partition], settings, since.get(partition))
            if trend is not None:
                found[partition] = trend
    return found


def commit_points(points: Iterable[CommitPoint], settings: StatusSettings) -> tuple[CommitPoint, ...]:
    """The window of these commits. A commit closer to the one before it than the least distance replaces it, at its time."""
    kept: list[CommitPoint] = []
    for point in points:
        if kept and point.committed_at_ms - kept[-1].committed_at_ms < settings.min_distance_ms:
            kept[-1] = point._replace(committed_at_ms=kept[-1].committed_at_ms)
        else:
            kept.append(point)
    return tuple(kept[-settings.window_commits :])


def burrow_rule(window: CommitWindow, recent_ends: Sequence[int]) -> BurrowRule:
    """The first of Burrow's rules that applies. `recent_ends` are the log ends sampled lately, at least the newest one."""
    return next(rule for rule, applies in zip(BURROW_RULES, _CONDITIONS, strict=True) if applies(window, recent_ends))


def _too_few_commits(window: CommitWindow, _recent_ends: Sequence[int]) -> bool:
    return not window.commits or window.complete < window.settings.minimum_complete


def _caught_up(window: CommitWindow, _recent_ends: Sequence[int]) -> bool:
    return window.current_lag <= window.settings.allowed_lag


def _silent(window: CommitWindow, recent_ends: Sequence[int]) -> bool:
    """Silent for longer than the span of the window, and behind at every recent sample."""
    last = window.commits[-1]
    was_caught_up = any(end <= last.offset for end in recent_ends)
    return window.at_ms - last.committed_at_ms > window.span_ms and not was_caught_up


def _rewound(window: CommitWindow, _recent_ends: Sequence[int]) -> bool:
    """The first rewind of the window was not made up for by a later commit."""
    offsets = [point.offset for point in window.commits]
    for k, (before, after) in enumerate(pairwise(offsets)):
        if after < before:
            return all(later < before for later in offsets[k + 1 :])
    return False


def _had_no_lag(window: CommitWindow, _recent_ends: Sequence[int]) -> bool:
    return any(point.lag is not None and point.lag <= window.settings.allowed_lag for point in window.commits)


def _stalled(window: CommitWindow, _recent_ends: Sequence[int]) -> bool:
    return len({point.offset for point in window.commits}) == 1


def _lag_never_fell(window: CommitWindow, _recent_ends: Sequence[int]) -> bool:
    lags = [point.lag for point in window.commits if point.lag is not None]
    return all(before <= after for before, after in pairwise(lags))


#: In the order of the rules.
_CONDITIONS: tuple[Callable[[CommitWindow, Sequence[int]], bool], ...] = (
    _too_few_commits,
    _caught_up,
    _silent,
    _rewound,
    _had_no_lag,
    _stalled,
    _lag_never_fell,
    lambda _window, _recent_ends: True,
)


def _commit(events: Sequence[CommitEvent]) -> Commit:
    last = events[-1]
    assert last.offset is not None
    moved = last
    for event in reversed(events):
        if event.offset != last.offset:
            break
        moved = event
    return Commit(last.offset, last.at_ms, last.topic_id, moved.at_ms)


def _window(
    events: Sequence[CommitEvent], samples: Sequence[EndOffsetSample], at_ms: int, settings: StatusSettings
) -> tuple[CommitWindow | None, BurrowRule | None]:
    ends = log_ends(samples)
    if not ends:
        return None, None
    answered = [end.answered_at_ms for end in ends]
    points = []
    oldest = min(at_ms - settings.window_ms, events[-1].at_ms)
    for event in events:
        if event.at_ms < oldest:
            continue
        assert event.offset is not None
        known = bisect_right(answered, event.at_ms)
        points.append(CommitPoint(event.offset, event.at_ms, max(0, ends[known - 1].offset - event.offset) if known else None))
    current_lag = max(0, ends[-1].offset - points[-1].offset)
    first_recent = min(bisect_left(answered, at_ms - settings.recent_ends_ms), len(ends) - 1)
    recent = tuple(end.offset for end in ends[first_recent:])
    window = CommitWindow(commit_points(points, settings), current_lag, at_ms, settings)
    return window, burrow_rule(window, recent)


def _blocked_by(
    known: GroupHistory, partition: TopicPartition, lag: LagRow, samples: Sequence[EndOffsetSample]
) -> OpenTransaction | None:
    if known.blocked_by is not None:
        return known.blocked_by.get(partition)
    return _open_transaction(samples) if lag.blocked_by_transaction else None


def _open_transaction(samples: Sequence[EndOffsetSample]) -> OpenTransaction | None:
    """The transaction at the newest last stable offset, as far as samples show it."""
    stable = samples[-1].last_stable
    seen = None if stable is None else readable_since(log_ends(current_log(samples).samples), stable)
    return None if seen is None else open_transaction(seen.bounds, None, ())


def _lost_since(events: Sequence[CommitEvent], samples: Sequence[EndOffsetSample]) -> int | None:
    """Time of the first of the last successful samples whose log start is after the position."""
    offset, since = events[-1].offset, None
    assert offset is not None
    for sample in reversed([s for s in samples if s.log_start is not None]):
        assert sample.log_start is not None
        if sample.log_start <= offset:
            break
        since = sample.answered_at_ms
    return since
