"""The thread of commits, over a group in memory: the newest batch, retries, renewals, refusals."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping

import pytest
from eventually import eventually
from patience import PATIENCE_SECONDS

from pipelines.group_commits.commit_rules import Place, StoredCommit
from pipelines.group_commits.committer import GroupCommitter
from pipelines.group_commits.finished_batch import FinishedBatch
from pipelines.group_commits.kafka_group import CommitFailed, GroupIsLive

AT = ("orders", 0)
Start = Callable[..., GroupCommitter]


class GroupInMemory:
    """A group whose requests fail with the errors of `failing`, first one first."""

    group_id = "shop"

    def __init__(self) -> None:
        self.commits: dict[Place, StoredCommit] = {}
        self.history: list[int] = []
        self.failing: list[Exception] = []
        self.is_closed = False
        self.may_answer = threading.Event()
        self.may_answer.set()

    def stored(self, places: Collection[Place]) -> dict[Place, StoredCommit]:
        self.may_answer.wait(PATIENCE_SECONDS)
        return {place: self.commits[place] for place in places if place in self.commits}

    def commit(self, offsets: Mapping[Place, int], metadata: str) -> None:
        if self.failing:
            raise self.failing.pop(0)
        self.history.extend(offsets.values())
        self.commits.update({place: StoredCommit(offset, metadata) for place, offset in offsets.items()})

    def close(self) -> None:
        self.is_closed = True


def batch(number: int, offset: int) -> FinishedBatch:
    return FinishedBatch("query", "run", "shop", number, {AT: offset})


@pytest.fixture
def group() -> GroupInMemory:
    return GroupInMemory()


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def start(group: GroupInMemory, lines: list[str]) -> Iterator[Start]:
    started: list[GroupCommitter] = []

    def start(renew_seconds: float = 3_600.0) -> GroupCommitter:
        started.append(GroupCommitter(group, lines.append, renew_seconds, retry_seconds=0.001))
        return started[-1]

    yield start
    for committer in started:
        group.may_answer.set()
        committer.close(PATIENCE_SECONDS)


def test_the_newest_batch_is_committed(group: GroupInMemory, start: Start) -> None:
    committer = start()
    group.may_answer.clear()
    for number in range(100):
        committer.offer(batch(number, 10 * number))
    assert not committer.flush(0.01)  # runs out: the group does not answer
    group.may_answer.set()
    assert committer.close(PATIENCE_SECONDS)
    assert group.history[-1] == 990
    assert len(group.history) <= 2
    assert (committer.state.batch_id, committer.state.failures) == (99, 0)
    assert committer.state.commits == len(group.history)
    assert group.is_closed


def test_an_older_batch_of_the_run_that_comes_late_is_not_committed(group: GroupInMemory, start: Start) -> None:
    committer = start()
    group.may_answer.clear()
    committer.offer(batch(1, 10))
    # the last progress of a query, read while its next batch was reported
    committer.offer(batch(0, 5))
    group.may_answer.set()
    assert committer.close(PATIENCE_SECONDS)
    assert (group.history, committer.state.batch_id) == ([10], 1)


def test_a_failure_is_repeated_and_reported_once(group: GroupInMemory, start: Start, lines: list[str]) -> None:
    group.failing = [CommitFailed("NOT_COORDINATOR")] * 3
    committer = start()
    committer.offer(batch(1, 5))
    assert committer.flush(PATIENCE_SECONDS)
    assert (group.history, committer.state.failures) == ([5], 3)
    assert lines == ["group 'shop': not committed, and tried again: NOT_COORDINATOR"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(GroupIsLive("the group has live members"), "the group has live members"), (OSError("odd"), "OSError: odd")],
)
def test_a_refusal_ends_the_commits(group: GroupInMemory, start: Start, lines: list[str], error: Exception, reason: str) -> None:
    group.failing = [error]
    committer = start()
    committer.offer(batch(1, 5))
    assert not committer.flush(PATIENCE_SECONDS)
    committer.offer(batch(2, 6))
    assert not committer.close(PATIENCE_SECONDS)
    assert (group.history, committer.state.refusal) == ([], reason)
    assert lines == [f"group 'shop': no offsets are committed any more: {reason}"]


def test_a_commit_of_another_program_while_the_query_runs(group: GroupInMemory, start: Start, lines: list[str]) -> None:
    committer = start()
    committer.offer(batch(1, 5))
    assert committer.flush(PATIENCE_SECONDS)
    group.commits[AT] = StoredCommit(2)  # kafka-consumer-groups --reset-offsets
    committer.offer(batch(2, 6))
    assert not committer.flush(PATIENCE_SECONDS)
    assert group.history == [5]
    assert "commit of another program (offset 2 of orders-0)" in lines[0]


def test_a_new_checkpoint_never_commits_back(group: GroupInMemory, start: Start, lines: list[str]) -> None:
    before, after = start(), start()
    before.offer(batch(9, 50))
    assert before.flush(PATIENCE_SECONDS)
    for number, offset in enumerate((10, 30, 60)):
        after.offer(batch(number, offset))
        assert after.flush(PATIENCE_SECONDS)
    assert group.history == [50, 60]
    assert len(lines) == 1
    assert "batch 0 ends before 1 committed offsets, such as that of orders-0: they stay" in lines[0]


def test_commits_are_renewed_until_the_query_ends(group: GroupInMemory, start: Start) -> None:
    committer = start(renew_seconds=0.002)
    committer.offer(batch(1, 5))
    eventually("the commit is renewed", lambda: len(group.history) > 3)
    group.failing = [CommitFailed("no answer")]
    eventually("a renewal that failed is repeated", lambda: committer.state.failures == 1)
    seen = len(group.history)
    eventually("renewals go on", lambda: len(group.history) > seen + 2)
    committer.query_ended()
    committer.close(PATIENCE_SECONDS)
    assert set(group.history) == {5}
