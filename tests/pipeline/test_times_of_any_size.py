"""Records with any time: the tables show the years 1 to 9999, and every command continues."""

import io
from pathlib import Path

import pytest
from log_builder import Log, member
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.batch.expiry_sweep import sweep
from pipelines.query.engine import Snapshot
from pipelines.query.output import WRITERS
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

ERA = Era.named("4")
LATEST, EARLIEST = "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"


def shown(store: TableStore, sql: str) -> str:
    batch = store.last_batch()
    assert batch is not None
    out = io.StringIO()
    WRITERS["csv"](Snapshot(store, batch).query(sql), out)
    return out.getvalue().splitlines()[-1]


def strange(ms: int) -> Log:
    log = Log(partition=3)
    log.commit(0, 5, group="commit", at=ms)
    log.commit(0, 5, group="expire", expires=ms)
    for record in (log.group([member()], group="state", timestamp=ms), log.raw(b"\0\x63", b"")):
        log.records[record.offset] = record._replace(timestamp=ms)
    return log


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (253_402_300_799_999, LATEST),
        (253_402_300_800_000, LATEST),
        (2**63 - 1, LATEST),
        (-62_135_596_800_000, EARLIEST),
        (-62_135_596_800_001, EARLIEST),
        (-(2**63), EARLIEST),
    ],
)
def test_any_time_can_be_read_back(ms: int, text: str, tmp_path: Path) -> None:
    store = applied(strange(ms), ERA, [], str(tmp_path))
    assert shown(store, "SELECT commit_timestamp FROM offsets WHERE group_id = 'commit'") == text
    assert shown(store, "SELECT expire_timestamp FROM offsets WHERE group_id = 'expire'") == text
    assert shown(store, "SELECT state_timestamp FROM groups WHERE group_id = 'state'") == text
    assert shown(store, "SELECT record_timestamp FROM quarantine") == text
    for name in (*definitions.WRITE_ORDER, *definitions.VIEWS):
        shown(store, f"SELECT * FROM {name}")
    sweep(store, ERA, ERA.default_retention_ms, 1_900_000_000_000)
    left = shown(store, "SELECT count(*) FROM offsets")
    assert left == ("2" if text == LATEST else "0")


def test_what_sql_makes_beyond_the_year_9999_is_shown(tmp_path: Path) -> None:
    store = applied(strange(2**63 - 1), ERA, [], str(tmp_path))
    assert shown(store, "SELECT commit_timestamp + INTERVAL '1' DAY FROM offsets WHERE group_id = 'commit'").startswith(
        "10000-01-01"
    )
