"""Status of a group at a time: Burrow's rules by partition, our rules, and the finding that decides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.burrow_rules import FORMER_NAMES, BurrowRule, CommitPoint, CommitWindow, moved_back
from coordinator_core.health.finding_causes import incidents
from coordinator_core.health.finding_phrases import SEEN_BY_POLLS
from coordinator_core.health.finding_text import with_text
from coordinator_core.health.group_evidence import (
    GroupEvidence,
    PartitionEvidence,
    deleted_from,
    ownership_fields,
    repeats_since,
)
from coordinator_core.health.group_facts import Fact, fact_of, sync_fact
from coordinator_core.health.group_rules import GROUP_RULES, GroupRule
from coordinator_core.health.offset_syncs import LOOK_BACK, without_syncs
from coordinator_core.health.status import Finding, Status, StatusSettings

DEFAULT_SETTINGS = StatusSettings()


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """Burrow's status of one partition, with Burrow's name of the rule. `start` and `end` are the first and last commit."""

    partition: TopicPartition
    status: Status
    rule: str
    start: CommitPoint | None
    end: CommitPoint | None
    current_lag: int
    complete: float
    window_rows: int
    window_seconds: float


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """Status of a group, with the rule that decided and the window that it used.

    - `status`: the most severe status of Burrow's rules and ours.
    - `rule` and the fields after it are of the finding that decided: the root cause of the most severe finding. `rule` is None if
      the group is unknown or has no committed offsets. `detail` is about all findings of that cause.
    - `findings`: all findings except OK ones, by incident, the most severe incident first and its cause before its symptoms.
    - `facts`: what is no defect, such as topics without a subscription, whose offsets do not count for `status`.
    - `burrow_status`: by Burrow's rules alone, with STOP, STALL and REWIND as ERR.
    - `complete`: share of partitions with a full window. `total_lag`: sum of the lags of `partitions`, each at least 0.
    - `max_lag`: the partition with the greatest lag.
    """

    group_id: str
    at_ms: int
    status: Status
    rule: str | None
    partition: TopicPartition | None
    window_rows: int | None
    window_seconds: float | None
    detail: str
    findings: tuple[Finding, ...]
    burrow_status: Status
    partitions: tuple[PartitionStatus, ...]
    complete: float
    total_lag: int
    max_lag: PartitionStatus | None
    facts: tuple[Fact, ...] = ()


def evaluate(group: GroupEvidence, rules: Sequence[GroupRule] = GROUP_RULES) -> GroupStatus:
    """Apply Burrow's rules to each partition with a known log end, and `rules` to the group.

    `burrow_status` and `partitions` are of all partitions, the status and its findings of those that a member can read.
    """
    decided = [(p, p.rule) for p in group.partitions if p.rule is not None]
    partitions = tuple(_partition_status(p, rule) for p, rule in decided)
    found = [_finding(p, rule, group) for p, rule in decided if p.is_consumed and _is_finding(p, rule)]
    counted, sync = _without_sync(group.consumed())
    found += [finding for rule in rules for finding in rule.findings(counted)]
    by_cause = incidents(found)
    nothing = Status.OK if group.exists else Status.NOTFOUND
    consumed = [status for status, (p, _) in zip(partitions, decided, strict=True) if p.is_consumed]
    deciding = by_cause[0].found[0] if by_cause else _without_defect(consumed)
    return GroupStatus(
        group_id=group.group_id,
        at_ms=group.at_ms,
        status=by_cause[0].status if by_cause else nothing,
        rule=None if deciding is None else deciding.rule,
        partition=None if deciding is None else deciding.partition,
        window_rows=None if deciding is None else deciding.window_rows,
        window_seconds=None if deciding is None else deciding.window_seconds,
        detail=by_cause[0].text(group.at_ms).detail if by_cause else "" if deciding is None else deciding.detail,
        findings=tuple(finding for incident in by_cause for finding in incident.findings),
        burrow_status=_folded(partitions, nothing),
        partitions=partitions,
        complete=sum(p.complete >= 1 for p in partitions) / len(partitions) if partitions else 0.0,
        total_lag=sum(p.current_lag for p in partitions),
        max_lag=max(partitions, key=lambda p: p.current_lag, default=None),
        facts=(*(fact_of(each, group.at_ms) for each in sorted(group.unconsumed)), *sync),
    )


def _without_sync(group: GroupEvidence) -> tuple[GroupEvidence, tuple[Fact, ...]]:
    """The evidence without the jumps that are a steady sync of offsets, and the fact about it.

    A pattern is recognized from jumps of up to LOOK_BACK windows. It is a fact while a commit of it would be a finding.
    """
    window_ms = group.settings.jump_window_ms
    known_since_ms = group.at_ms - LOOK_BACK * window_ms
    recent = [jump for jump in group.jumps if jump.at_ms > known_since_ms]
    jumps, sync = without_syncs(recent, known_since_ms)
    if sync is None:
        return group, ()
    is_recent = group.at_ms - sync.last_ms < window_ms
    return replace(group, jumps=jumps), (sync_fact(sync, group.at_ms, known_since_ms),) if is_recent else ()


def _is_finding(p: PartitionEvidence, rule: BurrowRule) -> bool:
    return rule.status is not Status.OK and p.window is not None and rule.is_evident(p.window)


def ok_finding(rule: str, partition: TopicPartition, window_rows: int, window_seconds: float) -> Finding:
    """The finding that decides the status of a group without a defect; `rule` is Burrow's name."""
    found = Finding(FORMER_NAMES[rule], Status.OK, partition, "", window_rows, window_seconds)
    return with_text(found, 0)


