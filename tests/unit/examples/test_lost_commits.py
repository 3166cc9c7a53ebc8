"""Acknowledged commits beside the log, and the log beside the tables: what counts as lost."""

import re

import pytest

from pipelines.examples.demo.fail_over.committing_consumers import AcknowledgedCommit, CommittedPartition
from pipelines.examples.demo.fail_over.logged_commits import LoggedCommits
from pipelines.examples.demo.fail_over.lost_commits import (
    ComparedPartition,
    compared,
    conclusion,
    stored_commits,
    table_of,
)
from pipelines.examples.demo.waiting import DemoError

_NODES = {"billing": 1, "ledger": 2}


def acknowledged(group: str, *offsets: int) -> list[AcknowledgedCommit]:
    return [AcknowledgedCommit(CommittedPartition(group, 0), offset, 0.0, 0.0) for offset in offsets]


def logged(**offsets: list[int]) -> LoggedCommits:
    return {CommittedPartition(group, 0): some for group, some in offsets.items()}


def comparison(commits: list[AcknowledgedCommit], log: LoggedCommits, *rows: tuple[str, int, int]) -> list[ComparedPartition]:
    """`rows` are those of the tables; those of the log without any."""
    names = ("group_id", "partition", "commits", "committed_offset")
    if not rows:
        rows = tuple((place.group, len(offsets), offsets[-1]) for place, offsets in log.items())
    found = [dict(zip(names, (group, 0, count, offset), strict=True)) for group, count, offset in rows]
    return compared(commits, log, stored_commits(found), _NODES)


def test_commits_whose_answers_never_arrived_are_no_loss() -> None:
    commits = [*acknowledged("ledger", 1, 2, 4), *acknowledged("billing", 1)]
    partitions = comparison(commits, logged(billing=[1], ledger=[1, 2, 3, 4, 4]))
    assert table_of(partitions).to_pylist() == [
        dict(group_id="billing", partition=0, node=1, acknowledged=1, lost=0, in_log=1, in_tables=1)
        | dict(last_in_log=1, last_in_tables=1),
        dict(group_id="ledger", partition=0, node=2, acknowledged=3, lost=0, in_log=5, in_tables=5)
        | dict(last_in_log=4, last_in_tables=4),
    ]
    assert conclusion(partitions, 2) == (
        "Nothing was lost: node 2 was killed, each of the 4 acknowledged commits is in the log, "
        "and the tables have all 6 commits of the log."
    )


@pytest.mark.parametrize(
    ("offsets", "lost"),
    [
        pytest.param([1, 1, 3], "1 of 4 acknowledged commits are not in the log: ledger partition 0 offset 2", id="a repeat"),
        pytest.param([1, 2], "1 of 4 acknowledged commits are not in the log: ledger partition 0 offset 3", id="the last one"),
        pytest.param(
            [4],
            "3 of 4 acknowledged commits are not in the log: "
            "ledger partition 0 offset 1, ledger partition 0 offset 2, ledger partition 0 offset 3",
            id="all, with a later one",
        ),
        pytest.param(
            [1, 3, 2],
            "the last commit in the log is lower than an acknowledged one: ledger partition 0 offset 2 instead of 3",
            id="overwritten by an earlier one",
        ),
    ],
)
def test_each_lost_commit_is_named(offsets: list[int], lost: str) -> None:
    commits = [*acknowledged("ledger", 1, 2, 3), *acknowledged("billing", 1)]
    with pytest.raises(DemoError, match=f"^{re.escape(lost)}$"):
        conclusion(comparison(commits, logged(billing=[1], ledger=offsets)), 2)


def test_a_partition_without_any_commit_in_the_log_is_lost() -> None:
    partitions = comparison([*acknowledged("ledger", 1), *acknowledged("billing", 1)], logged(billing=[1]))
    assert table_of(partitions).column("lost").to_pylist() == [0, 1]
    with pytest.raises(DemoError, match=r"^1 of 2 acknowledged commits are not in the log: ledger partition 0 offset 1$"):
        conclusion(partitions, 2)


@pytest.mark.parametrize(
    ("row", "counted"),
    [
        pytest.param(("ledger", 3, 3), "3 commits with 3 as the last offset", id="fewer"),
        pytest.param(("ledger", 5, 3), "5 commits with 3 as the last offset", id="more"),
        pytest.param(("ledger", 4, 2), "4 commits with 2 as the last offset", id="another offset"),
        pytest.param(("billing", 1, 1), "0 commits with 0 as the last offset", id="no row"),
    ],
)
def test_tables_have_exactly_the_commits_of_the_log(row: tuple[str, int, int], counted: str) -> None:
    log = logged(billing=[1], ledger=[1, 2, 2, 3])
    partitions = comparison(
        [*acknowledged("ledger", 1, 2, 3), *acknowledged("billing", 1)], log, *{("billing", 1, 1): None, row: None}
    )
    expected = f"the tables differ from the log: ledger partition 0 has {counted} instead of 4 commits with 3 as the last offset"
    with pytest.raises(DemoError, match=f"^{expected}$"):
        conclusion(partitions, 2)


def test_an_error_names_twenty_commits() -> None:
    commits = [*acknowledged("ledger", *range(1, 26)), *acknowledged("billing", 1)]
    with pytest.raises(DemoError, match=r"^24 of 26 .* ledger partition 0 offset 20 and 4 more$"):
        conclusion(comparison(commits, logged(billing=[1], ledger=[25])), 2)
