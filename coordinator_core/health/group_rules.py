"""Rules about groups that Burrow does not have: a table of names, statuses and functions from evidence to findings."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.finding_phrases import GREW_BEFORE, SEEN_BY_POLLS
from coordinator_core.health.finding_text import (
    AT_LEAST,
    FROM_AT_LEAST,
    LAST_STABLE_OFFSET,
    OFFSET_COMMIT,
    STALE_SAMPLE,
    with_text,
)
from coordinator_core.health.group_evidence import (
    GroupEvidence,
    PartitionEvidence,
    PartitionOwner,
    deleted_from,
    ownership_fields,
    waits_since,
)
from coordinator_core.health.offset_jumps import JumpedBy, OffsetJump
from coordinator_core.health.open_transactions import OpenTransaction, StartMethod, hangs
from coordinator_core.health.partition_lag import LagMethod, LagReason
from coordinator_core.health.status import Finding, Status
from coordinator_core.health.time_limits import later

#: Windows in which the beginning of a storm is looked for.
STORM_LOOK_BACK = 12


class Cause(NamedTuple):
    """The part of a finding that its rule adds; the fields are those of `Finding`. `status` is None for that of the rule.

    `detail` is the sentence of a rule that has none in `finding_text`. `member` is that of a cause without partition.
    """

    detail: str = ""
    partition: TopicPartition | None = None
    window_rows: int | None = None
    window_ms: int | None = None
    jump: OffsetJump | None = None
    since_ms: int | None = None
    transactional_id: str | None = None
    amount: int | None = None
    total: int | None = None
    due_ms: int | None = None
    reason: str | None = None
    producer_id: int | None = None
    rate: float | None = None
    status: Status | None = None
    member: PartitionOwner | None = None


class GroupRule(NamedTuple):
    name: str
    status: Status
    causes: Callable[[GroupEvidence], Iterator[Cause]]

    def findings(self, group: GroupEvidence) -> Iterator[Finding]:
        """A finding for each cause of the rule, with its words."""
        causes = list(self.causes(group))
        owners = {each.partition: each.owner for each in group.partitions} if causes else {}
        for cause in causes:
            jump = cause.jump
            owner = cause.member if cause.partition is None else owners.get(cause.partition)
            found = Finding(
                self.name,
                self.status if cause.status is None else cause.status,
                cause.partition,
                cause.detail,
                cause.window_rows,
                None if cause.window_ms is None else cause.window_ms / 1000,
                from_offset=None if jump is None or jump.hides_origin else jump.from_offset,
                to_offset=None if jump is None else jump.to_offset,
                by=None if jump is None else str(jump.by),
                since_ms=cause.since_ms,
                transactional_id=cause.transactional_id,
                amount=cause.amount,
                total=cause.total,
                due_ms=cause.due_ms,
                reason=cause.reason,
                producer_id=cause.producer_id,
                rate=cause.rate,
                **ownership_fields(owner, group.membership),
            )
            yield with_text(found, group.at_ms)


def _rebalance_storm(group: GroupEvidence) -> Iterator[Cause]:
    window_ms = group.settings.storm_window_ms
    recent = [at for at in group.rebalances if group.at_ms - at < window_ms]
    least = group.settings.storm_rebalances
    if len(recent) >= least:
        # the storm may have begun before the window
        known = [at for at in group.rebalances if group.at_ms - at < STORM_LOOK_BACK * window_ms]
        storm = _after_calm(known, window_ms / least)
        counted = storm if len(storm) >= least else recent
        yield Cause(window_rows=len(counted), window_ms=window_ms, since_ms=min(counted), reason=_reason_of_event(group))


def _reason_of_event(group: GroupEvidence, otherwise: str | None = None) -> str | None:
    """The reason of a finding about events of the group."""
    return SEEN_BY_POLLS if group.is_polled else otherwise


def _after_calm(times: Sequence[int], calm_ms: float) -> Sequence[int]:
    """The last of the times that follow each other with less than `calm_ms` in between."""
    first = max((number for number, (before, after) in enumerate(pairwise(times), 1) if after - before >= calm_ms), default=0)
    return times[first:]


def _members_without_partitions(group: GroupEvidence) -> Iterator[Cause]:
    """Stable for long enough that an assignment is not just on its way."""
    now = group.membership
    if now is None or now.state != "Stable" or not now.idle:
        return
    unchanged_ms = group.at_ms - now.at_ms
    if unchanged_ms >= group.settings.idle_member_ms:
        member = None if now.idle_client is None else PartitionOwner(now.idle_client, now.idle_host)
        yield Cause(
            window_rows=now.members,
            window_ms=unchanged_ms,
            since_ms=now.at_ms,
            amount=now.idle,
            member=member,
            reason=_reason_of_event(group),
        )


def _hot_partition(group: GroupEvidence) -> Iterator[Cause]:
    for partition in group.partitions:
        hot = partition.hot
        if hot is not None:
            yield Cause(
                partition=partition.partition,
                window_rows=hot.partitions,
                window_ms=hot.window_ms,
                amount=hot.written,
                total=hot.of_topic,
                rate=hot.rate,
                since_ms=waits_since(partition.lag),
                due_ms=deleted_from(partition.lag),
            )


def _skew(group: GroupEvidence) -> Iterator[Cause]:
    lags = [(max(0, p.lag.lag), p) for p in group.partitions if p.lag.lag is not None]
    total = sum(lag for lag, _ in lags)
    if len(lags) < group.settings.skew_partitions or total < max(1, group.settings.skew_lag):
        return
    most, worst = max(lags, key=lambda pair: pair[0])
    if most >= group.settings.skew_share * total:
        since_ms = waits_since(worst.lag)
        yield Cause(partition=worst.partition, window_rows=len(lags), amount=most, total=total, since_ms=since_ms)


def _offsets_expiring(group: GroupEvidence) -> Iterator[Cause]:
    for partition in group.partitions:
        if partition.expires_at_ms is not None and partition.expires_at_ms - group.at_ms <= group.settings.expiry_ms:
            yield Cause(partition=partition.partition, due_ms=partition.expires_at_ms, since_ms=_left_since(group))


def _left_since(group: GroupEvidence) -> int | None:
    """Time since which the group has no members; None if it has some, or never had any."""
    return group.membership.at_ms if group.membership is not None and not group.membership.members else None


def _jumps(*parties: JumpedBy) -> Callable[[GroupEvidence], Iterator[Cause]]:
    def causes(group: GroupEvidence) -> Iterator[Cause]:
        window_ms = group.settings.jump_window_ms
        for jump in group.jumps:
            if jump.by in parties and group.at_ms - jump.at_ms < window_ms:
                reason = _reason_of_event(group, FROM_AT_LEAST if jump.is_least else None)
                yield Cause(partition=jump.partition, window_ms=window_ms, jump=jump, since_ms=jump.at_ms, reason=reason)

    return causes


def _hanging_transaction(group: GroupEvidence) -> Iterator[Cause]:
    """A pending commit of the group, or an open transaction in a topic that holds the group's position."""
    known = StartMethod.TRANSACTION
    waiting = [
        (OFFSET_COMMIT, c.partition, None, OpenTransaction(c.since_ms, known, c.producer_id, c.transactional_id))
        for c in group.open_commits
    ]
    blocked = [(p.partition, _records(p.lag.lag), p.blocked_by) for p in group.partitions if p.blocked_by is not None]
    for reason, partition, records, found in (*waiting, *((LAST_STABLE_OFFSET, *each) for each in blocked)):
        if hangs(found.since_ms, group.at_ms, group.settings):
            yield Cause(
                partition=partition,
                window_ms=group.at_ms - found.since_ms,
                since_ms=found.since_ms,
                transactional_id=found.transactional_id,
                amount=records,
                reason=AT_LEAST if found.method is StartMethod.SAMPLE else reason,
                producer_id=found.producer_id,
            )


