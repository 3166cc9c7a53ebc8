"""Status of a group at a time: Burrow's rules by partition, our rules, and the finding that decides."""

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.burrow_rules import CommitPoint, CommitWindow, burrow_rule
from coordinator_core.health.group_evidence import GroupEvidence, evidence_at
from coordinator_core.health.group_history import GroupHistory
from coordinator_core.health.group_rules import GROUP_RULES, GroupRule
from coordinator_core.health.status import Finding, Status, StatusSettings

DEFAULT_SETTINGS = StatusSettings()


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """Burrow's status of one partition: `start` and `end` are the first and the last commit of its window."""

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

    - `status`: the most severe status of Burrow's rules and ours; `rule` and the fields after it are of the finding that decided.
      `rule` is None if the group is unknown or has no committed offsets.
    - `findings`: all findings except OK ones, most severe first.
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


def group_status(history: GroupHistory, at_ms: int, settings: StatusSettings = DEFAULT_SETTINGS) -> GroupStatus:
    """The status at `at_ms`, from the events until then; a longer history has the same status at that time."""
    return evaluate(evidence_at(history, at_ms, settings))


def evaluate(group: GroupEvidence, rules: Sequence[GroupRule] = GROUP_RULES) -> GroupStatus:
    """Apply Burrow's rules to each partition with a known log end, and `rules` to the group."""
    partitions = tuple(_partition_status(p.partition, p.window) for p in group.partitions if p.window is not None)
    findings = [_finding(partition) for partition in partitions]
    findings += [finding for rule in rules for finding in rule.findings(group)]
    # sorting is stable: of equal severity the first one decides
    findings.sort(key=lambda finding: -finding.status.severity)
    deciding = findings[0] if findings else None
    nothing = Status.OK if group.exists else Status.NOTFOUND
    return GroupStatus(
        group_id=group.group_id,
        at_ms=group.at_ms,
        status=nothing if deciding is None else deciding.status,
        rule=None if deciding is None else deciding.rule,
        partition=None if deciding is None else deciding.partition,
        window_rows=None if deciding is None else deciding.window_rows,
        window_seconds=None if deciding is None else deciding.window_seconds,
        detail="" if deciding is None else deciding.detail,
        findings=tuple(finding for finding in findings if finding.status is not Status.OK),
        burrow_status=_folded(partitions, nothing),
        partitions=partitions,
        complete=sum(p.complete >= 1 for p in partitions) / len(partitions) if partitions else 0.0,
        total_lag=sum(p.current_lag for p in partitions),
        max_lag=max(partitions, key=lambda p: p.current_lag, default=None),
    )


def _partition_status(partition: TopicPartition, window: CommitWindow) -> PartitionStatus:
    rule = burrow_rule(window)
    return PartitionStatus(
        partition,
        rule.status,
        rule.name,
        window.commits[0] if window.commits else None,
        window.commits[-1] if window.commits else None,
        window.current_lag,
        window.complete,
        len(window.commits),
        window.span_ms / 1000,
    )


def _finding(p: PartitionStatus) -> Finding:
    detail = f"lag {p.current_lag}, {p.window_rows} commits in {p.window_seconds:g} s"
    return Finding(p.rule, p.status, p.partition, detail, p.window_rows, p.window_seconds)


def _folded(partitions: Sequence[PartitionStatus], nothing: Status) -> Status:
    worst = max((p.status for p in partitions), key=lambda status: status.severity, default=nothing)
    return Status.ERR if worst.severity > Status.ERR.severity else worst
