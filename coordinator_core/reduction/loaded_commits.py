"""Offsets of a load, stored as columns until a group is read.

Most groups are not read in the first minutes after a load, so objects are created on first access, one block at a time: the rows
of a few groups, or of one large group.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping

import numpy as np
import pyarrow as pa

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.state.offsets import CommittedOffset

#: Fewest rows of a block, except the last: the fixed cost of a block equals that of ten rows.
_BLOCK_ROWS = 256

#: Converts rows of a reduction's `commits` to group, partition and commit.
Rows = Callable[[pa.Table], Iterable[tuple[str, TopicPartition, CommittedOffset]]]
Commits = MutableMapping[TopicPartition, CommittedOffset]


class LoadedCommits(MutableMapping[TopicPartition, CommittedOffset]):
    """The committed offsets of one group. The size is known before the objects exist."""

    __slots__ = ("_block", "_made", "_size")

    def __init__(self, block: "_Block", size: int) -> None:
        self._block: _Block | None = block
        self._size = size
        self._made: dict[TopicPartition, CommittedOffset] = {}

    def __getitem__(self, partition: TopicPartition) -> CommittedOffset:
        return self._commits()[partition]

    def __setitem__(self, partition: TopicPartition, commit: CommittedOffset) -> None:
        self._commits()[partition] = commit

    def __delitem__(self, partition: TopicPartition) -> None:
        del self._commits()[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._commits())

    def __len__(self) -> int:
        return self._size if self._block is not None else len(self._made)

    def take(self, made: dict[TopicPartition, CommittedOffset]) -> None:
        """Replace the columns by the objects made from them."""
        self._block, self._made = None, made

    def _commits(self) -> dict[TopicPartition, CommittedOffset]:
        if self._block is not None:
            self._block.make()
        return self._made


class _Block:
    """Consecutive rows of a table sorted by group, and the groups in them."""

    __slots__ = ("_rows", "_table", "groups")

    def __init__(self, table: pa.Table, rows: Rows) -> None:
        self._table = table
        self._rows = rows
        self.groups: dict[str, LoadedCommits] = {}

    def make(self) -> None:
        """Create the objects of all groups of the block."""
        found: dict[str, dict[TopicPartition, CommittedOffset]] = {group: {} for group in self.groups}
        for group, partition, commit in self._rows(self._table):
            found[group][partition] = commit
        for group, commits in found.items():
            self.groups[group].take(commits)


def loaded_commits(commits: pa.Table, rows: Rows) -> dict[str, Commits]:
    """Group the rows of `commits`, without creating objects. `commits` has a column `group_id` and one row per key."""
    if not len(commits):
        return {}
    ids = commits.column("group_id").combine_chunks().dictionary_encode()
    codes = ids.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ordered = commits.take(pa.array(order)).combine_chunks()
    sizes = np.bincount(codes, minlength=len(ids.dictionary))
    ends = np.cumsum(sizes)
    found: dict[str, Commits] = {}
    groups, counts, stops = ids.dictionary.to_pylist(), sizes.tolist(), ends.tolist()
    first = start = 0
    for last, stop in enumerate(stops):
        if stop - start < _BLOCK_ROWS and last < len(groups) - 1:
            continue
        block = _Block(ordered.slice(start, stop - start), rows)
        block.groups = {groups[each]: LoadedCommits(block, counts[each]) for each in range(first, last + 1)}
        found |= block.groups
        first, start = last + 1, stop
    return found
