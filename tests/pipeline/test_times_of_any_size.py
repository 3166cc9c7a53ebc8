"""Records with any time: the tables show the years 1 to 9999, and every command continues."""

import io
import json
from pathlib import Path

import pytest
from log_builder import Log, member
from shop_pages import ShopPages
from status_story import Story
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


@pytest.mark.parametrize("era", ["1", "3", "4"])
@pytest.mark.parametrize("ms", [253_402_300_799_999, 253_402_300_800_000, 2**62, 2**63 - 1, 2**63 - 1 - 86_400_000])
def test_an_expiry_that_does_not_come_is_null(ms: int, era: str, tmp_path: Path) -> None:
    """One such value must not change the format of the others of its column."""
    log = strange(ms)
    log.commit(0, 5, group="soon", expires=1_900_000_000_000, version=1)
    # a commit of version 1 has an explicit expiry, also one for ever
    log.commit(0, 5, group="explicit", expires=ms, version=1)
    store = applied(log, Era.named(era), [], str(tmp_path), retention_ms=2**31 * 60_000)
    batch = store.last_batch()
    assert batch is not None
    rows = Snapshot(store, batch).query("SELECT group_id, expires_at FROM expiring_offsets")
    found = dict(zip(*rows.to_pydict().values(), strict=True))
    assert [group for group, at in found.items() if at is not None] == ["soon"]
    out = io.StringIO()
    WRITERS["json"](rows, out)
    (text,) = [json.loads(line)["expires_at"] for line in out.getvalue().splitlines() if "soon" in line]
    assert text.startswith("2030-03-17T17:46:40.00")
    assert text.endswith("Z")
    assert sweep(store, Era.named(era), batch.retention_ms, 1_899_999_999_999) is None


@pytest.mark.parametrize("ms", [2**63 - 1, 2**62, -(2**63), -9_223_370_241_132_607_229])
def test_pages_and_exports_of_any_time(ms: int, tmp_path: Path) -> None:
    root = str(tmp_path / "east")
    story = Story(root)
    for seconds in (0, 60):
        story.at(seconds).end(100 + seconds)
        # the second commit of each, so that lag, trends and Burrow's windows have them too
        story.log.commit(0, 5 + seconds, group="commit", topic="orders", at=ms)
        story.log.commit(0, 5 + seconds, group="expire", topic="orders", at=story.log.now_ms, expires=ms, version=1)
        record = story.log.group([member()], group="state", timestamp=ms)
        story.log.records[record.offset] = record._replace(timestamp=ms)
        story.at(seconds + 1).sample()
    pages = ShopPages(root, clock=story.clock)
    for group in ("commit", "expire", "state"):
        for tab in ("", "offsets", "members", "expiry", "resets", "transactions", "records"):
            for path in (f"groups/{group}?tab={tab}", f"groups/{group}.json?tab={tab}"):
                if tab:
                    assert pages.get(path).status_code == 200, path
        for end in ("", "/status", "/lag"):
            answer = pages.at(f"/v3/kafka/east/consumer/{group}{end}")
            assert answer.status_code in (200, 404), answer.text
    for page in ("", "groups", "topics", "topics/orders", "clients", "offsets-topic", "changes", "groups.csv", "topics.csv"):
        assert pages.get(page).status_code in (200, 404), page
    assert pages.get("groups.json").status_code == 200
    assert pages.at("/metrics").status_code == 200
    if ms > 0:
        expiry = pages.json("groups/expire?tab=expiry")["rows"]
        assert [(row["expires_at"], row["is_endless"]) for row in expiry] == [(None, True)]
        assert "never" in pages.html("groups/expire?tab=expiry").text
        assert "after the year 9999" in pages.html("groups/commit").text
    else:
        assert "before the year 1" in pages.html("groups/commit").text


def test_what_sql_makes_beyond_the_year_9999_is_shown(tmp_path: Path) -> None:
    store = applied(strange(2**63 - 1), ERA, [], str(tmp_path))
    assert shown(store, "SELECT commit_timestamp + INTERVAL '1' DAY FROM offsets WHERE group_id = 'commit'").startswith(
        "10000-01-01"
    )
