"""Offset syncs of MirrorMaker 2 in the tables: one fact, a jump among them is a finding, and the same status from histories."""

from pathlib import Path
from typing import Any

import pytest
from log_builder import member
from shop_pages import ShopPages
from status_story import Story

from pipelines.query.check import check


def begin(root: Path | str) -> Story:
    """A group that was active once, and then is empty."""
    story = Story(str(root))
    story.log.group([member(topics=("orders",))], group="billing")
    story.end(5).commit(5)
    story.at(1).sample()
    story.at(30).log.group((), group="billing", generation=6, timestamp=story.log.now_ms)
    story.batch()
    return story


def sync(story: Story, seconds: range, *, batch_every: int) -> dict[str, Any]:
    """An admin client moves the offset by one a second, at each of these seconds."""
    row: dict[str, Any] = {}
    for second in seconds:
        story.at(second).end(10_000_000 + second).commit(second, epoch=-1)
        if second % batch_every == 0:
            story.batch()
        if second % 30 == 0:
            row = story.at(second + 1).sample()
    return row


@pytest.mark.parametrize("batch_every", [10, 30])
def test_a_steady_sync_is_one_fact(batch_every: int, tmp_path: Path) -> None:
    """Also where a batch has several of the commits."""
    story = begin(tmp_path)
    story.at(40).commit(40, epoch=-1)
    row = sync(story, range(50, 310, 10), batch_every=batch_every)
    assert [finding for finding in row["findings"] if finding["rule"] == "reset"] == []
    (fact,) = row["facts"]
    assert (fact["fact"], fact["topic"], fact["partition"], fact["interval_seconds"]) == ("offset_sync", "orders", 0, 10.0)
    # of the commits of a batch the last one is known
    assert fact["since"] == story.at(50 if batch_every == 10 else 60).clock()
    assert fact["detail"] == f"Offsets of orders-0 are set by an admin client every 10 s since {fact['since']:%H:%M} UTC."
    story.restart()
    story.at(312).sample()
    story.expect_same_from_histories(last=2)
    assert check(story.root) == []


def caught_up(story: Story, seconds: range, *, shift: int = 0) -> dict[str, Any]:
    """As `sync`, of a group without lag, so that nothing else is found: a batch of each commit, samples up to the last."""
    row: dict[str, Any] = {}
    for second in seconds:
        story.at(second).end(second + max(0, shift)).commit(second + shift, epoch=-1).batch()
        if (seconds[-1] - second) % 30 == 0:
            row = story.at(second + 1).sample()
    return row


def test_the_group_is_well_meanwhile(tmp_path: Path) -> None:
    story = begin(tmp_path)
    statuses = []
    for second in range(40, 250, 10):
        row = caught_up(story, range(second, second + 1))
        statuses.append((row["status"], len(row["facts"])))
    # until the pattern shows, a move may be a reset
    assert set(statuses[:4]) <= {("OK", 0), ("WARN", 0), ("OK", 1)}
    assert set(statuses[4:]) == {("OK", 1)}
    story.expect_same_from_histories()


@pytest.mark.parametrize("shift", [5_000, -200])
def test_a_jump_among_the_syncs_is_one_finding(shift: int, tmp_path: Path) -> None:
    story = begin(tmp_path)
    caught_up(story, range(40, 300, 10))
    row = caught_up(story, range(300, 400, 10), shift=shift)
    assert [(finding["rule"], finding["to_offset"]) for finding in row["findings"] if finding["rule"] == "reset"] == [
        ("reset", 300 + shift)
    ]
    assert [fact["fact"] for fact in row["facts"]] == ["offset_sync"]
    story.expect_same_from_histories()


def test_a_sync_that_has_ended_leaves_no_findings(tmp_path: Path) -> None:
    """Until an hour later, when its last commits are the only ones that a finding would be of."""
    story = begin(tmp_path)
    caught_up(story, range(40, 240, 10))
    rows = []
    for minute in range(5, 75, 5):
        story.at(240 + 60 * minute)
        rows.append(story.sample())
    assert {row["status"] for row in rows} == {"OK"}
    assert [bool(row["facts"]) for row in rows] == [minute * 60 + 10 < 3600 for minute in range(5, 75, 5)]
    assert "were set by an admin client every 10 s from" in rows[0]["facts"][0]["detail"]
    story.expect_same_from_histories()


def test_a_group_without_a_record_is_not_judged(tmp_path: Path) -> None:
    """It is not known whether an admin client or a simple consumer commits."""
    story = Story(str(tmp_path))
    row = caught_up(story, range(0, 300, 10))
    assert (row["status"], row["findings"], row["facts"]) == ("OK", [], [])
    story.expect_same_from_histories()


def test_the_page_has_one_event(tmp_path: Path) -> None:
    root = str(tmp_path / "east")
    story = begin(root)
    caught_up(story, range(40, 400, 10))
    caught_up(story, range(400, 500, 10), shift=5_000)
    pages = ShopPages(root, clock=story.clock)
    model = pages.json("groups/billing")
    assert [(row["from_offset"], row["to_offset"]) for row in model["resets"]] == [(390, 5_400)]
    assert [event["words"] for event in model["events"] if event["kind"] == "sync"] == [
        f"An admin client began to set offsets of orders every 10 s: 45 commits until {story.at(490).clock():%H:%M:%S}"
    ]
    assert model["status"]["facts"][0]["detail"] in pages.html("groups/billing").text
    assert pages.sql("SELECT count(*) AS n FROM resets") == [{"n": 46}], "each commit is a row of the view"
