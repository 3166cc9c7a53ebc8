"""The rows of one table in the order of another one."""

import pyarrow as pa
import pytest

from pipelines.lag.columns import row_numbers


def keys(*rows: tuple[str, int]) -> pa.Table:
    groups, partitions = zip(*rows, strict=True)
    return pa.table({"group_id": groups, "topic": ["t"] * len(rows), "partition": pa.array(partitions, pa.int32())})


@pytest.mark.parametrize("others", [0, 20])
def test_a_key_with_two_rows_has_the_first_one(others: int) -> None:
    """A first load of an earlier version wrote both, where the group had records in two log partitions."""
    of = keys(("a", 0), ("a", 0), ("a", 1), ("b", 0), *(("c", number) for number in range(others)))
    assert row_numbers(keys(("b", 0), ("a", 0), ("a", 1), ("z", 1)), of).tolist() == [3, 0, 2, -1]
