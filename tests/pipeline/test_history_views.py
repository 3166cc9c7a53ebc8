"""Views of the histories on logs that brokers wrote, triggers of rebalances, and histories that do not reach back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from loaded_logs import ERA_OF_LOG, log_records
from log_builder import NOW_MS, Log, member
from sampled_topics import SampledTopics, sampled
from table_logs import applied, applied_records

from coordinator_core.codec import encode_assignment
from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolAssignment, ProtocolTopicPartitions
from coordinator_core.state.era import Era
from pipelines.batch.expiry_sweep import sweep
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.upkeep.maintain import Maintenance, maintain

ERA = Era.named("4")


def query(root: str | Path, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in Snapshot.open(str(root)).query(sql).to_pylist()]


def rebalances(root: Path, group: str) -> list[tuple[Any, ...]]:
    columns = (
        "from_generation, to_generation, trigger, outcome, duration_seconds, members_before, members_after, partitions_moved, "
        "seconds_without_owner"
    )
    return query(root, f"SELECT {columns} FROM rebalances WHERE group_id = '{group}' ORDER BY log_offset")


@pytest.mark.parametrize("version", ["2.8.2", "4.1.1"])
def test_rebalances_of_a_classic_group_in_a_brokers_log(version: str, tmp_path: Path) -> None:
    applied_records(log_records(version), Era.named(ERA_OF_LOG[version]), str(tmp_path))
    rows = rebalances(tmp_path, "billing-workers")
    first = None if version == "2.8.2" else 0
    assert [row[:4] for row in rows] == [
        (first, 1, "member_joined", "completed"),
        (1, 2, "member_joined", "completed"),
        (2, 3, "member_joined", "completed"),
    ]
    assert [row[5:8] for row in rows] == [(0, 1, 8), (1, 2, 4), (2, 3, 2)]
    assert all(0 < row[4] < 0.05 for row in rows)
    # partitions that move within one record have no owner from the last state on; new partitions had none before
    assert [row[8] == row[4] for row in rows] == [False, True, True]
    assert [row[2] for row in rebalances(tmp_path, "nightly-report")] == ["member_joined", "member_left"]
    assert check(str(tmp_path)) == []


def test_rebalances_of_a_consumer_group_in_a_brokers_log(tmp_path: Path) -> None:
    """The second member waits until the first one has given up its partitions: the test client polls every five seconds."""
    applied_records(log_records("4.1.1"), ERA, str(tmp_path))
    assert rebalances(tmp_path, "next-gen") == [
        (None, 1, "member_joined", "completed", 0.0, 0, 1, 8, None),
        (1, 2, "member_joined", "completed", 4.966, 1, 2, 4, 4.859),
    ]
    assert rebalances(tmp_path, "next-gen-left")[1] == (1, 2, "member_left", "completed", 0.0, 1, 0, 0, 0.0)
    owners = (
        "SELECT client_id, count(*) AS n, count(until) AS ended FROM ownership WHERE group_id = 'next-gen' GROUP BY client_id"
    )
    assert sorted(query(tmp_path, owners)) == [("ng0", 8, 4), ("ng1", 4, 0)]
    edges = "SELECT client_id, until IS NULL AS lasts FROM consumption_edges WHERE group_id = 'next-gen' AND topic_id IS NOT NULL"
    assert sorted(query(tmp_path, edges)) == [("ng0", False), ("ng0", True), ("ng1", True)]


def test_share_and_streams_groups_of_a_brokers_log(tmp_path: Path) -> None:
    applied_records(log_records("4.3.0-share-streams"), ERA, str(tmp_path))
    rows = query(tmp_path, "SELECT DISTINCT group_type, seconds_without_owner IS NULL AS unknown FROM rebalances")
    assert ("share", True) in rows
    assert ("share", False) not in rows
    assert {kind for kind, _ in rows} >= {"share", "streams"}
    assert check(str(tmp_path)) == []


def assigned(name: str, *partitions: int, topics: tuple[str, ...] = ("foo",), instance: str | None = None) -> MemberMetadata:
    parts = (ProtocolTopicPartitions("foo", partitions),) if partitions else ()
    assignment = encode_assignment(ConsumerProtocolAssignment(parts), 0)
    return replace(member(name, topics=topics, instance_id=instance), assignment=assignment)


def test_triggers(tmp_path: Path) -> None:
    """One group, one rebalance per trigger that a classic group can have."""
    log = Log(partition=3)
    steps = [
        ("member_joined", "range", [assigned("m1", 0, 1)]),
        ("members_changed", "range", [assigned("m2", 0, 1)]),
        ("topics_changed", "range", [assigned("m2", 0, 1, 2)]),
        ("subscription_changed", "range", [assigned("m2", 0, 1, 2, topics=("foo", "bar"))]),
        ("unknown", "range", [assigned("m2", 0, 1, 2, topics=("foo", "bar"))]),
        ("member_joined", "cooperative-sticky", [assigned("m2", 0, 1, topics=("foo", "bar")), assigned("m3")]),
        ("revoked_partitions", "cooperative-sticky", [assigned("m2", 0, 1, topics=("foo", "bar")), assigned("m3", 2)]),
        ("members_changed", "range", [assigned("m4", 0, 1, 2, instance="i")]),
        ("member_replaced", "range", [assigned("m5", 0, 1, 2, instance="i")]),
        ("member_left", "range", []),
    ]
    for number, (_, protocol, members) in enumerate(steps, 1):
        log.group(members, generation=number, protocol=protocol, timestamp=NOW_MS)
    applied(log, ERA, [4], str(tmp_path))
    assert query(tmp_path, "SELECT trigger FROM rebalances ORDER BY log_offset") == [(trigger,) for trigger, _, _ in steps]


def test_a_group_in_a_cleaned_log_begins_with_an_unknown_trigger(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.group([member()], generation=17)
    applied(log, ERA, [], str(tmp_path))
    assert query(tmp_path, "SELECT from_generation, trigger, members_before, members_after, members_joined FROM rebalances") == [
        (None, "unknown", None, 1, None)
    ]


def aged(root: Path) -> None:
    """Remove all rows of the histories, as maintenance does after their time."""
    at = datetime.fromtimestamp(NOW_MS / 1000, UTC) + timedelta(days=91)
    maintain(str(root), Maintenance(90, 168, 16), at, lambda _line: None)
    assert query(root, "SELECT * FROM ownership_history") == []


def test_what_began_before_the_histories_has_no_start(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.group([assigned("m1", 0, 1)], generation=1)
    log.commit(0, 9)
    end = log.end
    log.commit(0, 3)
    log.group([assigned("m1", 0), assigned("m2", 1)], generation=2)
    log.records[end:] = [record._replace(timestamp=NOW_MS + 1000) for record in log.records[end:]]
    part = Log(partition=3)
    part.records = log.records[:end]
    applied(part, ERA, [], str(tmp_path), again=False)
    aged(tmp_path)
    owners = "SELECT partition, member_id, since IS NULL AS earlier, until FROM ownership ORDER BY partition, member_id"
    assert query(tmp_path, owners) == [(0, "m1", True, None), (1, "m1", True, None)]
    edges = "SELECT group_id, since, until FROM consumption_edges"
    assert query(tmp_path, edges) == [("group", None, None)]
    applied(log, ERA, [end], str(tmp_path), again=False)
    at = datetime.fromtimestamp(NOW_MS / 1000 + 1, UTC)
    assert query(tmp_path, owners) == [(0, "m1", True, None), (1, "m1", True, at), (1, "m2", False, None)]
    # the membership of now counts for a commit after the last record of the group
    assert query(tmp_path, "SELECT from_offset, to_offset, reset_by FROM resets") == [(9, 3, "unknown")]
    assert check(str(tmp_path)) == []


def test_a_member_is_known_to_reset_an_offset_without_history(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.group([assigned("m1", 0)], generation=1)
    log.commit(0, 9)
    end = log.end
    log.commit(0, 3)
    part = Log(partition=3)
    part.records = log.records[:end]
    applied(part, ERA, [], str(tmp_path), again=False)
    aged(tmp_path)
    applied(log, ERA, [end], str(tmp_path), again=False)
    assert query(tmp_path, "SELECT from_offset, to_offset, reset_by FROM resets") == [(9, 3, "member")]


def test_a_swept_group_is_dead(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.group([], generation=4, timestamp=NOW_MS)
    store = applied(log, ERA, [], str(tmp_path))
    assert sweep(store, ERA, ERA.default_retention_ms, NOW_MS + 2 * ERA.default_retention_ms) is not None
    columns = "state, previous_state, generation, previous_generation, member_count"
    assert query(tmp_path, f"SELECT {columns} FROM membership_history ORDER BY batch_id") == [
        ("Empty", None, 4, None, 0),
        ("Dead", "Empty", 4, 4, 0),
    ]
    assert check(str(tmp_path)) == []


def test_groups_without_members_and_groups_of_deleted_topics_are_unused(tmp_path: Path) -> None:
    log = Log(partition=3)
    log.commit(0, 5, group="simple", topic="orders", at=NOW_MS)
    log.group([member()], group="live", generation=1)
    log.commit(0, 5, group="live", topic="foo", at=NOW_MS)
    log.group([member()], group="of-deleted", generation=1)
    log.commit(0, 5, group="of-deleted", topic="gone", at=NOW_MS)
    applied(log, ERA, [], str(tmp_path))
    sampled(str(tmp_path), SampledTopics(orders=9, foo=9))
    columns = "group_id, member_count, offsets, topics, missing_topics, expires_at IS NULL AS lasts"
    assert query(tmp_path, f"SELECT {columns} FROM unused_groups ORDER BY group_id") == [
        ("of-deleted", 1, 1, 1, 1, False),
        ("simple", 0, 1, 1, 0, False),
    ]
    (idle_days, last), *_ = query(tmp_path, "SELECT idle_days, last_activity_at FROM unused_groups WHERE group_id = 'simple'")
    finished = Snapshot.open(str(tmp_path)).batch.finished_at
    assert last == datetime.fromtimestamp(NOW_MS / 1000, UTC)
    assert idle_days == pytest.approx((finished - last) / timedelta(days=1), abs=0.06)


def test_folders_of_earlier_versions_get_the_histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = ("membership_history", "ownership_history")
    log = Log(partition=3)
    log.group([assigned("m1", 0, 1)], generation=1)
    with monkeypatch.context() as patch:
        patch.setattr(definitions, "WRITE_ORDER", tuple(name for name in definitions.WRITE_ORDER if name not in new))
        applied(log, ERA, [], str(tmp_path), again=False)
    assert not any((tmp_path / name).exists() for name in new)
    with pytest.raises(UsageError, match="has no table membership_history: an earlier version of Grouplake wrote it"):
        query(tmp_path, "SELECT * FROM rebalances")
    log.group([assigned("m1", 0), assigned("m2", 1)], generation=2)
    applied(log, ERA, [1], str(tmp_path), again=False)
    assert query(tmp_path, "SELECT from_generation, trigger FROM rebalances") == [(1, "member_joined")]
    owners = "SELECT partition, member_id, since IS NULL AS earlier, until IS NULL AS lasts FROM ownership"
    assert sorted(query(tmp_path, owners)) == [(0, "m1", True, True), (1, "m1", True, False), (1, "m2", False, True)]
    assert check(str(tmp_path)) == []
