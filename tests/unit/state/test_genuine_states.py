"""The genuine logs load to the state of their brokers' answers."""

from typing import Any

import pytest
from genuine import VERSIONS, expected, records
from loaded_logs import ERA_OF_LOG, load, replay, topic_ids

from coordinator_core.state.group_state import GroupState
from coordinator_core.state.views import GroupView, MemberView


def committed_rows(state: GroupState, group_id: str) -> list[list[object]]:
    # The C client that wrote the logs ends metadata with a NUL byte and removes it when it reads.
    return sorted(
        [partition.topic, partition.partition, commit.offset, commit.metadata.rstrip("\0")]
        for partition, commit in state.committed(group_id).items()
    )


def member_row(member: MemberView) -> list[object]:
    return [member.client_id, member.group_instance_id, assigned(member)]


def assigned(member: MemberView) -> list[list[Any]]:
    return sorted([a.topic, p] for a in member.assigned for p in a.partitions)


@pytest.mark.parametrize("version", VERSIONS)
def test_committed_offsets_are_what_offset_fetch_answered(version: str) -> None:
    state, anomalies = load(version)
    answered = expected(version)["committed"]
    assert {g: committed_rows(state, g) for g in answered} == {g: sorted(row[:4] for row in rows) for g, rows in answered.items()}
    assert anomalies == []


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_client_sees_of_the_log_is_enough_without_transactions(version: str) -> None:
    state, _ = replay(records(version), ERA_OF_LOG[version])
    plain = {g: rows for g, rows in expected(version)["committed"].items() if not g.startswith("txn-")}
    assert {g: committed_rows(state, g) for g in plain} == {g: sorted(row[:4] for row in rows) for g, rows in plain.items()}


@pytest.mark.parametrize("version", ["2.8.2", "4.1.1"])
def test_groups_are_what_describe_answered(version: str) -> None:
    state, _ = load(version)
    names = topic_ids(version)
    for group_id, described in expected(version)["described"].items():
        group = state.registry.groups.get(group_id)
        view: GroupView | None = group.view(names) if group is not None else state.group(group_id)
        if described["state"] == "DEAD":
            assert view is None
            continue
        assert view is not None, group_id
        assert view.state.upper() == described["state"]
        assert (view.group_type == "simple") == described["simple"]
        if described["assignor"]:
            assert view.protocol == described["assignor"]
        wanted = [[client, instance, sorted(assigned)] for client, instance, assigned in described["members"]]
        assert sorted(map(member_row, view.members), key=str) == sorted(wanted, key=str)


def test_the_open_transaction_is_pending() -> None:
    state, _ = load("4.1.1")
    pending = state.pending("txn-open")
    assert sorted(partition.partition for partition in pending) == [0, 1, 2, 3]
    assert [commit.offset for _, by_producer in sorted(pending.items()) for commit in by_producer.values()] == [88, 89, 90, 91]


def test_share_and_streams_groups() -> None:
    state, anomalies = load("4.3.0-share-streams")
    groups = state.groups()
    assert anomalies == []
    assert (groups["share-workers"].group_type, groups["share-workers"].state) == ("share", "Stable")
    assert [member_row(member) for member in sorted(groups["share-workers"].members, key=lambda m: m.client_id)] == [
        ["sc0", None, [["orders", 2], ["orders", 3], ["payments", 0]]],
        ["sc1", None, [["orders", 0], ["orders", 1], ["payments", 1]]],
    ]
    assert (groups["share-left"].state, groups["share-left"].generation, groups["share-left"].members) == ("Empty", 4, ())
    assert (groups["streams-app"].group_type, groups["streams-app"].generation) == ("streams", 4)
    assert groups["streams-app"].subscribed_topics == ("orders",)
    assert sorted(partition for member in groups["streams-app"].members for _, partition in assigned(member)) == [0, 1, 2, 3]
