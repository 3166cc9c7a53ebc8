"""Acknowledged commits beside the tables."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.examples.demo.fail_over.committing_consumers import AcknowledgedCommit, CommittedPartition
from pipelines.examples.demo.waiting import DemoError

#: The last offset of each partition, and how many commits the log has of it.
STORED = (
    "SELECT o.group_id, o.partition, sum(h.commits) AS commits, o.committed_offset FROM offsets o JOIN offset_history h "
    "ON h.group_id = o.group_id AND h.topic = o.topic AND h.partition = o.partition "
    "GROUP BY o.group_id, o.partition, o.committed_offset"
)


class StoredCommits(NamedTuple):
    """Commits of a partition in the tables: their number, and the offset of the last one."""

    commits: int
    offset: int


class ComparedPartition(NamedTuple):
    """Commits of a partition that were acknowledged, beside those in the tables, which may have more: the answer to a commit
    that was in the log when its node was killed never reached the consumer."""

    group_id: str
    partition: int
    node: int
    acknowledged: int
    last_acknowledged: int
    in_tables: int
    last_in_tables: int

    @property
    def lost(self) -> int:
        """Acknowledged commits that the tables do not have; at least one if their last offset is too low."""
        return max(self.acknowledged - self.in_tables, int(self.last_in_tables < self.last_acknowledged), 0)


def stored_commits(rows: Sequence[Mapping[str, Any]]) -> dict[CommittedPartition, StoredCommits]:
    """Return the rows of STORED by partition."""
    return {
        CommittedPartition(row["group_id"], row["partition"]): StoredCommits(row["commits"], row["committed_offset"])
        for row in rows
    }


def compared(
    acknowledged: Sequence[AcknowledgedCommit], stored: Mapping[CommittedPartition, StoredCommits], nodes: Mapping[str, int]
) -> list[ComparedPartition]:
    """Compare every partition with an acknowledged commit. `nodes` has the node of each group before the kill."""
    offsets: dict[CommittedPartition, list[int]] = {}
    for commit in acknowledged:
        offsets.setdefault(commit.place, []).append(commit.offset)
    found = []
    for place, given in sorted(offsets.items()):
        in_tables = stored.get(place, StoredCommits(0, 0))
        found.append(ComparedPartition(*place, nodes[place.group], len(given), max(given), *in_tables))
    return found


def conclusion(partitions: Sequence[ComparedPartition], killed: int) -> str:
    """Return a sentence that nothing was lost. Raises DemoError, with the partitions, if an acknowledged commit was."""
    acknowledged = sum(each.acknowledged for each in partitions)
    if lost := [each for each in partitions if each.lost]:
        places = ", ".join(f"{each.group_id} partition {each.partition}" for each in lost)
        count = sum(each.lost for each in lost)
        raise DemoError(f"{count:,} of {acknowledged:,} acknowledged commits are not in the tables: {places}")
    return f"Nothing was lost: node {killed} was killed, and all {acknowledged:,} acknowledged commits are in the tables."


def table_of(partitions: Sequence[ComparedPartition]) -> pa.Table:
    """Return the comparison as a table, with a column for the losses."""
    return pa.Table.from_pylist([{**each._asdict(), "lost": each.lost} for each in partitions])
