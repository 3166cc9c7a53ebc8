"""Evidence of a group at a time: lag and window of each committed partition, membership, jumps. Times in ms.

The rules read nothing else. The job may fill it from columns; `evidence_at` derives it from a history.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.burrow_rules import CommitPoint, CommitWindow, commit_points
from coordinator_core.health.end_offsets import EndOffsetSample, log_ends
from coordinator_core.health.group_history import CommitEvent, GroupHistory, MembershipEvent, PendingCommit
from coordinator_core.health.lag_inputs import NO_FACTS, Commit
from coordinator_core.health.offset_jumps import OffsetJump, offset_jumps
from coordinator_core.health.partition_lag import PartitionLag, partition_lag
from coordinator_core.health.status import StatusSettings


@dataclass(frozen=True, slots=True)
class PartitionEvidence:
    """One committed partition.

    - `window`: None if no log end was ever known.
    - `expires_at_ms`: None for never.
    - `blocked_since_ms`: first sample at which the last stable offset was where it still is; None if nothing is open.
    """

    partition: TopicPartition
    lag: PartitionLag
    window: CommitWindow | None
    expires_at_ms: int | None = None
    blocked_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """Evidence of one group.

    `membership` is its newest event, `rebalances` are the times of all rebalances so far, and `open_commits` the commits in
    transactions that are open at `at_ms`.
    """

    group_id: str
    at_ms: int
    settings: StatusSettings
    partitions: tuple[PartitionEvidence, ...] = ()
    membership: MembershipEvent | None = None
    rebalances: tuple[int, ...] = ()
    jumps: tuple[OffsetJump, ...] = ()
    open_commits: tuple[PendingCommit, ...] = ()

    @property
    def exists(self) -> bool:
        """True if the group has committed or pending offsets, or a group record."""
        has_record = self.membership is not None and self.membership.state != "Dead"
        return has_record or bool(self.partitions or self.open_commits)


def evidence_at(history: GroupHistory, at_ms: int, settings: StatusSettings) -> GroupEvidence:
    """Evidence of a group from its history until `at_ms`."""
    known = history.until(at_ms)
    return GroupEvidence(
        known.group_id,
        at_ms,
        settings,
        tuple(_partitions(known, at_ms, settings)),
        known.memberships[-1] if known.memberships else None,
        known.rebalances,
        offset_jumps(known.commits, known.memberships),
        tuple(commit for commit in known.pending if commit.until_ms is None),
    )


def _partitions(known: GroupHistory, at_ms: int, settings: StatusSettings) -> Iterator[PartitionEvidence]:
    commits: dict[TopicPartition, list[CommitEvent]] = {}
    for event in known.commits:
        commits.setdefault(event.partition, []).append(event)
        if event.offset is None:
            del commits[event.partition]
    expiries = {event.partition: event.expires_at_ms for event in known.expiries}
    for partition, events in sorted(commits.items()):
        samples = known.samples.get(partition, ())
        lag = partition_lag(_commit(events), samples, known.facts.get(partition.topic, NO_FACTS))
        yield PartitionEvidence(
            partition,
            lag,
            _window(events, samples, at_ms, settings),
            expiries.get(partition),
            _blocked_since(samples) if lag.blocked_by_transaction else None,
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
) -> CommitWindow | None:
    ends = log_ends(samples)
    if not ends:
        return None
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
    return CommitWindow(commit_points(points, settings), current_lag, recent, at_ms, settings)


def _blocked_since(samples: Sequence[EndOffsetSample]) -> int | None:
    """Time of the first of the last samples that have the newest last stable offset below their log end."""
    since = None
    for sample in reversed([s for s in samples if s.log_end is not None]):
        if sample.last_stable != samples[-1].last_stable or sample.last_stable == sample.log_end:
            break
        since = sample.answered_at_ms
    return since
