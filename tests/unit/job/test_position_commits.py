"""Which batches of a job with `--group-id` have other records than its own commits."""

import pytest
from jobs import run_options

from coordinator_core.log.partitioner import partition_for
from pipelines.job.position_commits import OwnRecords, position_commits
from pipelines.runtime.errors import UsageError

GROUP, PARTITIONS = "grouplake-job", 4
HOME = partition_for(GROUP, PARTITIONS)
OTHER = (HOME + 1) % PARTITIONS


class LogOfTheJob:
    """A log of four partitions, whose batches are the job's: what others append, and what the job commits."""

    def __init__(self) -> None:
        self.ends = dict.fromkeys(range(PARTITIONS), 100)
        self.appended = 0
        self._own = OwnRecords(GROUP, self.ends)

    def batch(self, **records: int) -> bool:
        """Append records of others and read everything; whether the job commits. A commit has one record per partition."""
        self.ends[HOME] += records.get("home", 0)
        self.ends[OTHER] += records.get("other", 0)
        commits = not self._own.are_all_of(self.ends, PARTITIONS, self.appended)
        if commits:
            self.appended += PARTITIONS
            self.ends[HOME] += PARTITIONS
        return commits


def test_a_batch_of_own_commits_is_not_committed() -> None:
    log = LogOfTheJob()
    assert log.batch(other=3)
    assert [log.batch() for _ in range(3)] == [False, False, False]
    assert log.batch(other=1)
    assert not log.batch()


def test_records_of_others_beside_own_ones_are_committed() -> None:
    log = LogOfTheJob()
    assert log.batch(home=1)
    # the own commit and one record of another group of this log partition
    assert log.batch(home=1)
    assert not log.batch()
    assert log.batch(home=1)


def test_a_commit_that_is_read_later() -> None:
    empty = dict.fromkeys(range(PARTITIONS), 0)
    own = OwnRecords(GROUP, empty)
    # two offsets were committed, of which the log has one so far
    assert own.are_all_of({**empty, HOME: 1}, PARTITIONS, 2)
    assert own.are_all_of({**empty, HOME: 2}, PARTITIONS, 2)
    assert not own.are_all_of({**empty, HOME: 3}, PARTITIONS, 2)
    assert not OwnRecords(GROUP, {}).are_all_of({**empty, HOME: 1}, PARTITIONS, 0)
    # where own commits are is unknown
    assert not OwnRecords(GROUP, empty).are_all_of({**empty, HOME: 1}, None, 1)


def test_a_source_without_a_topic() -> None:
    options = run_options("segments:/log", "/tables", group_id=GROUP)
    with pytest.raises(UsageError, match=r"--group-id grouplake-job is for kafka:// and spark-kafka://: segments:/log has no"):
        position_commits(options, None, print).__enter__()
