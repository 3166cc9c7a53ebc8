"""The page of the offsets topic: records read, writers, quarantine and batches are those of SQL."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from shop_pages import ShopPages
from status_story import Story

from pipelines.batch.without_records import finish_batch
from pipelines.dashboard.security.viewer import LOCAL_VIEWER, Viewer
from pipelines.query.output import plain
from pipelines.runtime.phases import Phases
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance, maintain

pytestmark = pytest.mark.long


def test_records_read_by_log_partition(shop: ShopPages) -> None:
    model = shop.json("offsets-topic?span=24h")
    (ends,) = shop.sql("SELECT next_offsets FROM batches ORDER BY batch_id DESC LIMIT 1")
    assert {row["log_partition"]: row["next_offset"] for row in model["partitions"]} == dict(ends["next_offsets"])
    # the first batch that counts is the newest one before the span
    (start,) = shop.sql(
        "SELECT next_offsets FROM batches WHERE finished_at <= TIMESTAMP '2026-03-01T14:00:01Z' ORDER BY batch_id DESC LIMIT 1"
    )
    before = dict(start["next_offsets"])
    for row in model["partitions"]:
        records = row["next_offset"] - before[row["log_partition"]]
        assert row["records"] == pytest.approx(records, abs=max(3, 0.1 * records)), row["log_partition"]
    busiest = model["partitions"][0]
    assert (busiest["log_partition"], busiest["records"]) == (49, max(row["records"] for row in model["partitions"]))
    for series in model["rates"]:
        assert all(row["records_per_second"] >= 0 for row in series["points"])


def test_groups_that_write_most(shop: ShopPages) -> None:
    model = shop.json("offsets-topic?span=1h")
    assert model["counted_seconds"] == 3_600
    until = datetime.fromisoformat(model["commits_read_until"])
    expected = shop.sql(
        "SELECT group_id, sum(commits) AS commits FROM offset_history WHERE change IN ('commit', 'rewind') AND record_timestamp "
        f"BETWEEN TIMESTAMP '{plain(until - timedelta(hours=1))}' AND TIMESTAMP '{plain(until)}' GROUP BY group_id"
    )
    assert {row["group_id"]: row["commits"] for row in model["writers"]} == {row["group_id"]: row["commits"] for row in expected}
    assert model["writers"][0]["group_id"] == "mirror"
    assert shop.json("offsets-topic?span=30d")["counted_seconds"] == 86_400, "the count is bounded"


def test_rates_of_groups_are_over_the_time_that_the_job_has_read(tmp_path: Path) -> None:
    """Twelve minutes of commits in a span of six hours: 1,650 a minute, not 19,800 over six hours, which is 55."""
    story = Story(str(tmp_path / "east")).end(100_000)
    story.commit(1).sample()
    for minute in range(1, 13):
        for number in range(1_650 // 50):
            for partition in range(50):
                story.at(60 * (minute - 1) + 1 + number).commit(1_650 * minute + number, partition)
        story.at(60 * minute).batch()
    story.sample()
    shop = ShopPages(story.root)
    model = shop.json("offsets-topic?span=6h")
    (writer,) = model["writers"]
    assert (model["counted_seconds"], writer["commits"]) == (720, 12 * 1_650)
    assert round(60 * writer["commits_per_second"]) == 1_650
    rates = [row for row in shop.json("groups/billing?span=6h")["commits"] if row["until"] is not None]
    assert {round(60 * row["commits_per_second"]) for row in rates} == {1_650}


def test_a_maintained_folder_keeps_the_time_of_its_commits(tmp_path: Path) -> None:
    story = Story(str(tmp_path / "east")).end(9)
    story.at(0).commit(5).sample()
    story.at(60).commit(7).sample()
    before = ShopPages(story.root).json("offsets-topic")
    maintain(story.root, Maintenance(400, 168, 32), story.at(7_200).clock(), lambda _: None)
    after = ShopPages(story.root).json("offsets-topic")
    assert after["batch_id"] == before["batch_id"] + 1
    assert after["commits_read_until"] == before["commits_read_until"]
    assert after["maintained_at"] is not None


def test_an_incomplete_maintenance_is_named(tmp_path: Path) -> None:
    """The job maintains table by table; its bars are drawn before the last part is complete."""
    story = Story(str(tmp_path / "east")).end(9)
    story.at(0).commit(5).sample()
    writer = TablesWriter.claim(TableStore(story.root))
    assert writer.last is not None
    phases = Phases(story.clock())
    writer.begin()
    with phases.timed("compact"):
        pass
    finish_batch(writer, writer.last, phases, story.clock())
    page = ShopPages(story.root).html("offsets-topic").text
    assert "Last maintenance one is not complete" in page
    assert "none in" not in page


def test_quarantine_and_batches(shop: ShopPages) -> None:
    model = shop.json("offsets-topic")
    (row,) = model["quarantine"]
    assert (row["reason"], row["key"], row["value"]) == ("unknown record type 99", "006300056465627567", b"hello".hex())
    assert model["quarantined"] == 1
    expected = shop.sql("SELECT batch_id, records_read, phase_ms FROM batches ORDER BY batch_id DESC LIMIT 20")
    assert [(each["batch_id"], each["records_read"], each["phase_ms"]) for each in model["batches"]] == [
        (each["batch_id"], each["records_read"], dict(each["phase_ms"])) for each in expected
    ]
    assert model["maintained_at"] is None
    past = shop.json("offsets-topic?as_of=2026-03-02T12:00:00Z")
    assert (past["quarantine"], past["quarantined"]) == ([], 0)
    assert past["batches"][0]["batch_id"] == past["batch_id"]


def test_the_page_in_words(shop: ShopPages) -> None:
    page = shop.html("offsets-topic?span=24h")
    page.expect_accessible_charts()
    assert "1 record could not be decoded and is in quarantine" in page.text
    assert "none in 30 d: run grouplake maintain" in page.text
    assert "partition 7, offset 1,179" in page.text
    assert "grouplake_log_behind_offsets" in page.text
    past = shop.html("offsets-topic?as_of=2026-03-02T12:00:00Z").text
    assert "Every record of the log could be decoded" in past
    assert shop.get("offsets-topic?span=colour").status_code == 400


def test_a_viewer_with_a_limited_role_sees_no_bytes_of_the_quarantine(shop: ShopPages) -> None:
    shop.viewer = Viewer("team", re.compile("mirror"))
    try:
        model = shop.json("offsets-topic?span=1h")
        assert [(row["key"], row["value"]) for row in model["quarantine"]] == [(None, None)]
        assert [row["group_id"] for row in model["writers"]] == ["mirror"]
    finally:
        shop.viewer = LOCAL_VIEWER


def test_a_batch_without_phases_has_an_empty_cell(tmp_path: Path) -> None:
    story = Story(str(tmp_path / "east"))
    story.at(0).end(9).commit(5).sample()
    store = TableStore(story.root)
    newest = store.last_batch()
    assert newest is not None
    writer = TablesWriter.claim(store)
    writer.begin()
    finish_batch(writer, newest, Phases(newest.finished_at), newest.finished_at)
    pages = ShopPages(story.root)
    assert pages.json("offsets-topic")["batches"][0]["phase_ms"] == {}
    pages.html("offsets-topic").expect_accessible_charts()
