"""`maintain` thins the samples and the lag history by `lag.keep`; what remains still gives true ages."""

from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from status_story import Story

from coordinator_core.health import keep_rules
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.tables.store import TableStore
from pipelines.upkeep.maintain import Maintenance, maintain

pytestmark = pytest.mark.long

KEEP = keep_rules("1m:all 5m:1m")


def rows(root: str, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Snapshot.open(root).query(sql).to_pylist()
    return found


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Samples every 10 s for ten minutes; the group never commits again, and the log grows."""
    story = Story(str(tmp_path)).end(5)
    story.commit(5).commit(7, group="other")
    for second in range(0, 600, 10):
        story.at(second).end(6 + second).sample()
    return story


def run_maintain(story: Story) -> None:
    maintain(story.root, Maintenance(9_999, 168, 16, KEEP), story.clock(), lambda _line: None)


def test_samples_and_history_are_thinned_by_age(story: Story) -> None:
    count = "SELECT count(*) AS n FROM "
    before = {name: rows(story.root, count + name)[0]["n"] for name in ("end_offsets", "lag_history")}
    assert before == {"end_offsets": 60, "lag_history": 120}
    run_maintain(story)
    times = [row["answered_at"] for row in rows(story.root, "SELECT answered_at FROM end_offsets ORDER BY answered_at")]
    distances = [(after - earlier).total_seconds() for earlier, after in pairwise(times)]
    # one sample that is older than all rules remains: the age of the group is still bounded from below
    assert distances == [distances[0], 60, 60, 60, *distances[4:]]
    assert set(distances[5:]) == {10}
    history = rows(story.root, "SELECT group_id, sampled_at FROM lag_history ORDER BY group_id, sampled_at")
    by_group = [[row["sampled_at"] for row in history if row["group_id"] == group] for group in ("billing", "other")]
    assert by_group[0] == by_group[1]
    assert by_group[0][-6:] == times[-6:]
    assert min(by_group[0]) >= story.clock() - timedelta(minutes=6)
    assert check(story.root) == []
    versions = {name: TableStore(story.root).table(name).version() for name in before}
    run_maintain(story)
    assert {name: TableStore(story.root).table(name).version() - version for name, version in versions.items()} == {
        name: 0 for name in before
    }, "nothing is left to remove"
    go_on(story)


def go_on(story: Story) -> None:
    """A new process continues from the samples that are left."""
    (before,) = rows(story.root, "SELECT lag, lag_seconds_low FROM lag WHERE group_id = 'billing'")
    story.restart()
    story.at(600).sample()
    (after,) = rows(story.root, "SELECT lag, lag_seconds, lag_seconds_low, lag_method FROM lag WHERE group_id = 'billing'")
    assert after["lag"] == before["lag"]
    assert after["lag_method"] == "lower_bound"
    assert after["lag_seconds_low"] <= before["lag_seconds_low"] + 10
    assert check(story.root) == []
