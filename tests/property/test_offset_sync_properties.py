"""Steady syncs of offsets are one fact; a jump among them, and a real reset, are jumps."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import (
    CommitEvent,
    GroupEvidence,
    MembershipEvent,
    Status,
    StatusSettings,
    evaluate,
    offset_jumps,
    without_syncs,
)
from coordinator_core.health.group_facts import FactKind
from coordinator_core.health.offset_syncs import LOOK_BACK, REGULAR_FACTOR

SETTINGS = StatusSettings()
START_MS = 1_700_000_000_000
EMPTY = (MembershipEvent(START_MS - 10_000_000, "Stable", 1, 1), MembershipEvent(START_MS - 1_000, "Empty", 0, 0))


@dataclass(frozen=True)
class Sync:
    """Commits of an admin client: their times and offsets for one partition, and the interval that was intended."""

    interval_ms: int
    points: tuple[tuple[int, int], ...]

    def commits(self, partition: int = 0) -> list[CommitEvent]:
        return [CommitEvent(at, TopicPartition("orders", partition), offset) for at, offset in self.points]

    def evidence(self, commits: list[CommitEvent], at_ms: int | None = None) -> GroupEvidence:
        now = self.points[-1][0] + 1 if at_ms is None else at_ms
        return GroupEvidence("g", now, SETTINGS, membership=EMPTY[-1], jumps=offset_jumps(commits, EMPTY))

    def evidence_about(self, jump_ms: int, commits: list[CommitEvent]) -> GroupEvidence:
        """After the last commit, or before that if the jump would be older than a finding of it by then."""
        now = min(self.points[-1][0] + 1, jump_ms + SETTINGS.jump_window_ms - 1)
        return self.evidence([commit for commit in commits if commit.at_ms < now], now)


@st.composite
def syncs(draw: st.DrawFn, least: int = 12) -> Sync:
    """Every 1 s to 5 min with up to 25 % of jitter; of a traffic that varies by a factor of 3 around its mean."""
    interval_ms = draw(st.integers(1_000, 300_000))
    jitter = st.integers(-(interval_ms // 4), interval_ms // 4)
    size = draw(st.integers(1, 100_000))
    count = draw(st.integers(least, 24))
    offset = draw(st.integers(0, 1_000_000))
    points = []
    for number in range(count):
        points.append((START_MS + number * interval_ms + draw(jitter), offset))
        offset += draw(st.integers(-(-size // 3), size * 3))
    return Sync(interval_ms, tuple(points))


def facts(evidence: GroupEvidence) -> list[FactKind]:
    return [fact.kind for fact in evaluate(evidence).facts]


@given(syncs(), st.integers(1, 3))
def test_a_steady_sync_is_one_fact_and_no_finding(sync: Sync, partitions: int) -> None:
    commits = sorted((each for number in range(partitions) for each in sync.commits(number)), key=lambda each: each.at_ms)
    evidence = sync.evidence(commits)
    status = evaluate(evidence)
    assert (status.status, status.findings) == (Status.OK, ())
    (fact,) = status.facts
    assert (fact.kind, fact.topic, fact.partitions) == (FactKind.OFFSET_SYNC, "orders", partitions)
    assert fact.interval_ms is not None
    assert 0.49 * sync.interval_ms <= fact.interval_ms <= 1.51 * sync.interval_ms
    # the first commit of all has no offset before it
    first_ms = sync.points[1][0]
    known_before_ms = first_ms - (evidence.at_ms - LOOK_BACK * SETTINGS.jump_window_ms)
    usual_ms = REGULAR_FACTOR * sync.interval_ms
    if known_before_ms > 1.51 * usual_ms:
        assert fact.since_ms == first_ms
    elif known_before_ms < 0.49 * usual_ms:
        assert fact.since_ms is None, "an earlier move may be older than the jumps that are looked at"
    else:
        assert fact.since_ms in (first_ms, None)


@given(syncs(), st.data())
def test_a_planted_jump_is_exactly_one_finding(sync: Sync, data: st.DataObject) -> None:
    """Of any direction. The sync goes on from there, or returns to where it would have been."""
    at = data.draw(st.integers(2, len(sync.points) - 2), label="number of the commit")
    largest = max(after[1] - before[1] for before, after in pairwise(sync.points))
    # far out of the pattern: sizes vary by 9, and 10 times the usual one is the limit
    size = data.draw(st.integers(100 * largest, 1_000 * largest) | st.integers(-1_000 * largest, -4 * largest), label="size")
    stays = data.draw(st.booleans(), label="stays")
    planted = [
        (when, offset + (size if number == at or (stays and number > at) else 0))
        for number, (when, offset) in enumerate(sync.points)
    ]
    lowest = min(0, *(offset for _, offset in planted))
    moved = Sync(sync.interval_ms, tuple((when, offset - lowest) for when, offset in planted))
    status = evaluate(moved.evidence_about(moved.points[at][0], moved.commits()))
    assert [(finding.rule, finding.to_offset) for finding in status.findings] == [("reset", moved.points[at][1])]
    assert status.findings[0].from_offset == moved.points[at - 1][1]
    assert [fact.kind for fact in status.facts] == [FactKind.OFFSET_SYNC]


@given(syncs(), st.data())
def test_a_jump_by_another_commit_between_two_syncs_is_one_finding(sync: Sync, data: st.DataObject) -> None:
    at = data.draw(st.integers(3, len(sync.points) - 3))
    (before_ms, before), (after_ms, _) = sync.points[at : at + 2]
    largest = max(later[1] - earlier[1] for earlier, later in pairwise(sync.points))
    jump = CommitEvent((before_ms + after_ms) // 2, TopicPartition("orders", 0), before + 200 * largest)
    commits = sync.commits()
    commits.insert(at + 1, jump)
    status = evaluate(sync.evidence_about(jump.at_ms, commits))
    assert [(finding.rule, finding.to_offset) for finding in status.findings] == [("reset", jump.offset)]
    assert [fact.kind for fact in status.facts] == [FactKind.OFFSET_SYNC]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=10, unique_by=lambda t: t[0]
    )
)
def test_a_reset_of_a_group_is_a_finding_per_partition(moves: list[tuple[int, int, int]]) -> None:
    partitions = [TopicPartition("orders", number) for number, _, _ in moves]
    commits = [CommitEvent(START_MS, p, before) for p, (_, before, _) in zip(partitions, moves, strict=True)]
    commits += [CommitEvent(START_MS + 60_000, p, after) for p, (_, _, after) in zip(partitions, moves, strict=True)]
    evidence = GroupEvidence("g", START_MS + 61_000, SETTINGS, membership=EMPTY[-1], jumps=offset_jumps(commits, EMPTY))
    status = evaluate(evidence)
    moved = {p for p, (_, before, after) in zip(partitions, moves, strict=True) if before != after}
    assert {finding.partition for finding in status.findings if finding.rule == "reset"} == moved
    assert len(status.findings) == len(moved)
    assert status.facts == ()


@given(syncs(), st.integers(0, 3 * 3_600_000))
def test_the_moves_of_a_sync_never_become_findings(sync: Sync, later_ms: int) -> None:
    """Also when it has ended, and its first moves are no longer looked at."""
    evidence = sync.evidence(sync.commits(), sync.points[-1][0] + later_ms)
    assert evaluate(evidence).findings == ()
    assert facts(evidence) == [FactKind.OFFSET_SYNC] * (later_ms < SETTINGS.jump_window_ms)


@given(syncs())
def test_what_is_left_and_the_sync_are_all_jumps(sync: Sync) -> None:
    jumps = offset_jumps(sync.commits(), EMPTY)
    rest, found = without_syncs(jumps)
    assert found is not None
    assert rest == ()
    assert (found.since_ms, found.last_ms) == (jumps[0].at_ms, jumps[-1].at_ms)
    assert without_syncs(jumps[:3]) == (jumps[:3], None)


def test_an_operator_who_tries_is_no_sync() -> None:
    """Forward resets at the pace of a person: no regular times."""
    partition = TopicPartition("orders", 0)
    times = [0, 20_000, 500_000, 520_000, 1_400_000, 1_410_000]
    rest, found = without_syncs(
        offset_jumps([CommitEvent(START_MS + at, partition, 10 * n) for n, at in enumerate(times)], EMPTY)
    )
    assert found is None
    assert len(rest) == len(times) - 1


def test_a_source_that_pauses_and_goes_on_is_no_jump() -> None:
    partition = TopicPartition("orders", 0)
    times = [10_000 * n for n in range(12)] + [10_000 * n for n in range(102, 114)]
    jumps = offset_jumps([CommitEvent(START_MS + at, partition, at // 100) for at in times], EMPTY)
    rest, found = without_syncs(jumps)
    assert rest == ()
    assert found is not None
    assert found.interval_ms == 10_000


def test_commits_of_simple_consumers_are_no_sync_of_an_admin() -> None:
    """Without a group record it is not known who commits."""
    partition = TopicPartition("orders", 0)
    assert offset_jumps([CommitEvent(START_MS + 10_000 * n, partition, 10 * n) for n in range(9)], ()) == ()


def test_sentences() -> None:
    sync = Sync(10_000, tuple((START_MS + 10_000 * n, 10 * n) for n in range(40)))
    (fact,) = evaluate(sync.evidence(sync.commits())).facts
    assert fact.detail == "Offsets of orders-0 are set by an admin client every 10 s since 22:13 UTC."
    (ended,) = evaluate(sync.evidence(sync.commits(), sync.points[-1][0] + 300_000)).facts
    assert ended.detail == "Offsets of orders-0 were set by an admin client every 10 s from 22:13 UTC until 22:19 UTC."
    long = Sync(10_000, tuple((START_MS + 10_000 * n, 10 * n) for n in range(1_000)))
    (of_hours,) = evaluate(long.evidence(long.commits())).facts
    assert of_hours.since_ms is None
    assert of_hours.detail == "Offsets of orders-0 are set by an admin client every 10 s, from before 14 Nov, 22:59 UTC on."


@given(syncs())
def test_a_sync_is_recognized_while_it_goes_on(sync: Sync) -> None:
    """From the fourth move on."""
    for number in range(5, len(sync.points)):
        seen = Sync(sync.interval_ms, sync.points[:number])
        assert facts(seen.evidence(seen.commits())) == [FactKind.OFFSET_SYNC]
