"""Incomplete segments: a torn end is reported and read once it is complete, damage before it is quarantined."""

from pathlib import Path
from typing import Any

import pytest
from jobs import NOW_MS, run_job
from segment_builder import LogBuilder

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.sources.segments import SegmentSource
from coordinator_core.state.era import Era
from pipelines.job import job
from pipelines.job.run_in_driver import run_in_driver
from pipelines.query.check import check
from pipelines.query.engine import Snapshot


def commit(offset: int) -> tuple[bytes, bytes | None]:
    return encode(Record(1, OffsetCommitKey("g", "t", offset), OffsetCommitValue(offset, commit_timestamp=1), 3))


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run reads in this process."""
    monkeypatch.setattr(job, "run_in_spark", run_in_driver)


def lines_of_run(source: str, tables: Path, **more: Any) -> list[str]:
    """The lines of a run, without those of its batches."""
    return [line for line in run_job(source, tables, **more) if not line.startswith("batch ")]


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "log")


def committed(tables: Path) -> list[int]:
    rows = Snapshot.open(str(tables)).query("SELECT committed_offset FROM committed_offsets ORDER BY 1").to_pylist()
    return [row["committed_offset"] for row in rows]


def quarantined(tables: Path) -> list[tuple[int, str]]:
    rows = Snapshot.open(str(tables)).query("SELECT log_offset, reason FROM quarantine ORDER BY log_offset").to_pylist()
    return [(row["log_offset"], row["reason"]) for row in rows]


@pytest.mark.parametrize("left_off", [1, 40, 68])
def test_a_torn_end_is_reported_and_read_when_it_is_whole(left_off: int, log: LogBuilder, tmp_path: Path) -> None:
    tables, source = tmp_path / "tables", f"segments:{log.directory}"
    log.append(0, [commit(1)])
    start = log.segment(0).stat().st_size
    log.append(0, [commit(2)])
    whole = log.segment(0).read_bytes()
    log.tear(0, left_off)
    for first_lines in ([], [f"up to date: {source} has no records after batch 0"]):
        progress = lines_of_run(source, tables)
        assert progress == [
            *first_lines,
            f"{log.segment(0)}: the last {len(whole) - start - left_off} bytes, from byte {start} and offset 1, are an "
            "incomplete batch and were not read; the next run reads it once it is complete",
        ]
        assert committed(tables) == [1]
    log.segment(0).write_bytes(whole)
    assert lines_of_run(source, tables) == []
    assert committed(tables) == [1, 2]
    assert quarantined(tables) == []
    assert check(str(tables)) == []


def test_a_batch_torn_before_the_newest_segment_is_quarantined(log: LogBuilder, tmp_path: Path) -> None:
    tables, source = tmp_path / "tables", f"segments:{log.directory}"
    log.append(0, [commit(1)])
    start = log.segment(0).stat().st_size
    log.append(0, [commit(2)])
    log.tear(0, 5)
    log.roll(0)
    log.append(0, [commit(3)])
    for lines in ([], [f"up to date: {source} has no records after batch 0"]):
        assert lines_of_run(source, tables) == lines
        assert committed(tables) == [1, 3]
        assert quarantined(tables) == [(1, f"batch at offset 1, byte {start}: the bytes end inside a batch")]
    assert check(str(tables)) == []


def test_an_end_that_was_torn_and_never_finished_is_quarantined_later(log: LogBuilder, tmp_path: Path) -> None:
    tables, source = tmp_path / "tables", f"segments:{log.directory}"
    log.append(0, [commit(1)])
    log.append(0, [commit(2)])
    log.tear(0, 5)
    assert len(lines_of_run(source, tables)) == 1
    log.roll(0)
    log.append(0, [commit(3)])
    assert lines_of_run(source, tables) == []
    assert committed(tables) == [1, 3]
    assert [offset for offset, _ in quarantined(tables)] == [1]


def test_a_corrupt_batch_is_read_and_quarantined(log: LogBuilder, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    sizes = []
    for number in (1, 2, 3):
        log.append(0, [commit(number)])
        sizes.append(log.segment(0).stat().st_size)
    data = bytearray(log.segment(0).read_bytes())
    data[sizes[1] - 20] ^= 1
    log.segment(0).write_bytes(data)
    lines_of_run(f"segments:{log.directory}", tables)
    ((offset, reason),) = quarantined(tables)
    assert offset == 1
    assert "checksum does not match" in reason
    assert check(str(tables)) == []


def test_an_impossible_length_ends_the_log_and_is_reported(log: LogBuilder, tmp_path: Path) -> None:
    tables, source = tmp_path / "tables", f"segments:{log.directory}"
    log.append(0, [commit(1)])
    start = log.segment(0).stat().st_size
    log.append(0, [commit(2)])
    log.append(0, [commit(3)])
    data = bytearray(log.segment(0).read_bytes())
    data[start + 8 : start + 12] = bytes(4)
    log.segment(0).write_bytes(data)
    (line,) = lines_of_run(source, tables)
    assert f"the last {len(data) - start} bytes, from byte {start} and offset 1, are" in line
    assert committed(tables) == [1]


def test_torn_ends_of_a_source(log: LogBuilder) -> None:
    log.append(0, [commit(1)])
    log.append(4, [commit(1)])
    log.tear(4, 1)
    log.roll(7)
    source = SegmentSource(log.directory)
    (end,) = source.torn_ends()
    assert (end.partition, end.offset, end.position, end.path) == (4, 0, 0, str(log.segment(4)))


def test_expiry_continues_after_a_torn_end(log: LogBuilder, tmp_path: Path) -> None:
    log.append(0, [commit(1), commit(2)])
    log.append(0, [commit(3)])
    log.tear(0, 1)
    progress = run_job(f"segments:{log.directory}", tmp_path / "tables", expiry="apply", now_ms=NOW_MS, era="4")
    assert [line.partition(",")[0] for line in progress][-1].startswith("batch 1: expiry sweep")
    assert committed(tmp_path / "tables") == []
    assert Era.named("4").default_retention_ms < NOW_MS
