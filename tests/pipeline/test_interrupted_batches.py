"""An interrupted batch leaves no trace, with any successor: itself, a longer range, a sweep, or maintenance."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from created_tables import created_tables
from cut_off_batches import dying_before
from log_builder import Log, member
from table_logs import change_table

from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.batch.expiry_sweep import sweep
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.tables import definitions
from pipelines.tables.store import TableStore
from pipelines.upkeep.maintain import Maintenance, maintain

ERA = Era.named("4")
WEEKS_LATER_MS = 1_700_000_000_000 + 30 * 86_400_000


def whole_log() -> Log:
    log = Log(partition=3)
    log.commit(0, 1, group="a")
    log.commit(1, 2, group="a", producer=7)
    log.group([member()], group="b")
    # the interrupted batch starts here
    log.commit(0, 5, group="a")
    log.marker(7)
    log.group([], group="b")
    log.group_tombstone("b")
    log.commit(0, 9, group="c")
    log.raw(b"\x00\x63", b"")
    # and these records follow it
    log.commit(0, 7, group="a")
    log.commit(1, 8, group="d")
    return log


LOG = whole_log()
FIRST, CUT_OFF = 3, 9


def applier(root: Path) -> BatchApplier:
    return BatchApplier(TableStore(str(root)), ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000)


@pytest.fixture(scope="module")
def first_batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("first") / "tables"
    created_tables(root)
    applier(root).apply_rows(change_table(LOG, ERA, 0, FIRST))
    return root


@pytest.fixture
def root(first_batch: Path, tmp_path: Path) -> Path:
    """Tables that have the first batch."""
    return Path(shutil.copytree(first_batch, tmp_path / "tables"))


def contents(root: Path) -> dict[str, list[str]]:
    """All rows, without columns that count batches."""
    snapshot = Snapshot.open(str(root))
    tables = {
        # version 0 has no rows, and is not opened
        name: snapshot.query(f"SELECT * FROM {name}").to_pylist() if snapshot.batch.versions[name] else []
        for name in definitions.WRITE_ORDER[:-1]
    }
    return {name: sorted(str({**row, "batch_id": None}) for row in rows) for name, rows in tables.items()}


@pytest.fixture(scope="module")
def complete(first_batch: Path) -> dict[str, list[str]]:
    """Rows before the interrupted batch."""
    return contents(first_batch)


@pytest.fixture(scope="module")
def undisturbed(first_batch: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Rows of state tables after all of it, in the two batches that a longer range makes."""
    root = Path(shutil.copytree(first_batch, tmp_path_factory.mktemp("undisturbed") / "tables"))
    applier(root).apply_rows(change_table(LOG, ERA, FIRST, LOG.end))
    return contents(root)


@pytest.mark.parametrize("step", definitions.FROM_RECORDS)
def test_the_next_range_is_longer(step: str, root: Path, undisturbed: dict[str, list[str]]) -> None:
    with dying_before(step):
        applier(root).apply_rows(change_table(LOG, ERA, FIRST, CUT_OFF))
    assert Snapshot.open(str(root)).batch.batch_id == 0
    applier(root).apply_rows(change_table(LOG, ERA, FIRST, LOG.end))
    assert contents(root) == undisturbed
    assert check(str(root)) == []


@pytest.mark.parametrize("step", definitions.FROM_RECORDS)
def test_maintenance_does_not_publish_it(step: str, root: Path, complete: dict[str, list[str]]) -> None:
    with dying_before(step):
        applier(root).apply_rows(change_table(LOG, ERA, FIRST, CUT_OFF))
    maintain(str(root), Maintenance(9_999, 168, 16), datetime.now(UTC), lambda _line: None)
    assert contents(root) == complete
    assert check(str(root)) == []


@pytest.mark.parametrize(
    "step", ["offsets", "group_records", "groups", "offset_history", "group_history", "membership_history", "batches"]
)
def test_a_sweep_that_was_cut_off_takes_no_rows_from_the_next_batch(step: str, root: Path) -> None:
    with dying_before(step):
        sweep(TableStore(str(root)), ERA, ERA.default_retention_ms, WEEKS_LATER_MS)
    applier(root).apply_rows(change_table(LOG, ERA, FIRST, LOG.end))
    found = Snapshot.open(str(root)).query("SELECT DISTINCT group_id FROM committed_offsets ORDER BY group_id")
    assert found["group_id"].to_pylist() == ["a", "c", "d"]
    assert check(str(root)) == []


def test_what_a_kill_leaves_in_a_log_is_no_part_of_it(root: Path, complete: dict[str, list[str]]) -> None:
    """A file is first put into a log under a temporary name; a kill can happen before it gets its final one."""
    for name in definitions.WRITE_ORDER:
        for left in ("00000000000000000007.json#1", "00000000000000000007.checkpoint.parquet#12", "_commit_x.json.tmp"):
            (root / name / "_delta_log" / left).write_bytes(b"{")
    assert contents(root) == complete
    assert check(str(root)) == []
    applier(root).apply_rows(change_table(LOG, ERA, FIRST, LOG.end))
    maintain(str(root), Maintenance(9_999, 168, 16), datetime.now(UTC), lambda _line: None)
    assert check(str(root)) == []
