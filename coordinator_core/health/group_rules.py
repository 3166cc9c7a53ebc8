"""Rules about groups that Burrow does not have: a table of names, statuses and functions from evidence to findings."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.group_evidence import GroupEvidence
from coordinator_core.health.offset_jumps import JumpedBy, OffsetJump
from coordinator_core.health.partition_lag import LagMethod, LagReason
from coordinator_core.health.status import Finding, Status


class Cause(NamedTuple):
    """The part of a finding that its rule adds; the fields are those of `Finding`."""

    detail: str
    partition: TopicPartition | None = None
    window_rows: int | None = None
    window_ms: int | None = None
    jump: OffsetJump | None = None


class GroupRule(NamedTuple):
    name: str
    status: Status
    causes: Callable[[GroupEvidence], Iterator[Cause]]

    def findings(self, group: GroupEvidence) -> Iterator[Finding]:
        """A finding for each cause of the rule."""
        for cause in self.causes(group):
            jump = cause.jump
            yield Finding(
                self.name,
                self.status,
                cause.partition,
                cause.detail,
                cause.window_rows,
                None if cause.window_ms is None else cause.window_ms / 1000,
                *(() if jump is None else (jump.from_offset, jump.to_offset, str(jump.by))),
            )


def _rebalance_storm(group: GroupEvidence) -> Iterator[Cause]:
    window_ms = group.settings.storm_window_ms
    recent = [at for at in group.rebalances if group.at_ms - at < window_ms]
    if len(recent) >= group.settings.storm_rebalances:
        yield Cause(f"{len(recent)} rebalances in {window_ms / 1000:g} s", window_rows=len(recent), window_ms=window_ms)


def _members_without_partitions(group: GroupEvidence) -> Iterator[Cause]:
    """Stable for long enough that an assignment is not just on its way."""
    now = group.membership
    if now is None or now.state != "Stable" or not now.knows_partitions or now.members_with_partitions >= now.members:
        return
    unchanged_ms = group.at_ms - now.at_ms
    if unchanged_ms >= group.settings.idle_member_ms:
        idle = now.members - now.members_with_partitions
        yield Cause(f"{idle} of {now.members} members have no partitions", window_rows=now.members, window_ms=unchanged_ms)


def _skew(group: GroupEvidence) -> Iterator[Cause]:
    lags = [(max(0, p.lag.lag), p.partition) for p in group.partitions if p.lag.lag is not None]
    total = sum(lag for lag, _ in lags)
    if len(lags) < group.settings.skew_partitions or total < max(1, group.settings.skew_lag):
        return
    most, partition = max(lags, key=lambda pair: pair[0])
    if most >= group.settings.skew_share * total:
        yield Cause(f"{most} of {total} messages of lag are on one of {len(lags)} partitions", partition, window_rows=len(lags))


def _offsets_expiring(group: GroupEvidence) -> Iterator[Cause]:
    for partition in group.partitions:
        if partition.expires_at_ms is not None and partition.expires_at_ms - group.at_ms <= group.settings.expiry_ms:
            left = max(0, partition.expires_at_ms - group.at_ms) / 1000
            yield Cause(f"the committed offset expires in {left:g} s", partition.partition)


def _jumps(*parties: JumpedBy) -> Callable[[GroupEvidence], Iterator[Cause]]:
    def causes(group: GroupEvidence) -> Iterator[Cause]:
        window_ms = group.settings.jump_window_ms
        for jump in group.jumps:
            if jump.by in parties and group.at_ms - jump.at_ms < window_ms:
                size = jump.to_offset - jump.from_offset
                yield Cause(
                    f"{jump.from_offset} → {jump.to_offset} ({size:+d}) by {jump.by}",
                    jump.partition,
                    window_ms=window_ms,
                    jump=jump,
                )

    return causes


def _hanging_transaction(group: GroupEvidence) -> Iterator[Cause]:
    """A pending commit of the group, or an open transaction in a topic that holds the group's position."""
    waiting = [("an offset commit", c.partition, c.since_ms, c.transactional_id) for c in group.open_commits]
    blocked = [(p.partition, p.blocked_since_ms) for p in group.partitions]
    waiting += [("the last stable offset", partition, since, None) for partition, since in blocked if since is not None]
    for text, partition, since_ms, transactional_id in waiting:
        open_ms = group.at_ms - since_ms
        if open_ms > group.settings.transaction_ms:
            transaction = "a transaction" if transactional_id is None else f"a transaction of {transactional_id}"
            yield Cause(f"{text} waits for {transaction} since {open_ms / 1000:g} s", partition, window_ms=open_ms)


def _near_retention(group: GroupEvidence) -> Iterator[Cause]:
    for partition in group.partitions:
        age, margin = partition.lag.lag_seconds_high, partition.lag.retention_margin_seconds
        if age is None or margin is None or partition.lag.messages_lost:
            continue
        if age + margin > 0 and age >= group.settings.retention_share * (age + margin):
            yield Cause(f"retention deletes unread records in {margin:g} s", partition.partition)


def _data_lost(group: GroupEvidence) -> Iterator[Cause]:
    for partition in group.partitions:
        if partition.lag.messages_lost:
            yield Cause(f"{partition.lag.messages_lost} messages were deleted before the group read them", partition.partition)


def _unknown(group: GroupEvidence) -> Iterator[Cause]:
    """No lag in time after the first sample, or a newest sample so old that it does not show the present."""
    for partition in group.partitions:
        lag = partition.lag
        if lag.lag_method is LagMethod.NONE and lag.lag_reason != LagReason.FIRST_SAMPLE:
            yield Cause(f"lag unknown: {lag.lag_reason}", partition.partition)
        elif lag.sampled_at_ms is not None and group.at_ms - lag.sampled_at_ms > group.settings.stale_sample_ms:
            old_ms = group.at_ms - lag.sampled_at_ms
            yield Cause(f"the newest sample is {old_ms / 1000:g} s old", partition.partition, window_ms=old_ms)


#: All rules are evaluated; the order decides between findings of equal severity.
GROUP_RULES = (
    GroupRule("data_lost", Status.ERR, _data_lost),
    GroupRule("hanging_transaction", Status.ERR, _hanging_transaction),
    GroupRule("near_retention", Status.WARN, _near_retention),
    GroupRule("offsets_expiring", Status.WARN, _offsets_expiring),
    GroupRule("rebalance_storm", Status.WARN, _rebalance_storm),
    GroupRule("reset", Status.WARN, _jumps(JumpedBy.ADMIN)),
    GroupRule("rewound", Status.WARN, _jumps(JumpedBy.MEMBER, JumpedBy.UNKNOWN)),
    GroupRule("skew", Status.WARN, _skew),
    GroupRule("members_without_partitions", Status.WARN, _members_without_partitions),
    GroupRule("unknown", Status.UNKNOWN, _unknown),
)
