"""Every batch reports the duration of its phases: one of the log, a sweep, a maintenance."""

from datetime import UTC, datetime
from pathlib import Path

from log_builder import NOW_MS, Log
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.batch.expiry_sweep import sweep
from pipelines.query.engine import Snapshot
from pipelines.tables.store import TableStore
from pipelines.upkeep.maintain import Maintenance, maintain

ERA = Era.named("4")


def test_phases_of_every_kind_of_batch(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.commit(0, 5)
    applied(log, ERA, [], str(tmp_path))
    assert sweep(TableStore(str(tmp_path)), ERA, ERA.default_retention_ms, NOW_MS + 2 * ERA.default_retention_ms) is not None
    maintain(str(tmp_path), Maintenance(90, 168, 16), datetime.now(UTC), lambda _line: None)
    batches = Snapshot.open(str(tmp_path)).query("SELECT phase_ms FROM batches ORDER BY batch_id").to_pylist()
    phases = [{name for name, ms in row["phase_ms"] if ms >= 0} for row in batches]
    histories = {"write_offset_history", "write_group_history", "write_membership_history"}
    states = {"write_offsets", "write_groups", "write_group_records"}
    assert {"plan", "write_offsets"} <= phases[0]
    assert phases[1:] == [{"read", "plan"} | histories | states, {"age", "compact", "thin"}]