def _falls_behind(group: GroupEvidence) -> Iterator[Cause]:
    """A topic whose records are read more slowly than they are written, at the partition whose records are deleted first."""
    topics: dict[str, list[PartitionEvidence]] = {}
    for partition in group.partitions:
        if partition.lag.falls_behind_since_ms is not None and (partition.lag.lag_slope_per_second or 0) > 0:
            topics.setdefault(partition.partition.topic, []).append(partition)
    for partitions in topics.values():
        yield _falling(partitions, group)


def _falling(partitions: Sequence[PartitionEvidence], group: GroupEvidence) -> Cause:
    since_ms = min(p.lag.falls_behind_since_ms for p in partitions if p.lag.falls_behind_since_ms is not None)
    slope = sum(p.lag.lag_slope_per_second or 0 for p in partitions)
    deletion = min((p.lag.deletion_seconds for p in partitions if p.lag.deletion_seconds is not None), default=None)
    is_near = deletion is not None and deletion * 1000 < group.settings.falls_behind_deletion_ms
    worst = max(
        partitions,
        key=lambda p: (-inf if p.lag.deletion_seconds is None else -p.lag.deletion_seconds, p.lag.lag_slope_per_second or 0),
    )
    return Cause(
        partition=worst.partition,
        window_rows=len(partitions),
        window_ms=group.at_ms - since_ms,
        since_ms=since_ms,
        amount=sum(max(0, p.lag.lag or 0) for p in partitions),
        rate=slope,
        due_ms=None if deletion is None else later(group.at_ms, deletion),
        reason=GREW_BEFORE if any(p.lag.falls_behind_since_is_latest for p in partitions) else None,
        status=Status.ERR if is_near else Status.WARN,
    )


