"""The pages over tables of a story: HTML, JSON with an entity tag, past times, hostile names, viewers with a limited role."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from log_builder import member
from shop_pages import ParsedPage, ShopPages
from status_story import Story

from pipelines.dashboard.pages.parts.rendering import Templates
from pipelines.dashboard.path_names import encode_name
from pipelines.dashboard.security.viewer import LOCAL_VIEWER, Viewer
from pipelines.query.engine import Snapshot
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

MARKUP = '<script>alert("1")</script>/../\'&amp;'
BIDI = "pay\u202eroll\x00\n"
#: The longest name that a record can have.
LONG = "x" * 32_767
FILE = "report.json"
HOSTILE = (MARKUP, BIDI, LONG, FILE)
TABS = ("members", "expiry", "resets", "transactions", "records")
PAGES = ("", "groups", "changes", "groups/billing", *(f"groups/billing?tab={tab}" for tab in TABS))


class Pages(ShopPages):
    """The pages over the tables of a story, for a viewer that a test may change."""

    def __init__(self, root: Path) -> None:
        self.story = Story(str(root))
        super().__init__(str(root))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Billing is behind, has a member, is rewound, and is beside groups with hostile names."""
    made = Pages(tmp_path_factory.mktemp("pages") / "east")
    story = made.story
    story.at(0).end(9).end(7, 1).commit(5).commit(7, 1).sample()
    story.at(60).log.group([member()], group="billing")
    story.at(61).commit(8).sample()
    story.at(120).commit(2)
    for name in HOSTILE:
        story.log.commit(0, 3, group=name, topic=MARKUP, at=story.log.now_ms)
        story.log.group([member(f"m-{name[:50]}")], group=name)
    story.at(121).sample()
    made.site.refresh()
    return made


@pytest.mark.parametrize("page", PAGES)
def test_a_page_and_its_json_are_one_batch(pages: Pages, page: str) -> None:
    html = pages.get(page)
    assert html.status_code == 200, html.text
    assert html.headers["content-type"] == "text/html; charset=utf-8"
    path, _, query = page.partition("?")
    found = pages.get(f"{path or 'index'}.json?{query}")
    assert (found.status_code, found.json()["batch_id"]) == (200, Snapshot.open(pages.story.root).batch.batch_id)
    tags = {answer.headers["etag"] for answer in (html, found)}
    assert len(tags) == 2
    assert pages.get(page, if_none_match=html.headers["etag"]).status_code == 304


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_inline_code_or_styles(pages: Pages, page: str) -> None:
    elements = ParsedPage(pages.get(page).text).elements
    assert all(values.get("src") for tag, values in elements if tag == "script")
    assert not [tag for tag, _ in elements if tag == "style"]
    assert not [name for _, values in elements for name in values if name == "style" or name.startswith("on")]


def test_the_numbers_of_a_group_are_those_of_sql(pages: Pages) -> None:
    model = pages.get("groups/billing.json").json()
    snapshot = Snapshot.open(pages.story.root)
    rows = snapshot.query("SELECT * FROM lag WHERE group_id = 'billing' ORDER BY topic, partition").to_pylist()
    offsets = sorted(model["offsets"], key=lambda row: (row["topic"], row["partition"]))
    for name in ("group_offset", "latest_offset", "lag", "lag_seconds", "lag_seconds_low", "lag_seconds_high", "lag_method"):
        assert [row[name] for row in offsets] == [row[name] for row in rows], name
    (sums,) = snapshot.query("SELECT lag, max_lag_seconds FROM lag_by_group WHERE group_id = 'billing'").to_pylist()
    assert (model["figures"]["lag"], model["figures"]["lag_seconds"]) == (sums["lag"], sums["max_lag_seconds"])
    (status,) = snapshot.query("SELECT status, rule FROM group_status WHERE group_id = 'billing'").to_pylist()
    assert (model["status"]["status"], model["status"]["rule"]) == (status["status"], status["rule"])


def test_the_events_of_a_group_are_in_words(pages: Pages) -> None:
    events = [event["words"] for event in pages.get("groups/billing.json").json()["events"]]
    assert "Reset of orders-0 from 8 to 2 (−6) by a member" in events
    assert any(words.startswith("Rebalance 5") for words in events)


