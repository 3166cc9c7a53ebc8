"""Acknowledged commits beside the tables: what counts as lost."""

import pytest

from pipelines.examples.demo.fail_over.committing_consumers import AcknowledgedCommit, CommittedPartition
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


def comparison(commits: list[AcknowledgedCommit], *rows: tuple[str, int, int]) -> list[ComparedPartition]:
    names = ("group_id", "partition", "commits", "committed_offset")
    found = [dict(zip(names, (group, 0, count, offset), strict=True)) for group, count, offset in rows]
    return compared(commits, stored_commits(found), _NODES)


def test_commits_whose_answers_never_arrived_are_no_loss() -> None:
    commits = [*acknowledged("ledger", 1, 2, 4), *acknowledged("billing", 1)]
    partitions = comparison(commits, ("billing", 1, 1), ("ledger", 5, 5))
    assert partitions == [ComparedPartition("billing", 0, 1, 1, 1, 1, 1), ComparedPartition("ledger", 0, 2, 3, 4, 5, 5)]
    assert table_of(partitions).column("lost").to_pylist() == [0, 0]
    assert conclusion(partitions, 2) == "Nothing was lost: node 2 was killed, and all 4 acknowledged commits are in the tables."


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        pytest.param([("ledger", 1, 3)], 1, id="fewer commits"),
        pytest.param([("ledger", 2, 2)], 1, id="a lower offset"),
        pytest.param([], 2, id="no row"),
    ],
)
def test_every_acknowledged_commit_has_to_be_in_the_tables(rows: list[tuple[str, int, int]], lost: int) -> None:
    partitions = comparison([*acknowledged("ledger", 1, 3), *acknowledged("billing", 1)], ("billing", 1, 1), *rows)
    assert table_of(partitions).column("lost").to_pylist() == [0, lost]
    with pytest.raises(DemoError, match=f"^{lost} of 3 acknowledged commits are not in the tables: ledger partition 0$"):
        conclusion(partitions, 2)
