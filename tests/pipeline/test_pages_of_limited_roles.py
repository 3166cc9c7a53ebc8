"""Pages for a role that is limited to some groups: no topics, alerts and deliveries of others, no folders, no hosts."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from alert_receivers import Evaluators
from shop_pages import ParsedPage, ShopPages
from status_story import Story

from pipelines.dashboard.security.viewer import LOCAL_VIEWER, Viewer
from pipelines.dashboard.state.newest_state import NewestState
from pipelines.runtime.errors import TablesError

MIRROR = Viewer("team", re.compile("mirror"))
RULES = """
[alerts]
receivers = ["by-group", "by-name"]
group_wait = "0s"
[receivers.by-group]
kind = "command"
command = ["sh", "-c", "echo cannot reach chat.internal.example >&2; exit 1"]
group_by = ["alertname", "group"]
[receivers.by-name]
kind = "command"
command = ["true"]
group_by = ["alertname"]
[[rules]]
name = "Behind"
on = "lag"
above = 3
annotations = { summary = "{group} has {value} records" }
[[rules]]
name = "Batch"
on = "batch_age"
above = "1s"
receivers = ["by-name"]
"""


@pytest.fixture
def limited(shop: ShopPages) -> Iterator[ShopPages]:
    """The shop, seen by a role of the group `mirror`, which reads `orders` and `payments`."""
    shop.viewer = MIRROR
    try:
        yield shop
    finally:
        shop.viewer = LOCAL_VIEWER


@pytest.mark.parametrize("suffix", ["", ".json"])
@pytest.mark.parametrize("query", ["", "?as_of=37", "?span=7d"])
def test_a_topic_that_no_visible_group_reads_is_unknown(limited: ShopPages, suffix: str, query: str) -> None:
    """`legacy` has samples, a growth and topic ids, and is read by other groups only."""
    unseen, unknown = (limited.get(f"topics/{name}{suffix}{query}") for name in ("legacy", "absent"))
    assert (unseen.status_code, unknown.status_code) == (404, 404)
    assert unseen.text.replace("legacy", "absent") == unknown.text
    assert limited.get(f"topics/orders{suffix}{query}").status_code == 200
    limited.viewer = LOCAL_VIEWER
    assert limited.get(f"topics/legacy{suffix}{query}").status_code == 200


@pytest.fixture(scope="module")
def alerted(tmp_path_factory: pytest.TempPathFactory) -> ShopPages:
    """A group that is behind, alerts of the group and of the cluster, and deliveries with and without the group."""
    folder = tmp_path_factory.mktemp("alerted")
    story = Story(str(folder / "tables"))
    story.at(0).end(9).commit(9).sample()
    (folder / "alerts.toml").write_text(RULES)
    evaluators = Evaluators(story.root, folder / "alerts.toml", story.log.now_ms)
    story.at(60).end(13).commit(9).sample()
    evaluators.now_ms = story.log.now_ms + 5_000
    evaluators.started().evaluate()
    return ShopPages(story.root)


def test_deliveries_are_those_of_visible_groups(alerted: ShopPages) -> None:
    everything = alerted.json("alerts")
    assert {alert["rule"] for alert in everything["alerts"]} == {"Behind", "Batch"}
    assert {row["receiver"] for row in everything["deliveries"]} == {"by-group", "by-name"}
    assert "chat.internal.example" in alerted.get("alerts").text
    alerted.viewer = Viewer("team", re.compile("bill.*"))
    try:
        model = alerted.json("alerts")
        assert [alert["rule"] for alert in model["alerts"]] == ["Behind"]
        assert {(row["receiver"], row["labels"].get("group")) for row in model["deliveries"]} == {("by-group", "billing")}
        for page in ("alerts", "alerts.json", "groups/billing", "groups/billing.json"):
            assert "chat.internal.example" not in alerted.get(page).text
    finally:
        alerted.viewer = LOCAL_VIEWER


def test_a_role_without_groups_sees_no_alert(alerted: ShopPages) -> None:
    alerted.viewer = Viewer("team", re.compile("other"))
    try:
        model = alerted.json("alerts")
        assert (model["exist"], model["alerts"], model["deliveries"]) == (True, [], [])
    finally:
        alerted.viewer = LOCAL_VIEWER


PATHS = (
    "groups.json?as_of=999999",
    "groups?as_of=999999",
    "groups.json?as_of=1970-01-01T00:00:00Z",
    "groups?as_of=1970-01-01T00:00:00Z",
    "changes.json?from=1970-01-01T00:00:00Z",
    "groups.json?span=x&sort=x",
    "groups/absent.json",
    "topics/absent",
    "absent",
)


@pytest.mark.parametrize("path", PATHS)
def test_errors_name_no_folder_and_no_host(limited: ShopPages, path: str) -> None:
    answer = limited.get(path)
    assert answer.status_code in (400, 404, 410), answer.text
    hidden = (limited.root, Path(limited.root).parent.name, socket.gethostname())
    assert not [text for text in hidden if text in answer.text]


def test_a_cluster_with_damaged_tables_is_named_without_its_folder(tmp_path: Path) -> None:
    log = tmp_path / "tables" / "batches" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("damaged")
    pages = ShopPages(str(tmp_path / "tables"))
    assert str(tmp_path) in pages.get("groups").text
    pages.viewer = MIRROR
    for path in ("/c/east/groups", "/c/east/groups.json", "/", "/index.json", "/ready", "/v3/kafka/east/consumer", "/v3/kafka"):
        text = pages.at(path).text
        assert not [hidden for hidden in (str(tmp_path), socket.gethostname()) if hidden in text], path
    assert "not loaded" in pages.get("groups").text


def test_errors_of_the_tables_are_in_the_log_of_the_server(limited: ShopPages, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while the page is made, such as one of the object store, may have any name."""

    def fails(_state: NewestState, _sql: str) -> None:
        raise TablesError("cannot open table groups under s3://secret-bucket/east")

    monkeypatch.setattr(NewestState, "query", fails)
    answer = limited.get("topics.json?q=unread")
    assert answer.status_code == 500
    assert "secret-bucket" not in answer.text
    assert "see the log of the server" in answer.json()["message"]


def test_an_unexpected_error_is_a_page_with_the_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(str(tmp_path / "tables"))
    story.at(0).end(9).commit(9).sample()
    pages = ShopPages(story.root)
    pages.raises_errors = False

    def fails(_state: NewestState) -> None:
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr(NewestState, "summaries", fails)
    page = pages.get("groups", accept="text/html")
    assert (page.status_code, page.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert ParsedPage(page.text).links()[-2:] == ["/c/east/groups", "/"]
    answer = pages.get("groups.json", accept="text/html")
    assert answer.json()["message"] == "unexpected ZeroDivisionError: see the log of the server"
    assert "secret words" not in page.text + answer.text