def test_a_reset_can_be_undone_by_a_command(pages: Pages) -> None:
    (reset,) = pages.get("groups/billing.json?tab=resets").json()["rows"]
    assert reset["undo"] == (
        "kafka-consumer-groups.sh --bootstrap-server BROKER:9092 --group billing --topic orders:0 --reset-offsets "
        "--to-offset 8 --execute"
    )


def test_a_past_time_shows_what_was_known_then(pages: Pages) -> None:
    at = pages.get("groups/billing.json").json()["lag_history"][0]["at"]
    past = pages.get(f"groups/billing.json?as_of={quote(at)}").json()
    assert past["batch_id"] < pages.get("groups/billing.json").json()["batch_id"]
    assert [row["group_offset"] for row in sorted(past["offsets"], key=lambda row: row["partition"])] == [5, 7]
    assert [row["group_id"] for row in pages.get(f"groups.json?as_of={quote(at)}").json()["groups"]] == ["billing"]
    html = pages.get(f"groups/billing?as_of={quote(at)}").text
    assert "to live" in html
    links = [str(values["href"]) for tag, values in ParsedPage(html).elements if tag == "a" and "href" in values]
    # only the ways back to the present forget the time
    forgetting = [link for link in links if link.startswith("/c/") and "as_of" not in link]
    assert set(forgetting) == {"/c/east/groups/billing"}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(pages: Pages, name: str) -> None:
    page = f"groups/{encode_name(name)}"
    answer = pages.get(page)
    assert answer.status_code == 200
    html = ParsedPage(answer.text)
    assert [values for tag, values in html.elements if tag == "script"] == [{"type": "module", "src": "/static/page.js"}]
    assert not [text for text in html.texts if re.search(r"[\x00-\x08\u202a-\u202e]", text)]
    assert len(answer.text) < 200_000
    assert pages.get(f"{page}.json").json()["group_id"] == name
    listed = pages.get("groups")
    assert page.partition("/")[2] in listed.text
    assert len([tag for tag, _ in ParsedPage(listed.text).elements if tag == "script"]) == 1


@pytest.mark.parametrize(
    ("page", "code", "words"),
    [
        ("groups/absent", 404, "no group 'absent'"),
        ("groups/billing?tab=colours", 400, "invalid tab 'colours': use one of offsets, members"),
        ("groups/billing?span=1y", 400, "invalid span '1y'"),
        ("groups?sort=colour", 400, "invalid sort 'colour'"),
        ("groups?as_of=yesterday", 400, "invalid as_of 'yesterday'"),
        ("groups?as_of=999999", 400, "no batch 999999"),
        ("changes?from=2040-01-01", 400, "is not before the time of the page"),
    ],
)
def test_errors_are_words_on_a_page_and_in_json(pages: Pages, page: str, code: int, words: str) -> None:
    html = pages.get(page)
    assert html.status_code == code
    assert words in "".join(ParsedPage(html.text).texts)
    path, _, query = page.partition("?")
    found = pages.get(f"{path}.json?{query}")
    assert found.status_code == code
    assert words in found.json()["message"]


def test_an_unknown_cluster_is_named(pages: Pages) -> None:
    answer = pages.at("/c/west/groups")
    assert answer.status_code == 404
    assert "no cluster" in answer.text


def test_a_viewer_sees_the_groups_of_its_role_only(pages: Pages) -> None:
    whole = pages.get("groups.json").json()
    pages.viewer = Viewer("team", re.compile("x+"))
    try:
        limited = pages.get("groups.json")
        assert [row["group_id"] for row in limited.json()["groups"]] == [LONG]
        assert limited.json()["total"] == 1
        assert pages.get("groups/billing").status_code == pages.get("groups/absent").status_code == 404
        for page in ("", "groups", "changes"):
            assert "billing" not in pages.get(page).text.replace("/c/east/groups/billing", "")
        assert {row["group_id"] for row in pages.get("changes.json").json()["changes"]} <= {LONG}
        seen = limited.headers["etag"]
    finally:
        pages.viewer = LOCAL_VIEWER
    again = pages.get("groups.json", if_none_match=seen)
    assert (again.status_code, again.json()["total"]) == (200, whole["total"])
    assert whole["total"] == 1 + len(HOSTILE)


