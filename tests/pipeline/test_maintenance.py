"""What `maintain` keeps and what it lets go."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from log_builder import NOW_MS, Log
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.maintain import Maintenance, maintain
from pipelines.query.check import check
from pipelines.query.engine import Snapshot


def test_history_goes_by_age_and_state_stays(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.commit(0, 5)
    log.group([])
    applied(log, Era.named("4"), [], str(tmp_path))
    logged_at = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    for days_later, kept in ((29, True), (31, False)):
        maintain(str(tmp_path), Maintenance(30, 168, 16), logged_at + timedelta(days=days_later), lambda _line: None)
        snapshot = Snapshot.open(str(tmp_path))
        for history in ("offset_history", "group_history"):
            assert bool(snapshot.query(f"SELECT * FROM {history}").num_rows) is kept
        assert snapshot.query("SELECT * FROM offsets").num_rows == 1
        assert check(str(tmp_path)) == []
