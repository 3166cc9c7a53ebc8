"""Numbers of tasks in the user data of Kafka Streams' assignments (`AssignmentInfo`), by version."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.codec.streams_assignment import TaskCounts, task_counts

Task = tuple[int, int]


def task_bytes(version: int, task: Task, name: str = "") -> bytes:
    named = struct.pack(">i", len(name)) + name.encode("utf-16-be") if version >= 10 else b""
    return struct.pack(">ii", *task) + named


def info(version: int, active: list[Task], standby: dict[Task, list[tuple[str, int]]], name: str = "") -> bytes:
    """As `AssignmentInfo.encode`; the fields after the standby tasks are those of version 2, which are not read."""
    head = struct.pack(">i", version) + (struct.pack(">i", version) if version >= 3 else b"")
    found = head + struct.pack(">i", len(active)) + b"".join(task_bytes(version, task, name) for task in active)
    found += struct.pack(">i", len(standby))
    for task, partitions in standby.items():
        found += task_bytes(version, task, name) + struct.pack(">i", len(partitions))
        for topic, partition in partitions:
            found += struct.pack(">H", len(topic)) + topic.encode() + struct.pack(">i", partition)
    return found + struct.pack(">i", 0)


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize("name", ["", "topology"])
def test_counts_of_every_version(version: int, name: str) -> None:
    standby = {(0, 1): [("in", 1), ("store-changelog", 1)], (1, 0): []}
    assert task_counts(info(version, [(0, 0), (1, 1), (2, 7)], standby, name)) == TaskCounts(3, 2)
    assert task_counts(info(version, [], {(0, 0): [("in", 0)]}, name)) == TaskCounts(0, 1)
    assert task_counts(info(version, [], {}, name)) == TaskCounts(0, 0)


@given(st.binary(max_size=60))
def test_other_bytes_have_no_counts(data: bytes) -> None:
    found = task_counts(data)
    assert found is None or (found.active >= 0 and 0 <= found.standby <= len(data))


@pytest.mark.parametrize("data", [b"", b"\0\0\0", struct.pack(">ii", 5, 5), struct.pack(">iii", 4, 4, 2**31 - 1), b"\xff" * 40])
def test_cut_off_bytes(data: bytes) -> None:
    assert task_counts(data) is None