def test_csv_has_all_groups_that_the_filters_match(pages: Pages) -> None:
    answer = pages.get("groups.csv?q=bill")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    header, row = answer.text.splitlines()
    assert row.split(",")[header.split(",").index("group_id")] == "billing"


def test_groups_have_the_teams_of_a_file_of_alert_rules(pages: Pages, tmp_path: Path) -> None:
    rules = tmp_path / "alerts.toml"
    rules.write_text('[[owners]]\ngroups = "bill.*"\nteam = "<b>payments"\n\n[[owners]]\ngroups = "x+"\nteam = "data"\n')
    owned = ShopPages(pages.root, owners_file=str(rules))
    assert {row["group_id"]: row["owner"] for row in owned.json("groups")["groups"] if row["owner"]} == {
        "billing": "<b>payments",
        LONG: "data",
    }
    assert [row["group_id"] for row in owned.json("groups?owner=data")["groups"]] == [LONG]
    assert owned.get("groups.csv?owner=data").text.count("data") == 1
    assert "owned by <b>payments" in owned.html("groups/billing").text
    assert "Owner" not in pages.html("groups").texts
    assert "Owner" in owned.html("groups").texts


def test_the_first_page_is_the_overview_of_the_only_cluster(pages: Pages) -> None:
    answer = pages.at("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/c/east/")
    assert pages.at("/index.json").json()["clusters"][0]["groups"] == 1 + len(HOSTILE)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "changes"])
def test_a_time_whose_tables_are_removed_has_what_the_histories_have(tmp_path: Path, page: str) -> None:
    made = Pages(tmp_path / "east")
    story = made.story
    story.at(0).end(9).commit(5).sample()
    story.at(60).log.group([member()], group="billing")
    story.at(61).commit(2).sample()
    at = story.clock()
    story.at(3_600).commit(9).sample()
    for name in (*definitions.KEYS, *definitions.REPLACED):
        TableStore(story.root).table(name).vacuum(0, dry_run=False, enforce_retention_duration=False)
    made.site.refresh()
    then = f"{'&' if '?' in page else '?'}as_of={quote(at.isoformat())}"
    answer = made.get(page + then)
    assert answer.status_code == 200, answer.text
    if page.startswith("groups/billing"):
        model = made.get(f"groups/billing.json?as_of={quote(at.isoformat())}").json()
        assert {row["group_offset"] for row in model["offsets"] if row["topic"] == "orders"} == {2}
        assert [row["member_id"] for row in model["owners"]]
        assert any(event["words"].startswith("Reset of orders-0 from 5 to 2") for event in model["events"])


def test_a_past_page_leads_to_the_newest_batch(tmp_path: Path) -> None:
    """Its slider ends there, so a page that a browser or the server keeps is of the same newest batch."""
    made = Pages(tmp_path / "east")
    made.story.at(0).end(9).commit(5).sample()
    past = f"groups?as_of={quote(made.story.clock().isoformat())}"
    made.story.at(60).commit(6).sample()
    made.site.refresh()
    tag = made.get(past).headers["etag"]
    assert made.get(past, if_none_match=tag).status_code == 304
    made.story.at(120).commit(7).sample()
    made.site.refresh()
    assert made.get(past, if_none_match=tag).status_code == 200


def test_the_default_span_fits_the_data_there_is(tmp_path: Path) -> None:
    made = Pages(tmp_path / "east")
    made.story.at(0).end(9).commit(5).sample()
    for seconds, span in ((600, "15m"), (3_000, "1h"), (4_000, "6h"), (30_000, "6h")):
        made.story.at(seconds).end(9 + seconds).commit(6).sample()
        made.site.refresh()
        for page in ("groups/billing", "topics/orders", "offsets-topic"):
            assert made.get(f"{page}.json").json()["span"]["text"] == span
        assert made.get("groups/billing.json?span=24h").json()["span"]["text"] == "24h"
        assert (">15m</a>" in made.get("groups/billing").text) == (span == "15m")


def test_records_of_a_time_before_the_first_batch_are_data(tmp_path: Path) -> None:
    made = Pages(tmp_path / "east")
    made.story.at(0).commit(5).at(3_000).sample()
    made.story.at(3_060).commit(6).sample()
    made.site.refresh()
    assert made.get("groups/billing.json").json()["span"]["text"] == "1h"
    assert made.get("offsets-topic.json").json()["span"]["text"] == "15m"


