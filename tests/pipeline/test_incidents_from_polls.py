"""The first two incidents of the tutorial without access to the log of groups: the coordinators are polled every 30 s."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from polled_shop import PolledShop
from shop_history import UNTIL
from shop_pages import ShopPages

from pipelines.examples.history import incidents
from pipelines.examples.history.topics import MINUTE
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.query.rebalances import IS_REBALANCE

STUCK, STORM = "billing", "search-indexer"


def relative(at_ms: int) -> datetime:
    return UNTIL + timedelta(milliseconds=at_ms)


def text_of(root: str, path: str, now: datetime) -> str:
    return " ".join(ShopPages(root, clock=lambda: now).html(path).text.split())


def finding(snapshot: Snapshot, rule: str) -> dict[str, Any]:
    (row,) = snapshot.query("SELECT findings FROM group_status").to_pylist()
    (found,) = (each for each in row["findings"] if each["rule"] == rule)
    return dict(found)


@pytest.fixture(name="shop")
def polled_shop(tmp_path: Path, request: pytest.FixtureRequest) -> PolledShop:
    return PolledShop(str(tmp_path), [request.param])


@pytest.mark.parametrize("shop", [STUCK], indirect=True)
def test_a_stuck_partition(shop: PolledShop, tmp_path: Path) -> None:
    end = incidents.STUCK_AT + 15 * MINUTE
    shop.poll_during(incidents.STUCK_AT - 15 * MINUTE, end)
    found = finding(Snapshot.open(str(tmp_path)), "stopped")
    assert (found["topic"], found["partition"], found["client_id"]) == ("orders", incidents.STUCK_PARTITION, "billing-1")
    last_commit = relative(incidents.STUCK_AT)
    assert abs((found["since"] - last_commit).total_seconds()) <= 60
    text = text_of(str(tmp_path), f"groups/{STUCK}?span=1h", shop.clock())
    assert "No commits on orders-3 since 10:50" in text
    assert "Polled at least every 30 s" in text
    assert "between 10:49:30 and 10:50:00" in text
    assert "0 rebalances" in text


@pytest.mark.parametrize("shop", [STORM], indirect=True)
def test_a_rebalance_storm(shop: PolledShop, tmp_path: Path) -> None:
    end = incidents.STORM_AT + incidents.STORM_MS
    shop.poll_during(incidents.STORM_AT - 2 * MINUTE, end)
    snapshot = Snapshot.open(str(tmp_path))
    rows = snapshot.query("SELECT * FROM rebalances").to_pylist()
    # both rebalances of a cycle of 75 s are seen: polls are closer than they are to each other
    assert len(rows) == incidents.STORM_REBALANCES
    assert snapshot.query(f"SELECT count(*) AS n FROM membership_history WHERE {IS_REBALANCE}")["n"].to_pylist() == [len(rows)]
    assert snapshot.query("SELECT count(*) AS n FROM group_history WHERE change = 'rebalance'")["n"].to_pylist() == [len(rows)]
    triggers = [(row["trigger"], row["members_before"], row["members_after"], row["partitions_moved"]) for row in rows]
    assert sorted(triggers) == [("member_joined", 2, 3, 3)] * 16 + [("member_left", 3, 2, 3)] * 16
    unknown = ("from_generation", "to_generation", "started_at", "duration_seconds", "seconds_without_owner")
    assert {row[name] for row in rows for name in unknown} == {None}
    found = finding(snapshot, "rebalance_storm")
    assert found["detail"] == f"At least {found['window_rows']} rebalances since 05:00 UTC."
    assert found["window_rows"] >= incidents.STORM_REBALANCES - 2
    overview = text_of(str(tmp_path), "", shop.clock())
    assert f"1 group rebalanced, at least {incidents.STORM_REBALANCES} rebalances" in overview
    assert "1 group created" not in overview
    text = text_of(str(tmp_path), f"groups/{STORM}?span=1h", shop.clock())
    assert f"At least {incidents.STORM_REBALANCES} rebalances within" in text
    assert f"{incidents.STORM_MEMBER} left or timed out 16 times" in text
    assert check(str(tmp_path)) == []
