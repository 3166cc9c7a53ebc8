"""Views of the histories equal a plain walk over the records, wherever the log is cut into batches."""

import tempfile
from collections import Counter
from typing import Any

import pytest
from group_lives import lives
from hypothesis import given, settings
from hypothesis import strategies as st
from log_builder import Log
from rebalance_walk import Walk, walks
from table_logs import applied

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.group_events import CommitEvent
from coordinator_core.health.offset_jumps import offset_jumps
from coordinator_core.state.era import Era
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.query.rebalances import IS_REBALANCE
from pipelines.runtime.timestamps import to_ms

ERA = Era.named("4")
_Row = dict[str, Any]

_cuts = st.lists(st.integers(1, 40), max_size=3)
few = settings(max_examples=max(5, (settings.default or settings()).max_examples // 4))


def plain(row: _Row) -> _Row:
    return {name: to_ms(value) if name.endswith("_at") and value is not None else value for name, value in row.items()}


def expected_edges(walk: Walk) -> Counter[Any]:
    """Stretches of time in which a client owns a partition of a topic."""
    by_edge: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in walk.ownership:
        until = float("inf") if row["until"] is None else row["until"]
        by_edge.setdefault((row["client_id"], row["place"][0]), []).append((row["since"], until))
    found: Counter[Any] = Counter()
    for (client, topic), times in by_edge.items():
        merged: list[list[float]] = []
        for since, until in sorted(times):
            if merged and since <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], until)
            else:
                merged.append([since, until])
        found.update((walk.group_id, client, topic, since, None if until == float("inf") else until) for since, until in merged)
    return found


@pytest.mark.long
@few
@given(log=lives(), cuts=_cuts)
def test_rebalances_and_owners_equal_a_walk_over_the_records(log: Log, cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as root:
        applied(log, ERA, cuts, root, again=False)
        snapshot = Snapshot.open(root)
        expected = walks(log, ERA)
        columns = (
            "from_generation, to_generation, trigger, outcome, started_at, finished_at, members_before, members_after, "
            "members_joined, members_left, partitions_moved, seconds_without_owner"
        )
        for group_id, walk in expected.items():
            rows = snapshot.query(f"SELECT {columns} FROM rebalances WHERE group_id = '{group_id}' ORDER BY log_offset")
            assert [plain(row) for row in rows.to_pylist()] == walk.rebalances
        counts = [
            snapshot.query(f"SELECT group_id, count(*) AS rebalances FROM {rows} GROUP BY group_id ORDER BY group_id").to_pylist()
            for rows in ("rebalances", f"membership_history WHERE {IS_REBALANCE}")
        ]
        assert counts[0] == counts[1]
        columns = "group_id, COALESCE(topic_id, topic) AS t, partition, member_id, client_id, since, until"
        owned = Counter(
            (row["group_id"], (row["t"], row["partition"]), row["member_id"], row["client_id"], *times(row))
            for row in snapshot.query(f"SELECT {columns} FROM ownership").to_pylist()
        )
        assert owned == Counter(
            (group_id, row["place"], row["member_id"], row["client_id"], row["since"], row["until"])
            for group_id, walk in expected.items()
            for row in walk.ownership
        )
        edges = "SELECT group_id, client_id, COALESCE(topic_id, topic) AS t, since, until FROM consumption_edges"
        found = Counter((row["group_id"], row["client_id"], row["t"], *times(row)) for row in snapshot.query(edges).to_pylist())
        assert found == sum((expected_edges(walk) for walk in expected.values()), Counter())
        assert check(root) == []


def times(row: _Row) -> tuple[int | None, int | None]:
    return to_ms(row["since"]), None if row["until"] is None else to_ms(row["until"])


def commit_events(snapshot: Snapshot, group_id: str) -> list[CommitEvent]:
    rows = snapshot.query(f"SELECT * FROM offset_history WHERE group_id = '{group_id}' ORDER BY batch_id, log_offset")
    events: list[CommitEvent] = []
    for row in rows.to_pylist():
        event = CommitEvent(
            to_ms(row["commit_timestamp"] or row["record_timestamp"]),
            TopicPartition(row["topic"], row["partition"]),
            row["committed_offset"],
            leader_epoch=row["leader_epoch"],
            metadata=row["metadata"] or "",
            transactional=row["producer_id"] is not None,
            batch_id=row["batch_id"],
            of_several=row["commits"] > 1,
            log_offset=row["log_offset"],
        )
        events += event.after_rewind(row["min_offset"]) if row["change"] == "rewind" else (event,)
    return events


@pytest.mark.long
@few
@given(log=lives(commits=True, max_size=40), cuts=_cuts)
def test_resets_equal_the_rule_of_the_core(log: Log, cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as root:
        applied(log, ERA, cuts, root, again=False)
        snapshot = Snapshot.open(root)
        memberships = {group_id: walk.memberships for group_id, walk in walks(log, ERA, cuts).items()}
        for group_id in ("a", "b"):
            rows = snapshot.query(f"SELECT * FROM resets WHERE group_id = '{group_id}'").to_pylist()
            names = ("partition", "from_offset", "to_offset", "reset_by", "from_is_least")
            found = Counter((to_ms(row["reset_at"]), *(row[name] for name in names)) for row in rows)
            jumps = offset_jumps(commit_events(snapshot, group_id), memberships.get(group_id, []))
            assert found == Counter(
                (j.at_ms, j.partition.partition, None if j.hides_origin else j.from_offset, j.to_offset, str(j.by), j.is_least)
                for j in jumps
            )
            for row in rows:
                if row["from_offset"] is None:
                    assert (row["size"], row["direction"]) == (None, "back")
                    continue
                assert row["size"] == abs(row["to_offset"] - row["from_offset"])
                assert row["direction"] == ("back" if row["to_offset"] < row["from_offset"] else "forward")