def test_a_page_is_drawn_once_for_viewers_of_the_same_groups(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    render = Templates.render

    def counted(self: Templates, template: str, context: Mapping[str, Any]) -> str:
        drawn.append(template)
        return render(self, template, context)

    monkeypatch.setattr(Templates, "render", counted)
    page = "groups?q=drawn"
    texts = {pages.get(page, accept_encoding=coding).text for coding in ("gzip", "identity", "gzip;q=0")}
    assert len(texts) == 1
    assert drawn == ["groups/groups.html"]
    pages.viewer = Viewer("team", re.compile("bill.*"))
    try:
        assert "1 group" in pages.html(page).text
        assert drawn == ["groups/groups.html"] * 2
    finally:
        pages.viewer = LOCAL_VIEWER


def test_the_time_of_an_event_leads_to_the_first_batch_that_shows_it(tmp_path: Path) -> None:
    made = Pages(tmp_path / "east")
    made.story.at(0).end(9).commit(8).sample()
    # the batch is complete 60 s after the event
    made.story.at(60).commit(2)
    event = quote(made.story.clock().isoformat())
    made.story.at(120).sample()
    made.story.at(180).commit(3).sample()
    made.site.refresh()
    shows_it = "groups/billing.json?as_of="
    before = made.get(f"{shows_it}{event}").json()
    assert before["offsets"][0]["group_offset"] == 8, "the batch before the event"
    answer = made.get(f"groups/billing?event={event}&span=1h")
    assert answer.status_code == 307
    url = answer.headers["location"]
    assert "event=" not in url
    assert "span=1h" in url
    found = made.get(f"groups/billing.json{url}").json()
    assert found["offsets"][0]["group_offset"] == 2
    assert found["batch_id"] == before["batch_id"] + 2, "the records, and a sample at the same time"
    later = made.get(f"groups/billing?event={quote('2999-01-01T00:00:00Z')}")
    assert (later.status_code, later.headers["location"]) == (307, "/c/east/groups/billing"), "the newest batch"
    assert made.get("groups/billing?event=yesterday").status_code == 400


def test_the_slider_of_a_group_has_its_events(tmp_path: Path) -> None:
    made = Pages(tmp_path / "east")
    story = made.story
    story.at(0).log.group([member()], group="billing")
    story.end(9).end(9, 1).commit(8).commit(8, 1).sample()
    story.at(600).commit(2).commit(3, 1).sample()
    story.at(1_000).log.group([member()], group="billing", generation=6)
    story.at(1_001).commit(4).sample()
    story.at(2_000).commit(5).sample()
    made.site.refresh()
    past = f"?as_of={quote(str(made.sql('SELECT min(finished_at) AS at FROM batches')[0]['at']))}"
    for page in ("groups/billing", f"groups/billing{past}"):
        html = made.html(page)
        # the reset, over the rebalance, each at its place
        marks = [
            values["class"] for tag, values in html.elements if tag == "path" and str(values.get("d")).endswith(("v10", "v18"))
        ]
        assert marks == ["rebalance", "rewind"], page
        slider = _slider(html)
        events = json.loads(slider["data-events"])
        assert [words for _, words in events] == ["2 offsets went back", "1 rebalance"], page
        assert int(slider["min"]) < events[0][0] < events[1][0] < int(slider["max"])
    assert json.loads(_slider(made.html(""))["data-events"]) == []


def _slider(html: ParsedPage) -> dict[str, str]:
    return next(
        {name: str(value) for name, value in values.items()} for _, values in html.elements if values.get("type") == "range"
    )


def test_a_lag_below_zero_is_unknown(tmp_path: Path) -> None:
    made = Pages(tmp_path / "east")
    made.story.at(0).end(9).commit(12).sample()
    made.site.refresh()
    figures = made.json("groups/billing")["figures"]
    assert (figures["lag"], figures["unknown_partitions"]) == (None, 1)
    assert made.json("groups/billing")["offsets"][0]["lag"] == -3, "as Kafka's tool prints it"
    assert "unknown on 1 partition" in made.get("groups/billing").text
    made.story.at(60).end(9, 1).commit(5, 1).sample()
    made.site.refresh()
    figures = made.json("groups/billing")["figures"]
    assert (figures["lag"], figures["unknown_partitions"]) == (4, 1)
