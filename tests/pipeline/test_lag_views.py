"""Lag of groups and topics from the table `lag`: sums of known values, counts of unknown ones, and the places of the maxima."""

from pathlib import Path

import pytest
from status_story import Story

from pipelines.query.engine import Snapshot


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """Billing is behind on two of five partitions; one is beyond the end, one unknown, one lost; another group knows nothing."""
    story = Story(str(tmp_path)).end(10).end(10, 1).end(10, 2).end(10, 4)
    story.commit(10).commit(10, 1).commit(12, 2).commit(3, 3).commit(2, 4).commit(3, 3, group="blind")
    story.end(0, 3, reason="leader_not_available")
    story.sample()
    story.at(30).end(40).end(20, 1, stable=10).end(12, 4, start=5).sample()
    story.at(60).sample()
    return Snapshot.open(story.root)


def test_lag_by_group(snapshot: Snapshot) -> None:
    billing, blind = snapshot.query("SELECT * FROM lag_by_group ORDER BY group_id").to_pylist()
    assert (billing["partitions"], billing["unknown_partitions"], billing["unknown_age_partitions"]) == (5, 1, 2)
    # the commit beyond the end counts as 0
    assert (billing["lag"], billing["max_lag"]) == (30 + 10 + 0 + 10, 30)
    assert (billing["max_lag_topic"], billing["max_lag_partition"]) == ("orders", 0)
    assert billing["max_lag_seconds_partition"] == 4
    assert (billing["max_lag_seconds"], billing["max_lag_seconds_low"], billing["max_lag_seconds_high"]) == (60, 60, None)
    assert (billing["messages_lost"], billing["blocked_partitions"]) == (3, 1)
    assert (blind["partitions"], blind["unknown_partitions"], blind["blocked_partitions"]) == (1, 1, 0)
    unknown = ("lag", "max_lag", "max_lag_partition", "max_lag_seconds", "max_lag_seconds_partition", "messages_lost")
    assert [blind[name] for name in unknown] == [None] * len(unknown)


def test_lag_by_topic(snapshot: Snapshot) -> None:
    (orders,) = snapshot.query("SELECT * FROM lag_by_topic").to_pylist()
    assert (orders["groups"], orders["partitions"], orders["unknown_partitions"]) == (2, 6, 2)
    assert (orders["lag"], orders["max_lag_group_id"], orders["max_lag_partition"]) == (50, "billing", 0)
    by_both = snapshot.query("SELECT group_id, topic, lag FROM lag_by_group_topic ORDER BY group_id").to_pylist()
    assert by_both == [
        {"group_id": "billing", "topic": "orders", "lag": 50},
        {"group_id": "blind", "topic": "orders", "lag": None},
    ]


def test_history_has_the_same_sums(snapshot: Snapshot) -> None:
    last, earlier = snapshot.query(
        "SELECT * FROM lag_history WHERE group_id = 'billing' ORDER BY sampled_at DESC LIMIT 2"
    ).to_pylist()
    assert (last["lag"], last["max_lag"], last["max_lag_partition"], last["lag_seconds_partition"]) == (50, 30, 0, 4)
    assert (last["partitions"], last["unknown_partitions"], last["messages_lost"], last["blocked_partitions"]) == (5, 1, 3, 1)
    assert [(part["partition"], part["lag"]) for part in last["behind"]] == [(0, 30), (1, 10), (4, 10)]
    # nothing changed at 60 s
    assert (last["sampled_at"] - earlier["sampled_at"]).total_seconds() == 30
    unknown = snapshot.query("SELECT lag, max_lag, lag_seconds, behind FROM lag_history WHERE group_id = 'blind'").to_pylist()
    assert unknown == [{"lag": None, "max_lag": None, "lag_seconds": None, "behind": []}]


def test_runs_of_no_change_are_folded_by_group(tmp_path: Path) -> None:
    story = Story(str(tmp_path)).end(10)
    story.commit(5).commit(5, group="other")
    for second, end in ((0, 10), (30, 10), (60, 10), (90, 12), (120, 12), (900, 12)):
        story.at(second).end(end).sample()
    story.log.offset_tombstone(0, group="other", topic="orders")
    story.at(930).sample()
    rows = Snapshot.open(story.root).query("SELECT * FROM lag_history ORDER BY group_id, sampled_at").to_pylist()
    start = rows[0]["sampled_at"]
    found = [(row["group_id"], (row["sampled_at"] - start).total_seconds(), row["lag"]) for row in rows]
    times = [(0, 5), (60, 5), (90, 7), (900, 7)]
    assert found == [(group, second, lag) for group in ("billing", "other") for second, lag in times]
