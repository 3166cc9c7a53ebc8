"""Every benchmark runs at a toy size, and its assertions about its own measurements hold; the numbers are ignored."""

import re
import shutil
from pathlib import Path

import pytest

from benchmarks import (
    bench_batches_beside_samples,
    bench_change_feed,
    bench_clients,
    bench_cold_load,
    bench_coordinator,
    bench_executors,
    bench_failover,
    bench_group_polls,
    bench_hostile_clients,
    bench_kept_keys,
    bench_lag,
    bench_lag_storage,
    bench_lag_tables,
    bench_log_columns,
    bench_memory,
    bench_pages,
    bench_reader,
    bench_requests,
    bench_sampling,
    bench_scheduled_run,
    bench_topic_load,
    bench_transactions,
)
from benchmarks.arguments import counts, short
from benchmarks.logs import LogShape, generated_log
from coordinator_core.log.compression import Compression

pytestmark = pytest.mark.long

_TOY = ["--records", "3k", "--keys", "1k"]


def test_counts_are_written_short() -> None:
    assert counts("2M,200k,1500") == (2_000_000, 200_000, 1500)
    assert [short(number) for number in (2_000_000, 200_000, 1500)] == ["2M", "200k", "1500"]


def test_a_generated_log_is_kept_and_has_the_requested_shape(tmp_path: Path) -> None:
    shape = LogShape(20_000, 1_000, per_batch=30, compression=Compression.LZ4)
    log = generated_log(shape, tmp_path)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.log")}
    again = generated_log(shape, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.log")} == written
    assert log.commits + log.tombstones + log.group_records == shape.records
    assert 0.04 < log.tombstones / shape.records < 0.06
    assert 0.005 < log.group_records / shape.records < 0.015
    assert (again.live_keys, again.removed_keys, again.bytes) == (log.live_keys, log.removed_keys, log.bytes)


def test_bytes_to_columns(capsys: pytest.CaptureFixture[str]) -> None:
    bench_log_columns.main(["--records", "300", "--rounds", "1"])
    assert _rows(capsys) == 8


def test_lag(capsys: pytest.CaptureFixture[str]) -> None:
    bench_lag.main(["--records", "300", "--keys", "20", "--rounds", "1"])
    assert _rows(capsys) == 3


def test_samples_of_many_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_lag_tables.main(["--offsets", "1k", "--rounds", "1", "--cache", str(tmp_path)])
    assert _rows(capsys) == 6


@pytest.mark.slow
def test_scheduled_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_scheduled_run.main(["--offsets", "1k", "--records", "100", "--rounds", "1", "--cache", str(tmp_path)])
    assert _rows(capsys) == 1


@pytest.mark.slow
def test_batches_beside_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--offsets", "5k", "--groups", "20", "--batches", "4", "--interval", "3"]
    bench_batches_beside_samples.main([*few, "--cache", str(tmp_path)])
    assert _rows(capsys) == 2


@pytest.mark.slow
def test_change_feed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_change_feed.main(["--offsets", "1k", "--groups", "20", "--changed", "100", "--rounds", "2", "--cache", str(tmp_path)])
    assert _rows(capsys) == 1


def test_storage_of_samples(capsys: pytest.CaptureFixture[str]) -> None:
    bench_lag_storage.main(["--groups", "2", "--hours", "1"])
    assert _rows(capsys) == 3


@pytest.mark.slow
def test_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_pages.main(["--records", "1k", "--days", "1", "--viewers", "3", "--cache", str(tmp_path)])
    assert _rows(capsys) == 16 + 4 + 1 + 3


def test_reader_of_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_reader.main([*_TOY, "--only", "segments", "--rounds", "1", "--cache", str(tmp_path)])
    assert _rows(capsys) == 8


@pytest.mark.slow
@pytest.mark.broker
def test_reader_of_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_reader.main([*_TOY, "--only", "broker", "--rounds", "1", "--without-rivals", "--cache", str(tmp_path)])
    assert _rows(capsys) == 4


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
def test_cold_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_cold_load.main(["--records", "3k,6k", "--keys", "1k", "--rounds", "1", "--cache", str(tmp_path)])
    assert _rows(capsys) > 8


@pytest.mark.slow
@pytest.mark.broker
def test_topic_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_topic_load.main([*_TOY, "--rounds", "1", "--cache", str(tmp_path)])
    assert _rows(capsys) == 2


@pytest.mark.slow
@pytest.mark.broker
def test_coordinator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--rounds", "1", "--seconds", "0.5", "--members", "20", "--idle", "40"]
    bench_coordinator.main([*_TOY, *few, "--cache", str(tmp_path)])
    assert _rows(capsys) == 8 + 3 + 2 + 2


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.skipif(shutil.which("go") is None, reason="the clients are compiled with Go")
def test_clients(capsys: pytest.CaptureFixture[str]) -> None:
    bench_clients.main(["--rounds", "1", "--seconds", "0.5", "--members", "4"])
    assert _rows(capsys) == 2 * 4 + 4 * 2


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.skipif(shutil.which("go") is None, reason="members are compiled with Go")
def test_failover(capsys: pytest.CaptureFixture[str]) -> None:
    bench_failover.main(["--kills", "1"])
    assert _rows(capsys) == 2 * 3


@pytest.mark.slow
@pytest.mark.broker
def test_group_polls(capsys: pytest.CaptureFixture[str]) -> None:
    bench_group_polls.main(["--shapes", "200:2,5:3"])
    assert _rows(capsys) == 2 * 3


def test_hostile_clients(capsys: pytest.CaptureFixture[str]) -> None:
    bench_hostile_clients.main(["--connections", "20", "--requests", "100", "--commits", "10"])
    assert _rows(capsys) == 3 + 2


def test_requests(capsys: pytest.CaptureFixture[str]) -> None:
    bench_requests.main(["--records", "100", "--rounds", "1"])
    assert _rows(capsys) == 4


@pytest.mark.long
def test_transactions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_transactions.main(["--ids", "1k", "--rounds", "1", "--cache", str(tmp_path)])
    assert _rows(capsys) == 4


@pytest.mark.slow
@pytest.mark.spark
def test_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_memory.main([*_TOY, "--batch-records", "2k", "--cache", str(tmp_path)])
    assert _rows(capsys) == 2


@pytest.mark.slow
@pytest.mark.spark
def test_executors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_executors.main([*_TOY, "--cores", "1", "--rounds", "1", "--cache", str(tmp_path)])
    assert _rows(capsys) == 3 + 4


@pytest.mark.slow
@pytest.mark.spark
def test_kept_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_kept_keys.main(["--kept", "1k,2k", "--bulk-rows", "1500", "--cache", str(tmp_path)])
    assert _rows(capsys) == 2


@pytest.mark.slow
@pytest.mark.broker
def test_sampling(capsys: pytest.CaptureFixture[str]) -> None:
    bench_sampling.main(["--records", "400", "--keys", "200", "--rounds", "1"])
    assert _rows(capsys) == 1 + 2


def _rows(capsys: pytest.CaptureFixture[str]) -> int:
    """Rows of all tables, without their heads."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    return len(lines) - 2 * sum(bool(re.fullmatch(r"(\|---)+\|", line)) for line in lines)
