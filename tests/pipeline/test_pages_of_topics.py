"""The list of topics and the page of one topic: their numbers are those of SQL, now and at a past time."""

import re
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from log_builder import member
from shop_pages import ShopPages
from status_story import Story

from coordinator_core.health import StatusSettings
from pipelines.dashboard.pages.topic.topic import topic_page
from pipelines.dashboard.pages.topics.topics import topics_page
from pipelines.dashboard.path_names import encode_name
from pipelines.dashboard.security.viewer import LOCAL_VIEWER, Viewer
from pipelines.dashboard.state.history_state import HistoryState
from pipelines.dashboard.state.moment import Moment
from pipelines.dashboard.state.query_cache import QueryCache
from pipelines.query.engine import Snapshot
from pipelines.query.history_snapshot import HistorySnapshot
from pipelines.tables.store import TableStore

NOON = "2026-03-02T12:00:30Z"


def test_the_list_has_the_sums_of_sql(shop: ShopPages) -> None:
    rows = {row["topic"]: row for row in shop.json("topics")["rows"]}
    expected = {row["topic"]: row for row in shop.sql("SELECT * FROM lag_by_topic")}
    assert rows.keys() == expected.keys()
    for topic, row in rows.items():
        wanted = expected[topic]
        for name in ("groups", "unknown_partitions", "lag"):
            assert row[name] == wanted[name], (topic, name)
        assert row["lag_seconds"] == wanted["max_lag_seconds"], topic
        assert row["lag_seconds_low"] == wanted["max_lag_seconds_low"], topic
        assert row["lag_seconds_high"] == wanted["max_lag_seconds_high"], topic
    # the producers of the shop write at constant rates
    assert rows["orders"]["records_per_second"] == pytest.approx(50, rel=0.01)
    assert rows["payments"]["records_per_second"] == pytest.approx(8, rel=0.01)
    assert rows["legacy"]["records_per_second"] is None
    assert (rows["orders"]["partitions"], rows["orders"]["group_id"]) == (6, "billing")


def test_order_search_and_pages_of_the_list(shop: ShopPages) -> None:
    def topics(query: str) -> list[str]:
        return [row["topic"] for row in shop.json(f"topics?{query}")["rows"]]

    assert topics("") == ["clicks", "payments", "orders", "legacy"]
    assert topics("sort=topic") == ["clicks", "legacy", "orders", "payments"]
    assert topics("sort=-rate")[-1] == "legacy", "unknown values come last"
    assert topics("q=PAY") == ["payments"]
    assert topics("after=payments") == ["orders", "legacy"]
    page = shop.html("topics?sort=-lag")
    assert [values["aria-sort"] for tag, values in page.elements if "aria-sort" in values] == ["ascending"]
    assert "No topic has “nothing” in its name" in shop.html("topics?q=nothing").text
    assert shop.get("topics?after=nothing").status_code == 400
    assert "use one of age, lag, topic" in shop.get("topics.json?sort=colour").json()["message"]
    page.expect_accessible_charts()


def test_the_list_at_a_past_time_is_of_the_history(shop: ShopPages) -> None:
    rows = {(row["topic"], row["lag"]) for row in shop.json(f"topics?as_of={NOON}")["rows"]}
    expected = shop.sql(
        "SELECT topic, sum(lag) AS lag FROM (SELECT *, row_number() OVER (PARTITION BY group_id, topic ORDER BY sampled_at DESC) "
        "AS age FROM lag_history WHERE sampled_at <= TIMESTAMP '2026-03-02T12:00:30Z') h WHERE age = 1 GROUP BY topic"
    )
    assert rows == {(row["topic"], row["lag"]) for row in expected}
    assert all("as_of" in link for link in shop.html(f"topics?as_of={NOON}").links() if "/topics/" in link)


