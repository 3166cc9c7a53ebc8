"""The page of alerts, from what the evaluator of `grouplake alerts` stores: states, values, past times, deliveries."""

import re
from pathlib import Path

import pytest
from alert_receivers import Evaluators
from shop_pages import ShopPages
from status_story import Story

from pipelines.dashboard.formatting.times import iso
from pipelines.dashboard.security.viewer import LOCAL_VIEWER, Viewer

RULES = """
[alerts]
receivers = ["good", "bad"]
group_by = ["alertname", "group"]
group_wait = "0s"
group_interval = "1m"
[receivers.good]
kind = "command"
command = ["true"]
[receivers.bad]
kind = "command"
command = ["false"]
[[rules]]
name = "Behind"
on = "lag"
above = 3
for = "1m"
severity = "warning"
labels = { team = "payments" }
annotations = { summary = "{group} has {value} <b>records</b>" }
"""


class Alerted:
    """A group that is behind by 4 at second 60 and 120, and at the end at second 180; the rules are evaluated at each time."""

    def __init__(self, folder: Path) -> None:
        self.story = Story(str(folder / "tables"))
        self.story.at(0).end(9).commit(9).sample()
        (folder / "alerts.toml").write_text(RULES)
        self.evaluators = Evaluators(self.story.root, folder / "alerts.toml", self.story.log.now_ms)
        self.evaluate()

    def evaluate(self) -> None:
        self.evaluators.now_ms = self.story.log.now_ms
        self.evaluators.started().evaluate()

    def passes(self, seconds: int, end: int, commit: int) -> None:
        self.story.at(seconds).end(end).commit(commit).sample()
        self.evaluate()


@pytest.fixture(scope="module")
def alerted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Alerted, ShopPages]:
    made = Alerted(tmp_path_factory.mktemp("alerted"))
    made.passes(60, 13, 9)
    made.passes(120, 14, 9)
    return made, ShopPages(made.story.root)


def states(model: dict[str, object]) -> list[tuple[str, list[tuple[str, float]]]]:
    alerts = model["alerts"]
    assert isinstance(alerts, list)
    return [(alert["state"], [(row["change"], row["value"]) for row in alert["transitions"]]) for alert in alerts]


def test_without_alerts_the_page_explains_how_to_switch_them_on(shop: ShopPages) -> None:
    assert shop.json("alerts")["exist"] is False
    text = shop.html("alerts").text
    assert "grouplake alerts does not run with these tables" in text
    assert "grouplake alerts --rules alerts.toml --tables DIR" in text


def test_alerts_and_their_values(alerted: tuple[Alerted, ShopPages]) -> None:
    made, pages = alerted
    model = pages.json("alerts")
    assert states(model) == [("firing", [("pending", 4), ("firing", 5)])]
    (alert,) = model["alerts"]
    assert (alert["rule"], alert["group_id"], alert["labels"]["team"]) == ("Behind", "billing", "payments")
    assert (alert["value"], alert["unit"]) == (5, "records")
    assert alert["annotations"]["summary"] == "billing has 5 <b>records</b>"
    results = {(row["receiver"], row["change"]) for row in model["deliveries"]}
    assert results == {("good", "delivered"), ("bad", "failed")}
    page = pages.html("alerts")
    page.expect_accessible_charts()
    assert "1 firing · 0 pending · 0 resolved" in page.text
    assert "billing has 5 <b>records</b>" in page.text, "annotations are text"
    assert "firing at 5 records" in page.text
    assert "b" not in [tag for tag, _ in page.elements]
    assert "1 delivery failed" in page.text or "deliveries failed" in page.text

    # the alert is an event of its group, and a mark on the chart
    group = pages.json("groups/billing?span=1h")
    words = [event["words"] for event in group["events"] if event["kind"] == "alert"]
    assert words == ["Alert Behind fired: billing has 5 <b>records</b>"]
    page = pages.html("groups/billing?span=1h")
    assert [each for tag, each in page.elements if tag == "line" and each.get("class") == "alert"]
    assert words[0] in page.text

    # at the second evaluation the alert was pending; its texts are not in the history
    past = pages.json(f"alerts?as_of={iso(made.story.at(61).clock())}")
    assert states(past) == [("pending", [("pending", 4)])]
    assert past["deliveries"] == []
    before = pages.json(f"alerts?as_of={iso(made.story.at(5).clock())}")
    assert before["alerts"] == []
    assert "No alert is firing or pending at this time" in pages.html(f"alerts?as_of={iso(made.story.clock())}").text


def test_a_viewer_sees_the_alerts_of_its_groups_only(alerted: tuple[Alerted, ShopPages]) -> None:
    _, pages = alerted
    pages.viewer = Viewer("team", re.compile("other"))
    try:
        model = pages.json("alerts")
        assert (model["alerts"], model["deliveries"]) == ([], [])
        assert "billing" not in pages.get("alerts").text
    finally:
        pages.viewer = LOCAL_VIEWER


def test_alerts_change_without_a_batch(tmp_path: Path) -> None:
    made = Alerted(tmp_path)
    made.passes(60, 13, 9)
    pages = ShopPages(made.story.root)
    first = pages.get("alerts.json")
    assert states(first.json()) == [("pending", [("pending", 4)])]
    assert pages.get("alerts.json", if_none_match=first.headers["etag"]).status_code == 304
    made.story.at(125)
    made.evaluate()
    second = pages.get("alerts.json", if_none_match=first.headers["etag"])
    assert second.json()["batch_id"] == first.json()["batch_id"], "no new batch"
    assert states(second.json()) == [("firing", [("pending", 4), ("firing", 4)])]
    made.passes(240, 13, 13)
    resolved = pages.json("alerts")
    assert states(resolved) == [("resolved", [("pending", 4), ("firing", 4), ("resolved", 0)])]
    assert "the condition no longer holds" in pages.html("alerts").text
