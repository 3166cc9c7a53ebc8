"""The history of a page beside the views that it reads only where they can have rows."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from log_builder import member
from shop_history import UNTIL, rows, shop_tables
from shop_pages import ShopPages
from status_story import Story

from pipelines.dashboard.history.group_history import GroupQueries
from pipelines.dashboard.history.span import span_until
from pipelines.query.engine import Snapshot

pytestmark = pytest.mark.long

_VIEWS = {
    "rebalances": "SELECT group_id, recorded_at AS at FROM rebalances",
    "resets": "SELECT group_id, reset_at AS at FROM resets",
}
#: End of the span before the end of the history, and its length.
_SPANS = [(before, length) for before in (0, 7.5, 26) for length in ("1h", "24h")]


@pytest.mark.parametrize("view", _VIEWS)
def test_a_page_has_every_row_of_a_view(view: str) -> None:
    snapshot = Snapshot.open(shop_tables())
    states = {row["group_id"]: row["state"] for row in rows("SELECT group_id, state FROM groups")}
    of_view = rows(_VIEWS[view])
    for before, length in _SPANS:
        span = span_until(UNTIL - timedelta(hours=before), length)
        expected = Counter(row["group_id"] for row in of_view if span.start <= row["at"] <= span.end)
        found = {}
        for group in expected:
            history = GroupQueries(snapshot, group, states.get(group) == "Empty", span)
            found[group] = len(history.rebalances() if view == "rebalances" else history.resets())
        assert found == dict(expected), span
    assert of_view


@pytest.mark.parametrize("empty_at", [-7_200, 60], ids=["before the span", "in the span"])
def test_a_page_has_the_offsets_that_an_administrator_moved_forward(empty_at: int, tmp_path: Path) -> None:
    story = Story(str(tmp_path / "east")).end(100)
    story.at(-9_000).log.group([member()], group="billing")
    story.at(-8_000).commit(10).sample()
    story.at(empty_at).log.group(group="billing")
    story.sample()
    # Kafka's tools commit without a leader epoch
    story.at(600).commit(40, epoch=-1).sample()
    story.at(660).log.group([member()], group="billing", generation=7)
    story.at(700).sample()
    (found,) = ShopPages(story.root).json("groups/billing?span=1h")["resets"]
    assert (found["from_offset"], found["to_offset"], found["direction"], found["reset_by"]) == (10, 40, "forward", "admin")
