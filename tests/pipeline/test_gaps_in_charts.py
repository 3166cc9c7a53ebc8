"""Times in which the job did not sample are gaps of the charts, whatever their length."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sampled_topics import START_MS
from shop_pages import ShopPages
from status_story import Story

from pipelines.dashboard.history.thinned_series import thinned

pytestmark = pytest.mark.long

START = datetime.fromtimestamp(START_MS / 1000, UTC)
Row = dict[str, Any]


def told(root: Path, interval: int | None, *, away: tuple[float, float]) -> Story:
    """Ten minutes of samples every 30 s, a commit at each, apart from a time in seconds; billing is 4 records behind."""
    story = Story(str(root), interval_seconds=interval)
    for number in range(21):
        seconds = 30.0 * number
        story.at(seconds).end(number + 4).commit(number)
        if not away[0] < seconds < away[1]:
            story.sample()
        elif seconds + 30 >= away[1]:
            story.restart()
    return story


def seconds_of(row: Row) -> float:
    return (datetime.fromisoformat(row["at"]) - START).total_seconds()


def gaps(points: list[Row], value: str) -> list[tuple[int, int]]:
    """Starts and ends of the times without a value."""
    found = []
    for before, after in pairwise(points):
        if before[value] is None and after[value] is not None:
            found.append((round(seconds_of(before)), round(seconds_of(after))))
    return found


def windows(rates: list[Row]) -> dict[float, float | None]:
    """Rates by the start of their window, without the first batch, which has read the log from its beginning."""
    return {seconds_of(row): row["commits_per_second"] for row in rates if row["until"] is not None and seconds_of(row) >= 30}


@pytest.mark.parametrize("away", [(120.0, 420.0), (120.0, 240.0)])
def test_a_time_without_samples_is_a_gap(tmp_path: Path, away: tuple[float, float]) -> None:
    told(tmp_path, 30, away=away)
    model = ShopPages(str(tmp_path)).json("groups/billing?span=1h")
    assert gaps(model["lag_history"], "lag") == [away]
    assert gaps(model["lag_history"], "lag_seconds") == [away]
    # the batch after the time away has the commits of both windows
    rates = windows(model["commits"])
    assert {start for start, rate in rates.items() if rate is None} == set(away)
    # commits that were read when the job was back are no burst
    assert max(rate or 0 for rate in rates.values()) <= 2 / 30
    trend = ShopPages(str(tmp_path)).json("groups")["trends"]["billing"]
    assert gaps(trend, "lag") == [away]


def test_one_missed_sample_is_no_gap(tmp_path: Path) -> None:
    told(tmp_path, 30, away=(120.0, 180.0))
    model = ShopPages(str(tmp_path)).json("groups/billing?span=1h")
    assert gaps(model["lag_history"], "lag") == []
    assert None not in windows(model["commits"]).values()


def test_a_value_that_does_not_change_is_known_until_the_last_sample(tmp_path: Path) -> None:
    """Rows of runs without a change are folded, so the last row is older than the last sample."""
    story = Story(str(tmp_path), interval_seconds=30)
    story.at(0).end(50).commit(10).sample()
    for number in range(1, 11):
        story.at(30 * number).sample()
    story.restart()
    for number in range(30, 33):
        story.at(30 * number).sample()
    points = ShopPages(str(tmp_path)).json("groups/billing?span=1h")["lag_history"]
    known = [point for point in points if point["lag"] is not None]
    assert gaps(points, "lag") == [(300, 900)]
    assert next((round(seconds_of(point)), point["lag"]) for point in known if seconds_of(point) > 0) == (300, 40)


def test_without_an_interval_only_long_gaps_are_seen(tmp_path: Path) -> None:
    """History that was written before jobs declared an interval."""
    told(tmp_path, None, away=(120.0, 420.0))
    assert gaps(ShopPages(str(tmp_path)).json("groups/billing?span=1h")["lag_history"], "lag") == []


def test_a_long_series_keeps_its_gaps() -> None:
    """More points than a chart has, with gaps between samples of the same bucket."""
    points: list[Row] = [{"at": START + timedelta(seconds=number), "lag": number % 7 or 1} for number in range(3_000)]
    for number in (700, 1_501, 1_502, 2_222):
        points[number]["lag"] = None
    kept = thinned(points, "lag")
    empty = [point["at"] for point in kept if point["lag"] is None]
    assert [(at - START).total_seconds() for at in empty] == [700, 1_501, 2_222]
    assert len(kept) < 700