def _partition_status(p: PartitionEvidence, rule: BurrowRule) -> PartitionStatus:
    window = p.window
    assert window is not None
    return PartitionStatus(
        p.partition,
        rule.status,
        rule.burrow_name,
        window.commits[0] if window.commits else None,
        window.commits[-1] if window.commits else None,
        window.current_lag,
        window.complete,
        len(window.commits),
        window.span_ms / 1000,
    )


def _without_defect(partitions: Sequence[PartitionStatus]) -> Finding | None:
    """The finding of a group without a defect; none if Burrow's rule for the first partition is not evident."""
    if not partitions or partitions[0].status is not Status.OK:
        return None
    first = partitions[0]
    return ok_finding(first.rule, first.partition, first.window_rows, first.window_seconds)


def _finding(p: PartitionEvidence, rule: BurrowRule, group: GroupEvidence) -> Finding:
    """The finding of a rule of Burrow that is not OK; such a window has commits."""
    window = p.window
    assert window is not None
    since_ms, offsets = _start_of_defect(rule.name, p, window)
    found = Finding(
        rule.name,
        rule.status,
        p.partition,
        window_rows=len(window.commits),
        window_seconds=window.span_ms / 1000,
        from_offset=offsets[0],
        to_offset=offsets[1],
        since_ms=since_ms,
        amount=window.current_lag,
        due_ms=deleted_from(p.lag),
        reason=SEEN_BY_POLLS if group.is_polled else None,
        **ownership_fields(p.owner, group.membership),
    )
    return with_text(found, group.at_ms)


def _start_of_defect(rule: str, p: PartitionEvidence, window: CommitWindow) -> tuple[int, tuple[int | None, int | None]]:
    """The time, and the offsets of a position that went back."""
    match rule:
        case "stopped":
            return window.commits[-1].committed_at_ms, (None, None)
        case "stalled":
            return repeats_since(p) or window.commits[0].committed_at_ms, (None, None)
        case "went_back":
            moved = moved_back(window)
            assert moved is not None
            return moved[1].committed_at_ms, (moved[0].offset, moved[1].offset)
    return window.commits[0].committed_at_ms, (None, None)


def _folded(partitions: Sequence[PartitionStatus], nothing: Status) -> Status:
    worst = max((p.status for p in partitions), key=lambda status: status.severity, default=nothing)
    return Status.ERR if worst.severity > Status.ERR.severity else worst
