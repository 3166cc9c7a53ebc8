"""Rounds of requests of a poll: moved coordinators, silent brokers, groups that no list has, and bounded requests."""

from typing import Any

import pytest
from fake_coordinators import FakeCoordinators

from coordinator_core.group_polls.group_poll import PolledOffset, ShareGroupAnswer, TopicPartitionKey
from coordinator_core.group_polls.group_poller import GroupPoller
from coordinator_core.log.errors import RequestRejected


def poller(brokers: FakeCoordinators) -> GroupPoller:
    connection: Any = brokers
    return GroupPoller(connection, lambda: 1_000)


def test_a_silent_broker_is_named_and_says_nothing_about_its_groups() -> None:
    brokers = FakeCoordinators({"a": (1, {"orders": 1}), "b": (2, {"orders": 2})})
    brokers.silent = {2}
    found = poller(brokers).poll({"a": (), "b": (TopicPartitionKey("orders", 0),)})
    assert set(found.groups) == {"a"}
    assert (found.silent, found.failures, found.is_complete) == ({"broker2:9092": "connection refused"}, {}, False)


def test_a_group_that_no_list_has_is_asked_for_by_name() -> None:
    brokers = FakeCoordinators({"hub": (2, {"orders": 7})})
    brokers.unlisted = {"hub"}
    found = poller(brokers).poll({"hub": ()})
    assert found.groups["hub"].offsets == {TopicPartitionKey("orders", 0): PolledOffset(7, -1, "")}
    assert poller(brokers).poll({}).groups == {}


def test_only_selected_groups_are_asked_about() -> None:
    connection: Any = FakeCoordinators({"billing-1": (1, {"orders": 1}), "console-7": (1, {"orders": 2})})
    found = GroupPoller(connection, lambda: 1_000, lambda group_id: group_id.startswith("billing-")).poll({})
    assert set(found.groups) == {"billing-1"}


def test_a_group_that_the_coordinator_does_not_know_is_absent() -> None:
    found = poller(FakeCoordinators({})).poll({"gone": (TopicPartitionKey("orders", 0),)})
    assert found.groups["gone"].is_absent
    assert found.groups["gone"].without_commit == {TopicPartitionKey("orders", 0)}
    assert found.is_complete


def test_a_coordinator_that_has_moved_is_looked_up() -> None:
    brokers = FakeCoordinators({"moved": (2, {"orders": 7})})
    brokers.stale = {"moved": 1}
    found = poller(brokers).poll({})
    assert found.failures == {}
    assert set(found.groups["moved"].offsets) == {TopicPartitionKey("orders", 0)}
    assert ("FindCoordinatorRequest", 1) in brokers.sent


def test_requests_are_bounded_in_groups() -> None:
    names = [f"group-{number}" for number in range(1_050)]
    brokers = FakeCoordinators({name: (1, {"orders": 1}) for name in names}, nodes=(1,))
    brokers.unlisted = set(names)
    found = poller(brokers).poll(dict.fromkeys(names, ()))
    assert len(found.groups) == len(names)
    most = {name: max(count for sent, count in brokers.sent if sent == name) for name, _ in brokers.sent}
    assert most == {"FindCoordinatorRequest": 500, "DescribeGroupsRequest": 100, "OffsetFetchRequest": 100}


def test_groups_with_many_offsets_are_fetched_in_smaller_pieces() -> None:
    names = [f"group-{number}" for number in range(10)]
    brokers = FakeCoordinators({name: (1, {"orders": 1}) for name in names}, nodes=(1,))
    known = {name: [TopicPartitionKey("orders", number) for number in range(40_000)] for name in names}
    poller(brokers).poll(known)
    first = next(count for sent, count in brokers.sent if sent == "OffsetFetchRequest")
    assert first == 2


