"""Pages at past times whose tables `maintain` has removed: each page and tab answers, and says what is no longer kept."""

import re
from datetime import datetime
from urllib.parse import quote

import pytest
from log_builder import member
from shop_pages import ShopPages
from status_story import Story

from pipelines.upkeep.maintain import Maintenance, maintain

TABS = ("offsets", "members", "expiry", "resets", "transactions", "records")
PAGES = (
    *("", "groups", "topics", "topics/orders", "clients", "clients/client", "offsets-topic", "alerts", "groups/simple"),
    *(f"groups/billing?tab={tab}" for tab in TABS),
)
#: What a page must not show of a value that is unknown.
WRONG = re.compile(r"\b(None|nan|unreadable)\b|: {2}")


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[ShopPages, list[datetime]]:
    """Billing has two members of one client; the past times are each second of two minutes with its batches."""
    story = Story(str(tmp_path_factory.mktemp("past") / "east"))
    story.at(0).log.group([member("m-0")], group="early")
    story.end(9).end(7, 1).commit(5).commit(7, 1).commit(3, group="simple").sample()
    story.at(20).log.group([member("m-1"), member("m-2", topics=())], group="billing")
    story.at(21).commit(8).sample()
    story.at(40).commit(2).batch()
    story.at(60).sample()
    times = [story.at(seconds).clock() for seconds in (1, 21, 22, 41, 61)]
    story.at(90).log.group([member("m-3")], group="billing", generation=6)
    story.at(91).commit(4).end(12).sample()
    story.at(600).commit(9).end(15).sample()
    story.at(700).log.group_tombstone("billing")
    story.at(701).commit(9, group="other").sample()
    maintain(story.root, Maintenance(400, 0, 32), story.at(702).clock(), lambda _: None)
    return ShopPages(story.root), times


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("page", PAGES)
def test_every_page_of_a_past_time(page: str, number: int, past: tuple[ShopPages, list[datetime]]) -> None:
    pages, times = past
    found = pages.html(f"{page}{'&' if '?' in page else '?'}as_of={quote(times[number].isoformat())}")
    assert not WRONG.search(found.text), found.text
    assert "The tables of this time were removed (maintain.vacuum_hours)" in found.text


def test_members_without_a_host_have_names(past: tuple[ShopPages, list[datetime]]) -> None:
    pages, times = past
    as_of = quote(times[3].isoformat())
    model = pages.json(f"groups/billing?tab=members&as_of={as_of}")
    assert {label["name"] for label in model["members"].values()} == {"client 127.0.0.1", "client m-2"}
    # members with partitions, from the history of owners
    assert [row["member_id"] for row in pages.json(f"clients/client?as_of={as_of}")["members"]] == ["m-1", "m-0"]
    assert [(row["client_id"], row["members"]) for row in pages.json(f"clients?as_of={as_of}")["rows"]] == [("client", 2)]


def test_a_tab_says_what_is_no_longer_kept(past: tuple[ShopPages, list[datetime]]) -> None:
    pages, times = past
    as_of = quote(times[3].isoformat())
    assert "no longer kept" in pages.html(f"groups/billing?tab=members&as_of={as_of}").text
    assert "can no longer be read" in pages.html(f"groups/billing?tab=expiry&as_of={as_of}").text
