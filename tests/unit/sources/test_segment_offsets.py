"""Ends of topics from a broker's log directory: log starts, log ends, topic ids, times, and partitions that cannot be read."""

import os
from pathlib import Path
from uuid import UUID

import pytest
from end_offset_rows import samples_from
from segment_builder import LogBuilder

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.health import EndOffsetSample
from coordinator_core.sources.segment_offsets import SegmentOffsetsSampler

NOW_MS = 1_795_000_000_000
CHANGED_MS = NOW_MS - 50_000
PAIR = (b"k", b"v")


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Partition 0 of `orders` has offsets 5 to 8 in two segments."""
    builder = LogBuilder(tmp_path, "orders")
    builder.skip(0, 5)
    builder.append(0, [PAIR, PAIR])
    builder.roll(0)
    builder.append(0, [PAIR, PAIR])
    return builder


def sampled(directory: Path, *partitions: int) -> list[EndOffsetSample]:
    for path in directory.rglob("*.*"):
        os.utime(path, ns=(0, CHANGED_MS * 1_000_000))
    return samples_from(SegmentOffsetsSampler(directory, lambda: NOW_MS).sample({"orders": partitions, "absent": [0]}))


def test_ends_of_a_partition(log: LogBuilder, tmp_path: Path) -> None:
    log.topic_id("orders", UUID(int=9))
    expected = EndOffsetSample(uuid_text(UUID(int=9)), "orders", 0, CHANGED_MS, CHANGED_MS, 5, 9, leader_epoch=0)
    assert sampled(tmp_path, 0, 7) == [expected]
    # the address may be a folder of one partition
    assert sampled(tmp_path / "orders-0", 0) == [expected]


@pytest.mark.usefixtures("log")
def test_a_directory_in_use_has_the_time_of_its_checkpoints_at_most_now(tmp_path: Path) -> None:
    sampled(tmp_path, 0)
    checkpoint = tmp_path / "replication-offset-checkpoint"
    for ahead_ms, expected in ((-2_000, NOW_MS - 2_000), (9_000, NOW_MS)):
        checkpoint.write_text("0\n0\n")
        os.utime(checkpoint, ns=(0, (NOW_MS + ahead_ms) * 1_000_000))
        (sample,) = samples_from(SegmentOffsetsSampler(tmp_path, lambda: NOW_MS).sample({"orders": [0]}))
        assert (sample.asked_at_ms, sample.answered_at_ms) == (expected, expected)


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("lines", "start"), [("orders 0 6", 6), ("orders 0 2", 5), ("orders 1 8", 5), ("orders x y", 5)])
def test_a_log_start_inside_a_segment(tmp_path: Path, lines: str, start: int) -> None:
    (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\n{lines}\n")
    assert sampled(tmp_path, 0)[0].log_start == start


def test_a_torn_batch_is_not_counted(log: LogBuilder, tmp_path: Path) -> None:
    log.append(0, [PAIR, PAIR, PAIR])
    log.tear(0, 3)
    assert sampled(tmp_path, 0)[0].log_end == 9


def test_an_empty_segment_ends_at_its_base_offset(log: LogBuilder, tmp_path: Path) -> None:
    log.roll(0)
    assert [(s.log_start, s.log_end) for s in sampled(tmp_path, 0)] == [(5, 9)]
    log.roll(1)
    assert [(s.log_start, s.log_end) for s in sampled(tmp_path, 1)] == [(0, 0)]


def index_of(log: LogBuilder, *entries: tuple[int, int]) -> None:
    """An offset index of the newest segment, preallocated as brokers do."""
    data = b"".join(offset.to_bytes(4, "big") + position.to_bytes(4, "big") for offset, position in entries)
    log.segment(0).with_suffix(".index").write_bytes(data.ljust(800, b"\0"))


def test_the_scan_begins_at_the_last_index_entry(log: LogBuilder, tmp_path: Path) -> None:
    size = log.segment(0).stat().st_size
    log.append(0, [PAIR])
    # unreadable bytes before the entry are not looked at
    with log.segment(0).open("r+b") as file:
        file.write(b"\xff" * size)
    index_of(log, (2, size))
    assert sampled(tmp_path, 0)[0].log_end == 10


@pytest.mark.parametrize("entry", [(2, 13), (2, 100_000), (90, 1)])
def test_an_index_of_another_segment_is_ignored(log: LogBuilder, tmp_path: Path, entry: tuple[int, int]) -> None:
    index_of(log, entry)
    assert sampled(tmp_path, 0)[0].log_end == 9


@pytest.mark.usefixtures("log")
def test_a_segment_that_cannot_be_read_has_a_reason(tmp_path: Path) -> None:
    (tmp_path / "orders-3" / "00000000000000000000.log").mkdir(parents=True)
    samples = sampled(tmp_path, 0, 3)
    assert [(s.partition, s.log_end, s.reason) for s in samples] == [(0, 9, None), (3, None, "unreadable_segment")]
