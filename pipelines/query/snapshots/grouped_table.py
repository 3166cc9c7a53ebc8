"""A table sorted by group, with an index of the rows of each group."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s

_GROUP = "group_id"


class GroupedTable:
    """A table sorted by `group_id`, then by the other columns of `key`. Finding the rows of a group takes microseconds."""

    def __init__(self, rows: pa.Table, *key: str) -> None:
        order = pc.sort_indices(rows, [(name, "ascending") for name in (_GROUP, *key)])
        # by column: a table that is sorted and joined as a whole needs three times its memory
        columns = [_one_chunk(column).take(order) for column in rows.columns]
        self._set(pa.Table.from_arrays(columns, schema=rows.schema))

    def _set(self, rows: pa.Table) -> None:
        self.table = rows
        runs = pc.run_end_encode(_one_chunk(self.table[_GROUP]), run_end_type=pa.int64())
        #: Names of the groups with rows, sorted.
        self.groups: pa.Array = runs.values
        #: The rows of group number i begin at `starts[i]` and end before `starts[i + 1]`.
        self.starts: Int64s = np.concatenate(([0], runs.run_ends.to_numpy()))

    def with_groups(self, groups: pa.Array) -> "GroupedTable":
        """The rows of some groups, in the same order."""
        found = GroupedTable.__new__(GroupedTable)
        found._set(self.table.filter(pc.is_in(self.table[_GROUP], groups)).combine_chunks())
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {group: number for number, group in enumerate(self.groups.to_pylist())}

    def of(self, group: str) -> pa.Table:
        """The rows of a group; none if it has none."""
        number = self._numbers.get(group)
        if number is None:
            return self.table.slice(0, 0)
        start, end = self.starts[number : number + 2]
        return self.table.slice(start, end - start)

    def __contains__(self, group: object) -> bool:
        return group in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self.groups)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
