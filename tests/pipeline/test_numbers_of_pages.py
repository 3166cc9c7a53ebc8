"""Numbers that must not say more than is known: ages without an upper bound, greatest values, groups that existed before."""

import re
from pathlib import Path

import pytest
from log_builder import member
from shop_pages import ShopPages
from status_story import Story

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> ShopPages:
    """Billing is behind since before the first sample, ten minutes ago; `known` since a record 60 s ago."""
    story = Story(str(tmp_path_factory.mktemp("numbers") / "east"))
    story.at(-3_600).log.group([member()], group="billing")
    story.at(0).end(100).end(10, 1).commit(50).commit(10, 1, group="known").sample()
    story.at(30).sample()
    story.at(540).end(10, 1).sample()
    story.at(570).end(12, 1).sample()
    # nothing changed since, so that the history has no row of this sample
    story.at(600).sample()
    return ShopPages(story.root)


@pytest.mark.parametrize("page", ["", "groups", "groups/billing", "topics", "topics/orders"])
def test_an_age_without_an_upper_bound_is_at_least_so_great_on_every_page(page: str, pages: ShopPages) -> None:
    text = pages.html(page).text
    assert "≥ 10 min" in text
    # without the scales and legends of charts, and times since events
    assert not re.search(r"(?<!≥ )(?<!to )(?<!≤ )(?<!over )\b10 min\b(?! ago)", text.replace(" age 10 min", "")), text


def test_a_greatest_value_is_not_less_than_the_current_one(pages: ShopPages) -> None:
    """While nothing changes the history has no row, and the age grows."""
    tile = next(each for each in pages.json("index")["ages"] if each["group_id"] == "known")
    assert max(point["lag_seconds"] for point in tile["points"]) == tile["lag_seconds"]
    model = pages.json("groups/known")
    points = model["lag_history"]
    assert (points[-1]["lag"], points[-1]["lag_seconds"]) == (model["figures"]["lag"], model["figures"]["lag_seconds"])
    assert max(point["lag_seconds"] for point in points if point["lag_seconds"] is not None) == model["figures"]["lag_seconds"]
    assert "greatest age ≥ 10 min" in pages.html("groups/billing").text


def test_a_group_that_the_log_had_before_the_first_batch_was_not_created_then(pages: ShopPages) -> None:
    model = pages.json("index")
    assert model["last_day"]["created"]["groups"] == 0
    assert re.search(r"Since the first batch, \S+ ?: no group was created", pages.html("").text)
    (event,) = (each["words"] for each in pages.json("groups/billing")["events"] if each["kind"] == "group")
    assert event.endswith("written before the first batch; when it was created is unknown")


def test_a_group_that_is_created_later_counts(tmp_path: Path) -> None:
    story = Story(str(tmp_path / "east")).end(10)
    story.commit(1).sample()
    story.at(60).log.group([member()], group="new")
    story.sample()
    found = ShopPages(story.root)
    assert [each["group_id"] for each in found.json("index")["last_day"]["created"]["most"]] == ["new"]
    assert "Group created" in [each["words"] for each in found.json("groups/new")["events"]]


def test_a_commit_after_the_sample_was_just_now(tmp_path: Path) -> None:
    """The clock of a broker may be ahead of that of the job."""
    story = Story(str(tmp_path / "east")).end(10)
    story.at(25).commit(5)
    story.at(0).sample()
    text = ShopPages(story.root).html("groups/billing").text
    assert "just now" in text
    assert "in 25 s" not in text


def test_a_trend_of_some_partitions_is_not_that_of_the_group(tmp_path: Path) -> None:
    story = Story(str(tmp_path / "east"))
    for step in range(8):
        story.at(30 * step).end(100 * step).end(100 * step, 1).commit(50 * step).sample()
    # too short for a trend
    story.at(240).end(800).end(800, 1).commit(400).commit(800, 1).sample()
    found = ShopPages(story.root)
    figures = found.json("groups/billing")["figures"]
    assert (figures["trend_partitions"], figures["partitions"]) == (1, 2)
    assert "in 1 of 2 partitions" in found.html("groups/billing").text
