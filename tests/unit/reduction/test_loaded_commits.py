"""Offsets of a load become objects on first access, a block of groups at a time."""

from collections.abc import Iterable

import pyarrow as pa

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.reduction.loaded_commits import loaded_commits
from coordinator_core.state.offsets import CommittedOffset

GROUPS = 40
KEYS = 20


def commit(offset: int) -> CommittedOffset:
    return CommittedOffset(offset, None, "", 0, None, None, -1, 0, offset)


class Made:
    """Makes objects from rows, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def rows(self, table: pa.Table) -> Iterable[tuple[str, TopicPartition, CommittedOffset]]:
        self.count += len(table)
        for row in table.to_pylist():
            yield row["group_id"], TopicPartition("t", row["partition"]), commit(row["offset"])


def table() -> pa.Table:
    """Rows of all groups in turn."""
    numbers = range(GROUPS * KEYS)
    return pa.table(
        {
            "group_id": [f"g{number % GROUPS}" for number in numbers],
            "partition": [number // GROUPS for number in numbers],
            "offset": list(numbers),
        }
    )


def test_every_group_has_its_own() -> None:
    found = loaded_commits(table(), Made().rows)
    assert len(found) == GROUPS
    for group in range(GROUPS):
        assert dict(found[f"g{group}"]) == {
            TopicPartition("t", number): commit(number * GROUPS + group) for number in range(KEYS)
        }


def test_counting_creates_no_commits_and_a_lookup_creates_neighbours() -> None:
    made = Made()
    found = loaded_commits(table(), made.rows)
    assert sum(len(commits) for commits in found.values()) == GROUPS * KEYS
    assert all(found.values())
    assert made.count == 0
    assert found["g0"][TopicPartition("t", 1)].offset == GROUPS
    once = made.count
    assert KEYS <= once < GROUPS * KEYS
    assert TopicPartition("t", KEYS) not in found["g0"]
    assert len(found["g1"]) == len(list(found["g1"])) == KEYS
    assert made.count == once


def test_what_was_loaded_can_change() -> None:
    found = loaded_commits(table(), Made().rows)
    one, other = TopicPartition("t", 0), TopicPartition("u", 0)
    found["g3"][other] = commit(7)
    del found["g3"][one]
    assert found["g3"].pop(one, None) is None
    assert len(found["g3"]) == KEYS
    found["g3"].clear()
    assert not found["g3"]
    assert len(found["g4"]) == KEYS


def test_nothing_was_loaded() -> None:
    assert loaded_commits(table().slice(0, 0), Made().rows) == {}
