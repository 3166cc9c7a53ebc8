"""Acknowledged commits beside the log of the nodes, and the log beside the tables.

Tables keep the last commit of each partition and batch, and the number of the others: a commit that a client repeated would hide
one that is missing. So each acknowledged commit is looked up in the log, and the tables are compared with all of the log.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.examples.demo.fail_over.committing_consumers import AcknowledgedCommit, CommittedPartition
from pipelines.examples.demo.fail_over.logged_commits import LoggedCommits
from pipelines.examples.demo.waiting import DemoError

#: The last offset of each partition, and how many commits the tables have counted.
STORED = (
    "SELECT o.group_id, o.partition, sum(h.commits) AS commits, o.committed_offset FROM offsets o JOIN offset_history h "
    "ON h.group_id = o.group_id AND h.topic = o.topic AND h.partition = o.partition "
    "GROUP BY o.group_id, o.partition, o.committed_offset"
)
#: Most commits or partitions that an error names.
_NAMED = 20


class CommitCount(NamedTuple):
    """Commits of a partition: their number, and the offset of the last one (0 without any)."""

    commits: int
    last_offset: int


@dataclass(frozen=True)
class ComparedPartition:
    """Commits of a partition: offsets that were acknowledged, those of the log in its order, and what the tables have.

    The log may have more than was acknowledged: a commit whose answer was lost with its node, which the consumer then repeated,
    and the last ones, for whose answers the consumers did not wait.
    """

    place: CommittedPartition
    node: int
    acknowledged: frozenset[int]
    logged: Sequence[int]
    in_tables: CommitCount

    @property
    def lost(self) -> list[int]:
        """Acknowledged offsets that the log does not have."""
        return sorted(self.acknowledged.difference(self.logged))

    @property
    def in_log(self) -> CommitCount:
        return CommitCount(len(self.logged), self.logged[-1] if self.logged else 0)

    def __str__(self) -> str:
        return f"{self.place.group} partition {self.place.partition}"


def stored_commits(rows: Sequence[Mapping[str, Any]]) -> dict[CommittedPartition, CommitCount]:
    """Return the rows of STORED by partition."""
    return {
        CommittedPartition(row["group_id"], row["partition"]): CommitCount(row["commits"], row["committed_offset"])
        for row in rows
    }


def compared(
    acknowledged: Sequence[AcknowledgedCommit],
    logged: LoggedCommits,
    stored: Mapping[CommittedPartition, CommitCount],
    nodes: Mapping[str, int],
) -> list[ComparedPartition]:
    """Compare every partition with a commit anywhere. `nodes` has the node of each group before the kill."""
    offsets: dict[CommittedPartition, set[int]] = {}
    for commit in acknowledged:
        offsets.setdefault(commit.place, set()).add(commit.offset)
    return [
        ComparedPartition(
            place,
            nodes[place.group],
            frozenset(offsets.get(place, ())),
            logged.get(place, []),
            stored.get(place, CommitCount(0, 0)),
        )
        for place in sorted({*offsets, *logged, *stored})
    ]


def conclusion(partitions: Sequence[ComparedPartition], killed: int) -> str:
    """Return a sentence that nothing was lost.

    Raises DemoError, which names each commit, if an acknowledged one is not in the log or was overwritten by an earlier one, and
    if the tables have other commits than the log.
    """
    acknowledged = sum(len(each.acknowledged) for each in partitions)
    if lost := [f"{each} offset {offset}" for each in partitions for offset in each.lost]:
        raise DemoError(f"{len(lost):,} of {acknowledged:,} acknowledged commits are not in the log: {_named(lost)}")
    if behind := [each for each in partitions if each.in_log.last_offset < max(each.acknowledged, default=0)]:
        raise DemoError(
            "the last commit in the log is lower than an acknowledged one: "
            + _named([f"{each} offset {each.in_log.last_offset} instead of {max(each.acknowledged)}" for each in behind])
        )
    if other := [each for each in partitions if each.in_tables != each.in_log]:
        raise DemoError(
            "the tables differ from the log: "
            + _named([f"{each} has {_counted(each.in_tables)} instead of {_counted(each.in_log)}" for each in other])
        )
    logged = sum(each.in_log.commits for each in partitions)
    return (
        f"Nothing was lost: node {killed} was killed, each of the {acknowledged:,} acknowledged commits is in the log, "
        f"and the tables have all {logged:,} commits of the log."
    )


def table_of(partitions: Sequence[ComparedPartition]) -> pa.Table:
    """Return the comparison as a table."""
    return pa.Table.from_pylist(
        [
            {
                "group_id": each.place.group,
                "partition": each.place.partition,
                "node": each.node,
                "acknowledged": len(each.acknowledged),
                "lost": len(each.lost),
                "in_log": each.in_log.commits,
                "in_tables": each.in_tables.commits,
                "last_in_log": each.in_log.last_offset,
                "last_in_tables": each.in_tables.last_offset,
            }
            for each in partitions
        ]
    )


def _counted(count: CommitCount) -> str:
    return f"{count.commits} commits with {count.last_offset} as the last offset"


def _named(some: Sequence[str]) -> str:
    more = len(some) - _NAMED
    return ", ".join(some[:_NAMED]) + (f" and {more} more" if more > 0 else "")