def test_the_matrix_has_the_ages_of_sql(shop: ShopPages) -> None:
    model = shop.json("topics/orders")
    cells = {
        (row["group_id"], cell["partition"]): cell["lag_seconds"] for row in model["matrix"]["groups"] for cell in row["ages"]
    }
    expected = shop.sql("SELECT group_id, partition, lag_seconds FROM lag WHERE topic = 'orders'")
    assert cells == {(row["group_id"], row["partition"]): row["lag_seconds"] for row in expected}
    assert [row["group_id"] for row in model["groups"]] == ["billing", "mirror"], "the oldest unread record first"
    assert model["groups"][0]["reasons"][0]["sentence"] == (
        "69,750 of 75,210 records of lag are on orders-3, one of 6 partitions, the first of them since 13:30 UTC; "
        "billing-2 on 10.0.4.12 owns it."
    )
    (ends,) = shop.sql(
        "SELECT sum(log_end - log_start) AS records FROM (SELECT *, row_number() OVER (PARTITION BY partition ORDER BY asked_at "
        "DESC) AS age FROM end_offsets WHERE topic = 'orders') e WHERE age = 1"
    )
    assert model["figures"]["records"] == ends["records"]
    assert model["figures"]["records_per_second"] == pytest.approx(50, rel=0.01)
    assert model["partitions"][0]["partition"] == 3
    assert model["partitions"][0]["records_per_second"] == pytest.approx(30, rel=0.01)


def test_growth_over_the_span(shop: ShopPages) -> None:
    points = shop.json("topics/orders?span=6h")["growth"]
    known = [row["records_per_second"] for row in points if row["records_per_second"] is not None]
    assert len(known) == len(points)
    assert known == pytest.approx([50.0] * len(known), rel=0.02)
    # there were no samples before the start of the tables
    earlier = shop.json("topics/orders?span=7d")["growth"]
    assert earlier[0]["records_per_second"] is None
    assert earlier[-1]["records_per_second"] == pytest.approx(50, rel=0.02)


def test_a_past_time_of_a_topic(shop: ShopPages) -> None:
    model = shop.json(f"topics/payments?as_of={NOON}")
    cells = {
        row["group_id"]: {cell["partition"]: cell["lag_seconds"] for cell in row["ages"]} for row in model["matrix"]["groups"]
    }
    # the commits of fraud ended at 11:25:30, the history has all four partitions as behind
    assert set(cells["fraud"]) == {0, 1, 2, 3}
    assert all(1_800 <= seconds <= 3_600 for seconds in cells["fraud"].values())
    assert datetime.fromisoformat(model["at"]) == datetime.fromisoformat(NOON)
    page = shop.html(f"topics/payments?as_of={NOON}&span=1h")
    assert all("as_of" in link and "span=1h" in link for link in page.links() if "/groups/" in link)


def test_the_page_of_a_topic_in_words(shop: ShopPages) -> None:
    page = shop.html("topics/orders")
    page.expect_accessible_charts()
    assert "6 partitions · read by 2 groups · topic id" in page.text
    assert (
        "Behind: 12 of 12 pairs of group and partition; the greatest age is 38 min 44 s, of billing on partition 3." in page.text
    )
    assert "50 records/s on average" in page.text
    assert "Leader" not in page.text, "the shop's samples have no replicas"
    legacy = shop.html("topics/legacy").text
    assert "the topic does not exist" in legacy
    assert shop.get("topics/nothing").status_code == 404
    assert "no topic 'nothing' at" in shop.get("topics/nothing.json").json()["message"]


def test_a_viewer_sees_the_groups_of_its_role_only(shop: ShopPages) -> None:
    shop.viewer = Viewer("team", re.compile("mirror"))
    try:
        assert {row["topic"]: row["groups"] for row in shop.json("topics")["rows"]} == {"orders": 1, "payments": 1}
        model = shop.json("topics/orders")
        assert [row["group_id"] for row in model["groups"]] == ["mirror"]
        assert "billing" not in shop.get("topics/orders").text
    finally:
        shop.viewer = LOCAL_VIEWER


def test_topics_of_a_batch_whose_tables_are_removed(shop: ShopPages) -> None:
    store = TableStore(shop.root)
    newest, batch = store.batch_as_of(55), store.batch_as_of(37)
    queries = QueryCache(HistorySnapshot(store, batch), 1_000_000)
    state = HistoryState(batch, Snapshot(store, newest), queries)
    moment = Moment("east", batch.finished_at, False, state, lambda _: pa.table({}))
    found = {row["topic"]: row["lag"] for row in topics_page(moment, {})["rows"]}
    expected = {row["topic"]: row["lag"] for row in shop.json("topics?as_of=37")["rows"]}
    assert found == expected
    assert topic_page(moment, "orders", {})["figures"] == shop.json("topics/orders?as_of=37")["figures"]


