"""Rounds of requests of a poll: moved coordinators, silent brokers, groups that no list has, and bounded requests."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace as Part
from typing import Any

import pytest
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.broker_version_data import BrokerVersionData

from coordinator_core.group_polls.group_poll import PolledOffset, TopicPartitionKey
from coordinator_core.group_polls.group_poller import GroupPoller
from coordinator_core.log.errors import LogUnreachable, RequestRejected
from coordinator_core.protocol.error_code import ErrorCode

SILENT = LogUnreachable("connection refused")


class FakeCoordinators:
    """Brokers that answer by the name of a request. `groups`: name → its node, and its offsets by topic (partition 0).

    `releases`: node → release whose API versions it has, other than 4.1.
    """

    def __init__(
        self,
        groups: Mapping[str, tuple[int, dict[str, int]]],
        nodes: Sequence[int] = (1, 2),
        releases: Mapping[int, tuple[int, ...]] | None = None,
    ) -> None:
        self.groups = dict(groups)
        self.nodes = nodes
        self.versions = {node: BrokerVersionData((releases or {}).get(node, (4, 1))) for node in nodes}
        self.silent: set[int] = set()
        self.unlisted: set[str] = set()
        #: Topics that the user may not describe: left out of all offsets, and an error by name.
        self.hidden: set[str] = set()
        #: Node that a list names → only the node in `groups` answers.
        self.stale: dict[str, int] = {}
        #: Name of a request, and the number of groups in it.
        self.sent: list[tuple[str, int]] = []

    def metadata(self, _topics: object) -> Any:
        brokers = [Part(node_id=node, host=f"broker{node}", port=9092) for node in self.nodes]
        return Part(brokers=brokers, topics=[], API_VERSION=12)

    def send_any(self, request_for: Callable[[Any], Any]) -> Any:
        return self._answer(self.nodes[0], request_for)

    def send_all(self, requests: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        return {node: self._answer(node, request_for) for node, request_for in requests.items()}

    def send_in_order(self, rounds: Sequence[Mapping[int, Callable[[Any], Any]]], received: Callable[[int, Any], None]) -> None:
        assert len(rounds) <= 4, "requests in flight"
        for number, requests in enumerate(rounds):
            received(number, self.send_all(requests))

    def _found(self, key: str) -> Any:
        node = self.groups[key][0] if key in self.groups else self.nodes[0]
        return Part(key=key, node_id=node, error_code=0)

    def _answer(self, node: int, request_for: Callable[[Any], Any]) -> Any:
        if node in self.silent:
            return SILENT
        request = request_for(self.versions[node])
        try:
            version = self.versions[node].api_version(request)
        except IncompatibleBrokerVersion as error:
            return RequestRejected(str(error))
        match request.name:
            case "ListGroupsRequest":
                listed = [name for name, (home, _) in self.groups.items() if self.stale.get(name, home) == node]
                names = [name for name in listed if name not in self.unlisted]
                return Part(error_code=0, groups=[Part(group_id=name, group_type="Classic") for name in names])
            case "DescribeGroupsRequest":
                self.sent.append((request.name, len(request.groups)))
                return Part(groups=[self._described(node, name) for name in request.groups])
            case "ConsumerGroupDescribeRequest" | "ShareGroupDescribeRequest" | "StreamsGroupDescribeRequest":
                missing = ErrorCode.GROUP_ID_NOT_FOUND
                return Part(groups=[Part(group_id=name, error_code=missing) for name in request.group_ids])
            case "FindCoordinatorRequest" if version < 4:
                self.sent.append((request.name, 1))
                return Part(API_VERSION=version, **vars(self._found(request.key)))
            case "FindCoordinatorRequest":
                self.sent.append((request.name, len(request.coordinator_keys)))
                return Part(API_VERSION=version, coordinators=[self._found(key) for key in request.coordinator_keys])
            case _ if version < 8:
                self.sent.append((request.name, 1))
                return Part(API_VERSION=version, **vars(self._fetched(node, request)))
            case _:
                self.sent.append((request.name, len(request.groups)))
                return Part(API_VERSION=version, groups=[self._fetched(node, each) for each in request.groups])

    def _described(self, node: int, name: str) -> Any:
        home = self.groups.get(name, (node, {}))[0]
        code = ErrorCode.NOT_COORDINATOR if home != node else 0
        state = "Empty" if name in self.groups else "Dead"
        return Part(group_id=name, error_code=code, group_state=state, protocol_type="", protocol_data="", members=[])

    def _fetched(self, _node: int, wanted: Any) -> Any:
        offsets = self.groups.get(wanted.group_id, (0, {}))[1]
        listed = [name for name in offsets if name not in self.hidden]
        names = listed if wanted.topics is None else [topic.name for topic in wanted.topics]
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topics = [
            Part(
                name=name,
                partitions=[
                    Part(
                        partition_index=0,
                        committed_offset=offsets.get(name, -1),
                        committed_leader_epoch=-1,
                        metadata="",
                        error_code=denied if name in self.hidden else 0,
                    )
                ],
            )
            for name in names
        ]
        return Part(group_id=wanted.group_id, error_code=0, topics=topics)


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


def test_brokers_before_0_10_2_are_too_old() -> None:
    brokers = FakeCoordinators({"a": (1, {"orders": 1})}, nodes=(1,), releases={1: (0, 10, 1)})
    with pytest.raises(RequestRejected):
        poller(brokers).poll({})