def _near_retention(group: GroupEvidence) -> Iterator[Cause]:
    for partition in group.partitions:
        age, margin = partition.lag.lag_seconds_high, partition.lag.retention_margin_seconds
        if age is None or margin is None or partition.lag.messages_lost:
            continue
        if age + margin > 0 and age >= group.settings.retention_share * (age + margin):
            yield Cause(
                partition=partition.partition,
                amount=_records(partition.lag.lag),
                since_ms=waits_since(partition.lag),
                due_ms=deleted_from(partition.lag),
            )


def _data_lost(group: GroupEvidence) -> Iterator[Cause]:
    for partition in group.partitions:
        if partition.lag.messages_lost:
            yield Cause(partition=partition.partition, since_ms=_lost_since(partition), amount=partition.lag.messages_lost)


def _beyond_end(group: GroupEvidence) -> Iterator[Cause]:
    """A fetch at such an offset is answered with OFFSET_OUT_OF_RANGE."""
    for partition in group.partitions:
        if partition.lag.lag_reason == LagReason.COMMIT_BEYOND_END:
            yield Cause(partition=partition.partition, amount=-(partition.lag.lag or 0))


def _lost_since(partition: PartitionEvidence) -> int | None:
    """The first sample that showed the loss, or a later commit that moved the position before the log start."""
    commits = partition.window.commits if partition.window is not None else ()
    moved = [after.committed_at_ms for before, after in pairwise(commits) if before.offset != after.offset]
    return None if partition.lost_since_ms is None else max([partition.lost_since_ms, *moved[-1:]])


def _unknown(group: GroupEvidence) -> Iterator[Cause]:
    """No lag in time after the first sample, or a newest sample so old that it does not show the present."""
    if any(partition.lag.lag_reason == LagReason.CATCHING_UP for partition in group.partitions):
        # of the whole log of groups, so of no partition in particular
        yield Cause("the job has not read all commits yet")
        return
    for partition in group.partitions:
        lag = partition.lag
        if lag.lag_method is LagMethod.NONE and lag.lag_reason != LagReason.FIRST_SAMPLE:
            yield Cause(partition=partition.partition, reason=lag.lag_reason)
        elif lag.sampled_at_ms is not None and group.at_ms - lag.sampled_at_ms > group.settings.stale_sample_ms:
            old_ms = group.at_ms - lag.sampled_at_ms
            yield Cause(partition=partition.partition, window_ms=old_ms, since_ms=lag.sampled_at_ms, reason=STALE_SAMPLE)


def _records(lag: int | None) -> int | None:
    return None if lag is None else max(0, lag)


#: All rules are evaluated; the order decides between findings of equal severity.
GROUP_RULES = (
    GroupRule("data_lost", Status.ERR, _data_lost),
    GroupRule("hanging_transaction", Status.ERR, _hanging_transaction),
    GroupRule("beyond_end", Status.WARN, _beyond_end),
    GroupRule("falls_behind", Status.WARN, _falls_behind),
    GroupRule("near_retention", Status.WARN, _near_retention),
    GroupRule("offsets_expiring", Status.WARN, _offsets_expiring),
    GroupRule("rebalance_storm", Status.WARN, _rebalance_storm),
    GroupRule("reset", Status.WARN, _jumps(JumpedBy.ADMIN)),
    GroupRule("rewound", Status.WARN, _jumps(JumpedBy.MEMBER, JumpedBy.UNKNOWN)),
    GroupRule("hot_partition", Status.WARN, _hot_partition),
    GroupRule("skew", Status.WARN, _skew),
    GroupRule("members_without_partitions", Status.WARN, _members_without_partitions),
    GroupRule("unknown", Status.UNKNOWN, _unknown),
)
