"""Runs that read few new records without Spark: same tables, and a position that the next run of either kind continues at."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from appended_logs import NOW_MS, commit, folder_of, opened
from crash_log import CrashLog
from created_tables import created_tables
from jobs import run_job, run_options
from killed_runs import Workload
from patience import PATIENCE_SECONDS
from table_contents import contents

from coordinator_core.segment_log.settings import SegmentLogSettings
from pipelines.job import job
from pipelines.job.run_in_driver import fits_driver
from pipelines.job.stored_position import FILE, known_epochs, replace_checkpoint
from pipelines.query.check import check
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.phases import Phases
from pipelines.runtime.stop_request import StopRequest
from pipelines.runtime.timestamps import at_ms
from pipelines.source.position import Position
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter


@pytest.fixture
def log(tmp_path: Path) -> CrashLog:
    made = CrashLog(tmp_path / "log", 7)
    made.grow()
    return made


def undisturbed(log: CrashLog, root: Path) -> Path:
    """Tables with a batch per step of the log."""
    workload = Workload(log, vacuum_hours=1)
    for step in range(len(log.ends)):
        workload.apply(root, step - 1, step)
    return root


def run(log: CrashLog, tables: Path) -> list[str]:
    """A run that expires as `undisturbed` does."""
    now_ms = log.time_ms(len(log.ends))
    return run_job(log.address, tables, expiry="apply", now_ms=now_ms, driver_records=100_000)


def test_the_tables_are_those_of_batches_of_spark(log: CrashLog, tmp_path: Path) -> None:
    tables = undisturbed(log, tmp_path / "tables")
    for _ in range(2):
        log.grow()
        lines = run(log, tables)
        assert "starting Spark" not in lines
        assert any(line.startswith("batch ") and "records read" in line for line in lines)
    assert contents(tables) == contents(undisturbed(log, tmp_path / "calm"))
    assert check(str(tables)) == []


@pytest.mark.parametrize(
    ("new", "changed", "expected"),
    [
        (100, {}, True),
        (101, {}, False),
        (100, {"driver_records": 0}, False),
        (100, {"bulk_rows": 99}, False),
        (100, {"max_records": 99}, False),
        (100, {"max_records": 100}, True),
        (1, {"trigger": "10s"}, False),
    ],
)
def test_runs_that_need_spark(new: int, changed: dict[str, Any], expected: bool) -> None:
    options = run_options("segments:/nowhere", "tables", **({"driver_records": 100} | changed))
    assert fits_driver(options, {0: 50, 1: 7}, {0: 50 + new, 1: 7}) is expected
    assert not fits_driver(options, {0: 50}, None)


def test_a_run_without_new_records_loads_neither_spark_nor_the_compiler(log: CrashLog, tmp_path: Path) -> None:
    program = (
        "import json, sys\n"
        "from pipelines.cli import main\n"
        "assert main() == 0\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    tables = undisturbed(log, tmp_path / "tables")
    command = [sys.executable, "-c", program, "run", "--source", log.address, "--tables", str(tables)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert "up to date" in found.stderr
    assert set(json.loads(found.stdout)) & {"pyspark", "numba", "llvmlite", "pandas", "sqlglot", "kafka"} == set()


def test_a_stop_before_the_batch_writes_nothing(log: CrashLog, tmp_path: Path) -> None:
    tables = undisturbed(log, tmp_path / "tables")
    log.grow()
    before, stop, lines = contents(tables), StopRequest(), list[str]()
    stop.request()
    job.run(run_options(log.address, tables, driver_records=1_000), lines.append, lambda: NOW_MS, stop)
    assert lines == []
    assert contents(tables) == before
    assert run(log, tables)


def test_a_log_that_cannot_be_read_any_more_is_one_line(log: CrashLog, tmp_path: Path) -> None:
    tables = undisturbed(log, tmp_path / "tables")
    log.grow()
    (segment, *_) = (tmp_path / "log").glob("__consumer_offsets-0/*.log")
    segment.rename(segment.with_name("00000000000000001000.log"))
    with pytest.raises(GrouplakeError, match="now starts at offset 1000"):
        run(log, tables)


class Written:
    """A log of the coordinator, whose leader epoch grows with every opening."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, *values: bytes) -> None:
        log = opened(self.folder, SegmentLogSettings())
        log.partition(0).append([commit(b"key", value) for value in values], NOW_MS)
        log.close()

    def run(self, tables: Path) -> list[str]:
        return run_job(f"segments:{self.folder}", tables, driver_records=100)

    def cut_and_grow(self) -> None:
        """Lose the newest records, and grow beyond the old end in a later leader epoch."""
        (path,) = folder_of(self.folder).glob("*.log")
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 3)
        self.append(*(b"%d" % number for number in range(10)))