def test_a_hot_partition_where_no_group_lags(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It is on the page of the topic, now and at a past time, and no finding."""
    story = Story(str(tmp_path_factory.mktemp("hot")))
    for second in range(0, 721, 60):
        for partition, rate in enumerate((10, 10, 100)):
            story.end(10_000 + rate * second, partition).commit(10_000 + rate * second, partition)
        row = story.at(second).sample()
    assert row["findings"] == []
    pages = ShopPages(story.root)
    model = pages.json("topics/orders")
    assert model["hot"] == [
        {
            "partition": 2,
            "records_per_second": 100.0,
            "records": 60_000,
            "records_of_topic": 72_000,
            "compared_partitions": 3,
            "window_seconds": 600.0,
        }
    ]
    assert [row["partition"] for row in model["partitions"] if row["is_hot"]] == [2]
    assert (
        "60,000 of 72,000 records of the last 10 min are on partition 2, one of 3: 100 records/s."
        in pages.html("topics/orders").text
    )
    before = f"{story.at(601).clock():%Y-%m-%dT%H:%M:%SZ}"
    assert [row["partition"] for row in pages.json(f"topics/orders?as_of={before}")["hot"]] == [2]
    early = f"{story.at(301).clock():%Y-%m-%dT%H:%M:%SZ}"
    assert pages.json(f"topics/orders?as_of={early}")["hot"] == []


@pytest.mark.parametrize("name", ['<script>alert("1")</script>/../&amp;', "pay\u202eroll\x00\n", "report.json"])
def test_hostile_names_are_text(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    story = Story(str(tmp_path_factory.mktemp("hostile")))
    story.log.commit(0, 3, group=name, topic=name, at=story.log.now_ms)
    story.log.group([member(name, topics=[name])], group=name)
    story.sample()
    pages = ShopPages(story.root)
    segment = encode_name(name)
    assert f"/c/east/topics/{segment}" in pages.html("topics").links()
    for page in ("topics", f"topics/{segment}", "clients", "offsets-topic"):
        html = pages.html(page)
        assert [values for tag, values in html.elements if tag == "script"] == [{"type": "module", "src": "/static/page.js"}]
        assert not [text for text in html.texts if re.search(r"[\x00-\x08\u202a-\u202e]", text)]
    assert pages.json(f"topics/{segment}")["topic"] == name


def test_a_topic_before_the_first_sample(tmp_path_factory: pytest.TempPathFactory) -> None:
    story = Story(str(tmp_path_factory.mktemp("unsampled")))
    story.at(0).commit(5).commit(7, 1).batch()
    pages = ShopPages(story.root)
    (row,) = pages.json("topics")["rows"]
    assert (row["partitions"], row["unknown_partitions"], row["lag"], row["lag_seconds"]) == (2, 2, None, None)
    assert "There is no sample of the log ends yet" in pages.html("topics/orders").text


@pytest.mark.parametrize(
    ("settings", "hot"),
    [
        (StatusSettings(hot_ratio=20.0), []),
        (StatusSettings(hot_ms=300_000), [(2, 300.0)]),
        (StatusSettings(hot_rate=101.0), []),
        (StatusSettings(hot_partitions=4), []),
        (StatusSettings(hot_deviations=1_000_000_000.0), []),
        (StatusSettings(), [(2, 600.0)]),
    ],
)
def test_partitions_are_hot_by_the_settings_of_the_job(
    settings: StatusSettings, hot: list[tuple[int, float]], tmp_path: Path
) -> None:
    story = Story(str(tmp_path), settings)
    for second in range(0, 721, 60):
        for partition, rate in enumerate((10, 11, 100)):
            story.end(10_000 + rate * second, partition).commit(10_000 + rate * second, partition)
        story.at(second).sample()
    model = ShopPages(story.root).json("topics/orders")
    assert [(row["partition"], row["window_seconds"]) for row in model["hot"]] == hot
