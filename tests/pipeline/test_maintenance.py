"""What `maintain` keeps and what it deletes."""

import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from log_builder import NOW_MS, Log, member
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.upkeep.maintain import Maintenance, maintain


def test_history_is_removed_by_age_and_state_is_kept(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.commit(0, 5)
    log.group([member()])
    applied(log, Era.named("4"), [], str(tmp_path))
    logged_at = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    for days_later, kept in ((29, True), (31, False)):
        maintain(str(tmp_path), Maintenance(30, 168, 16), logged_at + timedelta(days=days_later), lambda _line: None)
        snapshot = Snapshot.open(str(tmp_path))
        for history in ("offset_history", "group_history", "membership_history", "ownership_history"):
            assert bool(snapshot.query(f"SELECT * FROM {history}").num_rows) is kept
        assert snapshot.query("SELECT * FROM offsets").num_rows == 1
        assert check(str(tmp_path)) == []


def test_files_of_killed_jobs_go_when_they_are_old_enough(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.commit(0, 5)
    applied(log, Era.named("4"), [], str(tmp_path))
    old, fresh = (tmp_path / "offsets" / f"part-00000-{name}-c000.snappy.parquet" for name in ("old", "fresh"))
    for path, age_hours in ((old, 25), (fresh, 23)):
        path.write_bytes(b"never committed")
        os.utime(path, (time.time() - age_hours * 3_600,) * 2)
    maintain(str(tmp_path), Maintenance(9_999, 24, 16), datetime.now(UTC), lambda _line: None)
    assert (old.exists(), fresh.exists()) == (False, True)
    assert Snapshot.open(str(tmp_path)).query("SELECT * FROM offsets").num_rows == 1


def test_every_table_and_the_batch_are_reported(tmp_path: Path) -> None:
    log = Log(partition=3)
    for offset in range(3):
        log.commit(0, offset)
    applied(log, Era.named("4"), [1, 2], str(tmp_path))
    lines: list[str] = []
    maintain(str(tmp_path), Maintenance(9_999, 168, 16), datetime.now(UTC), lines.append)
    compacted, removed = (r"{}: \d+ files → \d+", r"{}: \d+ unneeded files removed")
    expected = [
        *(compacted.format(name) for name in definitions.WRITE_ORDER),
        r"batch 3: maintenance, \d+\.\d s",
        *(removed.format(name) for name in definitions.WRITE_ORDER),
    ]
    assert len(lines) == len(expected)
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(expected, lines, strict=True)), lines


def test_what_maintenance_took_is_named(tmp_path: Path) -> None:
    log = Log(partition=3)
    for offset in range(3):
        log.commit(0, offset)
    applied(log, Era.named("4"), [1, 2], str(tmp_path))
    assert Snapshot.open(str(tmp_path), "0").query("SELECT * FROM offsets").num_rows == 1
    maintain(str(tmp_path), Maintenance(9_999, 0, 16), datetime.now(UTC), lambda _line: None)
    with pytest.raises(UsageError, match=r"batch 0 can no longer be read: .*maintain.vacuum_hours"):
        Snapshot.open(str(tmp_path), "0").query("SELECT * FROM offsets")
    for entry in range(2):
        (tmp_path / "offsets" / "_delta_log" / f"{entry:020}.json").unlink()
    with pytest.raises(UsageError, match=r"version 1 of table offsets .* can no longer be read: .*maintain.vacuum_hours"):
        Snapshot.open(str(tmp_path), "0").query("SELECT * FROM offsets")
    assert Snapshot.open(str(tmp_path)).query("SELECT committed_offset FROM offsets").to_pylist() == [{"committed_offset": 2}]