def tables_before(folder: Path) -> Path:
    """Tables with a batch without records, so that the next run needs no Spark."""
    store = created_tables(folder)
    writer = TablesWriter.claim(store)
    writer.begin()
    writer.finish(Phases(at_ms(NOW_MS)), at_ms(NOW_MS), era="4", retention_ms=1, next_offsets={})
    return folder


def test_a_log_that_lost_records_and_has_grown_again_is_found_by_its_epochs(tmp_path: Path) -> None:
    log, tables = Written(tmp_path / "log"), tables_before(tmp_path / "tables")
    log.append(b"1", b"2")
    log.run(tables)
    log.append(b"3")
    log.run(tables)
    assert json.loads((tables / FILE).read_text()) == [
        {"0": 2, "leader_epochs": {"0": 0}},
        {"0": 3, "leader_epochs": {"0": 1}},
    ]
    log.cut_and_grow()
    before = contents(tables)
    with pytest.raises(GrouplakeError, match="partition 0: the log was truncated to offset 1, before offset 3 where the tables"):
        log.run(tables)
    assert contents(tables) == before


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_runs_with_and_without_spark_continue_each_other(tmp_path: Path) -> None:
    log, tables = Written(tmp_path / "log"), tmp_path / "tables"
    log.append(b"1", b"2")
    address = f"segments:{log.folder}"
    run_job(address, tables)
    assert (tables / "_checkpoint").is_dir()
    # the epochs are those of Spark's checkpoint
    assert known_epochs(tables, {0: 2}) == {0: 0}
    log.append(b"3")
    assert "starting Spark" not in log.run(tables)
    assert not (tables / "_checkpoint").exists()
    log.append(b"4")
    assert "starting Spark" in run_job(address, tables)
    assert known_epochs(tables, {0: 4}) == {0: 2}
    last = TableStore(str(tables)).last_batch()
    assert last is not None
    assert dict(last.next_offsets) == {0: 4}
    assert check(str(tables)) == []
    log.append(b"5")
    log.run(tables)
    # a stream of Spark compares the epochs that the run before it has kept
    log.cut_and_grow()
    with pytest.raises(GrouplakeError, match=r"the log was truncated to offset \d, before offset 5 where the tables"):
        run_job(address, tables)


def test_only_a_position_with_the_offsets_of_the_tables_counts(tmp_path: Path) -> None:
    begin, end = Position({0: 5, 1: 0}, {0: 3}), Position({0: 9, 1: 0}, {0: 4})
    assert known_epochs(tmp_path, {0: 5}) == {}
    replace_checkpoint(tmp_path, begin, end)
    # before and after the batch
    assert known_epochs(tmp_path, {0: 5}) == {0: 3}
    assert known_epochs(tmp_path, {0: 9}) == {0: 4}
    assert known_epochs(tmp_path, {0: 9, 1: 1}) == {}
    assert known_epochs(tmp_path, {0: 10}) == {}
    for torn in ("", "[", "{}", "[1]", '[{"0": 9}, 3]', '{"0": 9}'):
        (tmp_path / FILE).write_text(torn)
        assert known_epochs(tmp_path, {0: 9}) == {}


def test_positions_in_the_checkpoint_of_spark(tmp_path: Path) -> None:
    offsets = tmp_path / "_checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    for number, offset in ((8, 80), (9, 90), (10, 100)):
        position = Position({0: offset}, {0: number}).to_json()
        (offsets / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(position)}')
    (offsets / ".10.crc").write_bytes(b"crc")
    # the newest entry may be of a batch that was not applied
    assert known_epochs(tmp_path, {0: 100}) == {0: 10}
    assert known_epochs(tmp_path, {0: 90}) == {0: 9}
    assert known_epochs(tmp_path, {0: 80}) == {}
    (offsets / "10").write_text("")
    assert known_epochs(tmp_path, {0: 90}) == {0: 9}


def test_a_checkpoint_that_cannot_be_removed_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_checkpoint").mkdir()
    monkeypatch.setattr("pipelines.job.stored_position.shutil.rmtree", lambda *_arguments, **_options: None)
    with pytest.raises(OSError, match=r"cannot remove .*_checkpoint, Spark's checkpoint of an earlier position"):
        replace_checkpoint(tmp_path, Position({0: 1}), Position({0: 2}))