def test_a_topic_that_may_not_be_described_is_named_and_its_offsets_are_not_absent() -> None:
    brokers = FakeCoordinators({"a": (1, {"orders": 1, "secret": 2})})
    brokers.hidden = {"secret"}
    keys = [TopicPartitionKey(topic, 0) for topic in ("orders", "secret", "deleted")]
    found = poller(brokers).poll({"a": keys})
    assert set(found.groups["a"].offsets) == {TopicPartitionKey("orders", 0)}
    assert found.groups["a"].without_commit == {TopicPartitionKey("deleted", 0)}
    assert found.hidden_topics == {"secret"}


@pytest.mark.parametrize("release", [(0, 10, 2), (1, 1), (2, 8)])
def test_brokers_before_3_0_are_asked_about_one_group(release: tuple[int, ...]) -> None:
    names = [f"group-{number}" for number in range(12)]
    brokers = FakeCoordinators(
        {name: (1 + number % 2, {"orders": number}) for number, name in enumerate(names)}, releases={1: release, 2: release}
    )
    brokers.unlisted = set(names[:6])
    found = poller(brokers).poll(dict.fromkeys(names, (TopicPartitionKey("orders", 0), TopicPartitionKey("removed", 0))))
    assert {name: group.offsets[TopicPartitionKey("orders", 0)].offset for name, group in found.groups.items()} == {
        name: number for number, name in enumerate(names)
    }
    assert {name for name, group in found.groups.items() if group.without_commit} == set(names)
    most = {name: max(count for sent, count in brokers.sent if sent == name) for name, _ in brokers.sent}
    assert most == {"FindCoordinatorRequest": 1, "DescribeGroupsRequest": 6, "OffsetFetchRequest": 1}


def test_a_cluster_may_have_brokers_of_both_sides_of_3_0() -> None:
    """A rolling upgrade."""
    brokers = FakeCoordinators({f"{node}-{n}": (node, {"orders": n}) for node in (1, 2) for n in range(3)}, releases={1: (2, 8)})
    brokers.unlisted = {"2-0"}
    found = poller(brokers).poll({"2-0": ()})
    assert set(found.groups) == set(brokers.groups)
    assert [count for sent, count in brokers.sent if sent == "OffsetFetchRequest"].count(1) == 3


def test_groups_are_described_by_the_request_for_their_type() -> None:
    brokers = FakeCoordinators({"queue": (1, {}), "billing": (1, {"orders": 1})}, nodes=(1,))
    brokers.types = {"queue": "Share"}
    found = poller(brokers).poll({})
    assert isinstance(found.groups["queue"].description, ShareGroupAnswer)
    assert found.groups["queue"].offsets == {}
    assert found.groups["billing"].offsets == {TopicPartitionKey("orders", 0): PolledOffset(1, -1, "")}


def test_a_listed_type_without_a_common_version_is_an_error_of_its_groups_only() -> None:
    """Such as share groups of Kafka 4.0, whose early version of the request is no longer in use."""
    brokers = FakeCoordinators({"app": (1, {}), "b": (1, {"orders": 1})}, nodes=(1,), releases={1: (4, 0)})
    brokers.types = {"app": "Streams"}
    found = poller(brokers).poll({})
    assert found.failures == {"app": "UNSUPPORTED_VERSION"}
    assert set(found.groups) == {"b"}


def test_a_type_that_this_version_does_not_know_is_named_once() -> None:
    brokers = FakeCoordinators({"new-1": (1, {}), "new-2": (1, {}), "b": (1, {"orders": 1})}, nodes=(1,))
    brokers.types = {"new-1": "Newer", "new-2": "Newer"}
    polling = poller(brokers)
    assert set(polling.poll({}).groups) == {"b"}
    assert polling.unread_types == {"newer": "new-1"}


def test_brokers_before_0_10_2_are_too_old() -> None:
    brokers = FakeCoordinators({"a": (1, {"orders": 1})}, nodes=(1,), releases={1: (0, 10, 1)})
    with pytest.raises(RequestRejected):
        poller(brokers).poll({})
