"""The time between two batches that a run expects, and the batches of runs that find nothing new."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aged_tables import run_at
from appended_logs import commit, opened
from jobs import run_job, run_options

from coordinator_core.segment_log.settings import SegmentLogSettings
from pipelines.job.expected_interval import expected_interval, regular_distance
from pipelines.query.check import check
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance, maintain

AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BROKERS = "kafka://localhost:9092/__consumer_offsets"


def last_batch(root: Path) -> Batch:
    batch = TableStore(str(root)).last_batch()
    assert batch is not None
    return batch


@pytest.mark.parametrize(
    ("source", "changed", "expected"),
    [
        (BROKERS, {"trigger": "10s", "lag_interval_seconds": 30}, 30),
        (BROKERS, {"trigger": "5m", "lag_interval_seconds": 30}, 300),
        (BROKERS, {"trigger": "continuous", "lag_interval_seconds": 30}, 30),
        (BROKERS, {"trigger": "500ms", "lag_interval_seconds": 30}, 30),
        # without samples a batch is written only for records of the log
        (BROKERS, {"trigger": "10s", "lag_interval_seconds": 0}, 0),
        ("spark-kafka://localhost:9092/__consumer_offsets", {"trigger": "10s", "lag_interval_seconds": 30}, 0),
        ("jsonl:dump", {"trigger": "10s", "lag_interval_seconds": 30}, 0),
        ("segments:/data", {"trigger": "1s", "lag_interval_seconds": 30}, 30),
        (BROKERS, {"lag_interval_seconds": 30, "schedule_seconds": 900}, 900),
        (BROKERS, {"lag_interval_seconds": 30}, 0),
    ],
)
def test_the_interval_of_a_run(tmp_path: Path, source: str, changed: dict[str, Any], expected: int) -> None:
    assert expected_interval(run_options(source, tmp_path, **changed), TableStore(str(tmp_path)), None, AT) == expected


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        ([15, 15, 15], 900),
        ([14, 16, 15], 960),
        # one missed run
        ([15, 15, 30, 15], 900),
        ([15, 15], 0),
        # runs by hand
        ([3, 40, 11, 95], 0),
        ([0.1, 0.1, 0.1], 0),
        # a night without the scheduler
        ([15, 480, 15, 16], 960),
        # only the newest distances count
        ([15, 15, 15, 15, 60, 60, 60, 60, 60], 3_600),
    ],
)
def test_a_schedule_is_the_regular_distance_of_runs(minutes: list[float], expected: int) -> None:
    times = [AT]
    for distance in minutes:
        times.append(times[-1] + distance * MINUTE)
    assert regular_distance(times) == expected


def test_a_schedule_is_estimated_from_the_runs_in_the_tables(tmp_path: Path) -> None:
    options = run_options(BROKERS, tmp_path, lag_interval_seconds=30)
    store = TableStore(str(tmp_path))
    for number in range(3):
        # a run with several batches begins with its first one
        run_at(tmp_path, [AT + 15 * number * MINUTE, AT + (15 * number + 3) * MINUTE])
        assert expected_interval(options, store, store.last_batch(), AT + 15 * (number + 1) * MINUTE) == (
            900 if number > 1 else 0
        )
    # maintenance is no run
    maintain(str(tmp_path), Maintenance(90, 168, 16), AT, lambda _line: None)
    assert expected_interval(options, store, store.last_batch(), AT + 45 * MINUTE) == 900


def test_batches_of_other_programs_keep_the_interval(tmp_path: Path) -> None:
    run_at(tmp_path, [AT], 900)
    maintain(str(tmp_path), Maintenance(90, 168, 16), AT, lambda _line: None)
    assert last_batch(tmp_path).interval_seconds == 900
    # a job that has no expectation removes it
    run_at(tmp_path, [AT + MINUTE], 0)
    assert last_batch(tmp_path).interval_seconds is None


def log_with_a_record(folder: Path) -> str:
    log = opened(folder, SegmentLogSettings())
    log.partition(0).append([commit(b"key", b"value")], 1_795_300_000_000)
    log.close()
    return f"segments:{folder}"


@pytest.mark.parametrize("with_claim", [False, True])
def test_a_scheduled_run_without_new_records_leaves_a_batch(
    tmp_path: Path, with_claim: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, tables = log_with_a_record(tmp_path / "log"), tmp_path / "tables"
    run_at(tables, [AT])
    if with_claim:
        # as in an object store: a claim instead of a lock
        monkeypatch.setattr("pipelines.tables.writer_lock._acquire", lambda *_: False)
    run_job(source, tables, driver_records=100, schedule_seconds=900)
    first = last_batch(tables)
    assert (first.records_read, first.interval_seconds) == (1, 900)
    lines = run_job(source, tables, driver_records=100, schedule_seconds=900)
    second = last_batch(tables)
    assert (second.batch_id, second.records_read, second.interval_seconds) == (first.batch_id + 1, 0, 900)
    assert (second.next_offsets, second.records_behind) == (first.next_offsets, 0)
    assert second.log_read_until is not None
    assert any("no new records" in line for line in lines)
    assert check(str(tables)) == []


def test_an_unscheduled_run_without_new_records_writes_nothing(tmp_path: Path) -> None:
    source, tables = log_with_a_record(tmp_path / "log"), tmp_path / "tables"
    run_at(tables, [AT])
    run_job(source, tables, driver_records=100)
    before = last_batch(tables)
    run_job(source, tables, driver_records=100)
    assert last_batch(tables) == before


def test_a_claim_without_an_interval_keeps_that_of_the_last_batch(tmp_path: Path) -> None:
    run_at(tmp_path, [AT], 30)
    writer = TablesWriter.claim(TableStore(str(tmp_path)))
    assert writer.interval_seconds is None
