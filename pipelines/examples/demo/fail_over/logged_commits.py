"""Commits in the log of the nodes."""

from collections.abc import Mapping
from contextlib import closing

from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from pipelines.examples.demo.fail_over.committing_consumers import CommittedPartition
from pipelines.examples.demo.waiting import DemoError
from pipelines.source.address import SourceAddress, open_source
from pipelines.source.show import LogProblem, records

#: The offsets of all commits of each partition, in the order of the log. A commit that was repeated is there twice.
LoggedCommits = Mapping[CommittedPartition, list[int]]


def logged_commits(log: SourceAddress, options: Mapping[str, str], topic: str, ends: Mapping[int, int]) -> LoggedCommits:
    """Read the commits of `topic` from the log before these `ends` of its partitions. `options` are those of its connection.

    The log must have been neither cleaned nor cut. Raises DemoError for a record that cannot be decoded.
    """
    found: dict[CommittedPartition, list[int]] = {}
    with closing(open_source(log, options)) as source:
        for each in records(source):
            if isinstance(each, LogProblem):
                raise DemoError(f"{log}: {each}")
            logged, record = each
            key, value = record.key, record.value
            if logged.offset >= ends.get(logged.partition, 0):
                continue
            if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue) and key.topic == topic:
                found.setdefault(CommittedPartition(key.group, key.partition), []).append(value.offset)
    return found
