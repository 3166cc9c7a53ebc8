"""Partitions that are flushed together, by fsyncs outside of the interpreter."""

import os
from pathlib import Path

import pytest
from appended_logs import NOW_MS, commit

from coordinator_core.segment_log.errors import PartitionFailed
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings


def descriptor_of(folder: Path) -> int:
    """The descriptor with which this process writes the segment of a partition."""
    path = str(max(folder.glob("*.log")))
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") == path:
                return int(name)
        except OSError:
            continue
    raise LookupError(path)


def test_all_are_durable_but_the_one_that_the_system_refuses(tmp_path: Path) -> None:
    log = SegmentLog.open(tmp_path, "t", 4, SegmentLogSettings())
    for number in range(3):
        log.partition(number).append([commit(b"a", b"1")] * (number + 1), NOW_MS)
    # a pipe cannot be flushed to a disk
    reader, writer = os.pipe()
    os.dup2(writer, descriptor_of(tmp_path / "t-1"))
    first, second, third, untouched = log.flush(range(4))
    assert first is third is untouched is None
    assert isinstance(second, PartitionFailed)
    assert "fsync failed: Invalid argument" in str(second)
    assert [log.partition(number).flushed_offset for number in range(4)] == [1, 0, 3, 0]
    with pytest.raises(PartitionFailed, match="until it is reopened"):
        log.partition(1).append([commit(b"a", b"1")], NOW_MS)
    again = log.flush([0, 1])
    assert again[0] is None
    assert isinstance(again[1], PartitionFailed)
    log.close()
    os.close(reader)
    os.close(writer)


def test_nothing_to_flush(tmp_path: Path) -> None:
    log = SegmentLog.open(tmp_path, "t", 1, SegmentLogSettings())
    assert log.flush([]) == []
    assert log.flush([0]) == [None]
    log.close()
