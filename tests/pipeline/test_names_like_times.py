"""Groups, topics and clients whose names look like times: no page takes them for one, and all other times are elements."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from log_builder import member
from shop_pages import ParsedPage, ShopPages
from status_story import Story

from pipelines.dashboard.path_names import encode_name

#: At hours that the story does not have.
NAMES = ("03:33", "03:33 UTC", "3 Mar, 03:33 UTC", "2026-03-03 03:33", "since 03:33 UTC: not subscribed")
_TIMES = re.compile(r"<time datetime=\"([^\"]*)\">([^<]*)</time>")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> ShopPages:
    """Groups with a member each that stop to commit, and a topic to which no member subscribes."""
    root: Path = tmp_path_factory.mktemp("times") / "east"
    story = Story(str(root))
    for name in NAMES:
        story.log.group([replace(member("m", topics=[name]), client_id=name)], group=name)
    for minute in range(1, 26):
        story.at(60 * minute)
        for name in NAMES:
            story.end(100 * minute, topic=name).end(100 * minute, topic=f"{name} EU")
            if minute < 8:
                for topic in (name, f"{name} EU"):
                    story.log.commit(0, 100 * minute - 5, group=name, topic=topic, at=story.log.now_ms)
        story.sample()
    return ShopPages(str(root), clock=story.clock)


@pytest.mark.parametrize("name", NAMES)
def test_pages_of_a_group(pages: ShopPages, name: str) -> None:
    page = f"groups/{encode_name(name)}"
    html = pages.get(page).text
    status = html[html.index('data-live="status"') : html.index('data-live="figures"')]
    text = ParsedPage(status).text
    assert "No commits on" in text
    assert f"{name} EU: not subscribed" in text
    shown = [text for _, text in _TIMES.findall(status)]
    assert shown
    assert all(re.fullmatch(r"(\d+ Nov, )?\d\d:\d\d UTC", each) for each in shown)
    for each in (page, f"topics/{encode_name(name)}", f"clients/{encode_name(name)}"):
        assert [text for _, text in _TIMES.findall(pages.get(each).text) if "03:33" in text] == []
    # the JSON has the same sentences
    (reason, *_) = pages.json(page)["status"]["reasons"]
    assert reason["sentence"] in text


@pytest.mark.parametrize("page", ["", "groups", "topics", "clients", "alerts"])
def test_lists(pages: ShopPages, page: str) -> None:
    html = pages.get(page).text
    assert "03:33" in html or page == "alerts"
    assert [text for _, text in _TIMES.findall(html) if "03:33" in text] == []
