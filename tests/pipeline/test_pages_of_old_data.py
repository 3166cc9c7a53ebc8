"""The server over tables whose job has stopped, at chosen times: every page, JSON, metrics, /ready, Burrow's API, events."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aged_tables import stopped_group
from patience import PATIENCE_SECONDS
from shop_pages import ParsedPage, ShopPages

from pipelines.dashboard.live.streams import Streams
from pipelines.tables.writer_lock import FILE, writer_lock

AT = datetime(2026, 11, 22, 17, 35, 10, tzinfo=UTC)
HIDDEN = "the job has stopped, reaches no broker, or is in a long batch (a batch was expected every 30 s)"
PAGES = ("", "groups", "groups/billing", "topics", "topics/orders", "clients", "offsets-topic", "alerts")


class Clock:
    """The time of the server."""

    def __init__(self) -> None:
        self.now = AT

    def __call__(self) -> datetime:
        return self.now

    def after(self, **span: float) -> None:
        self.now = AT + timedelta(**span)


class OldPages(ShopPages):
    """The pages of tables whose newest batch is of AT."""

    def __init__(self, root: Path, interval: int | None = 30, *, sampled_at: datetime | None = None) -> None:
        self.clock = Clock()
        stopped_group(root, AT, interval, sampled_at=sampled_at)
        super().__init__(str(root), clock=self.clock)


@pytest.fixture
def pages(tmp_path: Path) -> OldPages:
    return OldPages(tmp_path / "east")


def statuses(pages: ShopPages, query: str = "") -> dict[str, str]:
    return {row["group_id"]: row["status"] for row in pages.json(f"groups?{query}")["groups"]}


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_how_old_its_data_is(pages: OldPages, page: str) -> None:
    pages.clock.after(seconds=40)
    assert "min old" not in pages.get(page).text
    fresh = pages.get(page).headers["etag"]
    pages.clock.after(minutes=6)
    found = pages.html(page)
    assert f"data of 17:35 UTC, 6 min old: {HIDDEN}" in found.text
    (button,) = [values for tag, values in found.elements if tag == "button" and values.get("id") == "live"]
    assert button["class"] == "live old"
    assert pages.get(page, if_none_match=fresh).status_code == 200
    name = page or "index"
    assert pages.json(name)["age"] == {
        "state": "old",
        "since": "2026-11-22T17:35:10Z",
        "interval_seconds": 30,
        "reason": f"since 17:35 UTC: {HIDDEN}",
    }


def test_the_age_of_a_page_grows(pages: OldPages) -> None:
    pages.clock.after(minutes=6)
    tag = pages.get("").headers["etag"]
    assert pages.get("", if_none_match=tag).status_code == 304
    pages.clock.after(days=5)
    assert "data of 2026-11-22 17:35 UTC, 5 d old" in ParsedPage(pages.get("", if_none_match=tag).text).text


def test_statuses_become_unknown(pages: OldPages) -> None:
    assert statuses(pages) == {"billing": "STOP", "shop": "OK"}
    pages.clock.after(minutes=6)
    assert statuses(pages) == {"billing": "UNKNOWN", "shop": "UNKNOWN"}
    assert statuses(pages, "status=STOP") == {}
    status = pages.json("groups/billing")["status"]
    assert (status["status"], status["rule"]) == ("UNKNOWN", "unknown")
    assert [reason["sentence"] for reason in status["reasons"]] == [f"Since 17:35 UTC: {HIDDEN}."]
    page = pages.html("groups/billing").text
    assert page.count("the job has stopped") == 1, "the reason stands above the page"
    assert "Meanwhile, a defect of the group is not noticed." in page
    assert " s ago" not in page, "nothing is said about the present"
    (offset,) = pages.json("groups/billing")["offsets"]
    assert (offset["status"], offset["lag"]) == ("UNKNOWN", 40)
    overview = pages.json("index")
    assert overview["statuses"] == [{"status": "UNKNOWN", "groups": 2}]
    text = " ".join(pages.html("").texts)
    assert "Nothing needs attention" not in text
    assert "2 groups, all statuses unknown" in text


def test_a_schedule_of_fifteen_minutes_is_no_alarm(tmp_path: Path) -> None:
    pages = OldPages(tmp_path, 900)
    pages.clock.after(minutes=20)
    assert statuses(pages) == {"billing": "STOP", "shop": "OK"}
    assert pages.json("index")["age"]["state"] == "fresh"
    pages.clock.after(minutes=24)
    assert statuses(pages) == {"billing": "UNKNOWN", "shop": "UNKNOWN"}
    assert "a batch was expected every 15 min" in pages.get("").text


def test_without_an_interval_nothing_is_expected(tmp_path: Path) -> None:
    pages = OldPages(tmp_path, None)
    pages.clock.after(days=400)
    assert statuses(pages) == {"billing": "STOP", "shop": "OK"}
    assert pages.json("index")["age"]["state"] == "no_expectation"
    assert pages.at("/ready").status_code == 200


def test_a_past_moment_is_not_old(pages: OldPages) -> None:
    pages.clock.after(days=5)
    assert statuses(pages, "as_of=0") == {"billing": "STOP", "shop": "OK"}
    assert statuses(pages, "as_of=2026-11-22T17:35:40Z") == {"billing": "STOP", "shop": "OK"}
    # at this time it was old already
    assert statuses(pages, "as_of=2026-11-22T17:45:40Z") == {"billing": "UNKNOWN", "shop": "UNKNOWN"}
    stopped_group(pages.root, AT + timedelta(days=5))
    pages.site.refresh()
    assert statuses(pages) == {"billing": "STOP", "shop": "OK"}
    assert statuses(pages, "as_of=0") == {"billing": "STOP", "shop": "OK"}
    assert pages.json("groups?as_of=0")["age"] is None


def test_the_lock_shows_whether_the_job_runs(pages: OldPages) -> None:
    (Path(pages.root) / FILE).touch()
    pages.clock.after(minutes=6)
    assert "6 min old: the job has stopped (a batch was expected every 30 s)" in pages.get("").text
    with writer_lock(pages.root, "grouplake run"):
        pages.clock.after(minutes=7)
        assert "7 min old: the job is running but has finished no batch since (one was expected every 30 s)" in pages.get("").text


def test_the_sample_has_an_age_of_its_own(tmp_path: Path) -> None:
    pages = OldPages(tmp_path, sampled_at=AT - timedelta(minutes=5))
    pages.clock.after(seconds=10)
    assert statuses(pages) == {"billing": "UNKNOWN", "shop": "UNKNOWN"}
    assert "log ends of 17:30 UTC, 5 min old: no sample of log ends succeeds" in pages.html("").text
    metrics = pages.at("/metrics").text
    assert "kafka_consumergroup_lag" not in metrics
    assert "kafka_consumergroup_members" in metrics
    assert 'grouplake_tables_old{cluster_name="east"} 0' in metrics
    assert 'grouplake_end_offsets_old{cluster_name="east"} 1' in metrics


def test_ready_has_the_reason(pages: OldPages) -> None:
    assert pages.at("/ready").status_code == 200
    pages.clock.after(minutes=6)
    answer = pages.at("/ready")
    assert (answer.status_code, answer.json()["error"]) == (503, True)
    assert answer.json()["message"] == f"east: data of 17:35 UTC, 6 min old: {HIDDEN}"
    assert answer.json()["clusters"]["east"]["age"]["state"] == "old"
    # the server itself is alive
    assert pages.at("/health").status_code == 200


def test_series_of_old_data_are_left_out(pages: OldPages) -> None:
    pages.clock.after(seconds=40)
    fresh = pages.at("/metrics").text
    assert 'kafka_consumergroup_group_lag{cluster_name="east",group="billing"' in fresh
    assert 'grouplake_group_status_info{cluster_name="east",group="billing",status="STOP"' in fresh
    assert 'grouplake_tables_old{cluster_name="east"} 0' in fresh
    assert 'grouplake_expected_interval_seconds{cluster_name="east"} 30' in fresh
    pages.clock.after(seconds=100)
    old = pages.at("/metrics").text
    assert 'group="billing"' not in old
    assert 'grouplake_tables_old{cluster_name="east"} 1' in old
    assert 'grouplake_tables_up{cluster_name="east"} 1' in old
    assert "grouplake_snapshot_timestamp_seconds" in old


def test_series_follow_the_interval_unless_a_limit_is_set(tmp_path: Path) -> None:
    pages = OldPages(tmp_path / "slow", 900)
    pages.clock.after(minutes=20)
    assert 'group="billing"' in pages.at("/metrics").text
    unknown = OldPages(tmp_path / "unknown", None)
    unknown.clock.after(seconds=299)
    assert 'group="billing"' in unknown.at("/metrics").text
    unknown.clock.after(seconds=301)
    assert 'group="billing"' not in unknown.at("/metrics").text


STATUS = "/v3/kafka/east/consumer/billing/status"


def test_burrows_api_has_no_status_of_old_data(pages: OldPages) -> None:
    assert pages.at(STATUS).json()["status"]["status"] == "ERR"
    pages.clock.after(minutes=6)
    for path in (STATUS, "/v3/kafka/east/consumer/billing/lag", "/v3/kafka/east/consumer/billing", "/v3/kafka/east/topic/orders"):
        answer = pages.at(path)
        assert answer.status_code == 503
        assert (answer.json()["error"], answer.json()["message"]) == (True, f"data of 17:35 UTC, 6 min old: {HIDDEN}")
    # names are still those of the newest batch
    assert pages.at("/v3/kafka/east/consumer").json()["consumers"] == ["billing", "shop"]


def test_open_pages_hear_that_the_data_has_become_old(pages: OldPages) -> None:
    streams = Streams(["east"], 1, 1)
    snapshot = pages.site.snapshot("east")
    assert snapshot is not None
    streams.publish({"east": snapshot})
    pages.site.on_age(streams.publish_ages)

    async def events() -> list[Any]:
        stream = streams.open("east", None)
        reader = aiter(stream)
        pages.clock.after(seconds=40)
        pages.site.refresh()
        found = []
        for seconds in (360, 370, 420, 430):
            pages.clock.after(seconds=seconds)
            # nothing but the time has changed
            pages.site.refresh()
            if seconds in (360, 420):
                found.append((await asyncio.wait_for(anext(reader), PATIENCE_SECONDS)).data())
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        waiting.cancel()
        return found

    found = asyncio.run(events())
    assert [event["age"]["state"] for event in found] == ["old", "old"]
    assert [event["batch_id"] for event in found] == [0, 0]


def test_the_list_of_clusters_says_it(pages: OldPages) -> None:
    pages.clock.after(minutes=6)
    (cluster,) = pages.at("/index.json").json()["clusters"]
    assert cluster["age"]["reason"] == f"since 17:35 UTC: {HIDDEN}"
    assert cluster["statuses"] == [{"status": "UNKNOWN", "groups": 2}]
