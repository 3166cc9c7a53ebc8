"""Kafka's own Java client in versions before 2.8, which reject brokers that do not list Produce."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient
from eventually import eventually
from group_offsets import committed, group_state
from java_clients import VERSIONS, JavaClients, JavaMember, java_clients

from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.broker

TOPIC, PARTITIONS = "orders", 4


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    log = tmp_path_factory.mktemp("coordinator") / "log"
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 4, "group_initial_rebalance_delay_ms": 0}
    with PrivateCoordinator(log, topics={TOPIC: PARTITIONS}, **settings) as running:
        yield running
        # a request that the coordinator does not support
        assert [line["reason"] for line in running.events("connection ended")] == []


@pytest.fixture(scope="module")
def admin(coordinator: PrivateCoordinator) -> AdminClient:
    return AdminClient({"bootstrap.servers": coordinator.bootstrap, "log_level": 0})


@pytest.fixture(scope="module", params=VERSIONS)
def clients(request: pytest.FixtureRequest) -> Iterator[JavaClients]:
    with java_clients(request.param) as running:
        yield running


def settle(members: list[JavaMember]) -> None:
    """Wait until the members together own every partition, each at least one."""

    def unless() -> str | None:
        return next((failure for member in members if (failure := member.failure())), None)

    def settled(owned: list[frozenset[int]]) -> bool:
        return all(owned) and sorted(partition for each in owned for partition in each) == list(range(PARTITIONS))

    eventually("the members own every partition once", lambda: [member.owned for member in members], settled, unless=unless)


def test_members_join_commit_and_leave(clients: JavaClients, coordinator: PrivateCoordinator, admin: AdminClient) -> None:
    group = f"java-{uuid4().hex[:8]}"
    first = clients.member(coordinator.bootstrap, group, TOPIC, client_id="first")
    settle([first])
    first.commit(dict.fromkeys(range(PARTITIONS), 10))
    assert committed(admin, group) == {(TOPIC, partition): 10 for partition in range(PARTITIONS)}

    second = clients.member(coordinator.bootstrap, group, TOPIC, client_id="second")
    settle([first, second])
    assert group_state(admin, group) == (ConsumerGroupState.STABLE, ["first", "second"])
    for member in (first, second):
        member.commit({partition: 20 + partition for partition in member.owned})
    assert committed(admin, group) == {(TOPIC, partition): 20 + partition for partition in range(PARTITIONS)}

    first.close()
    settle([second])
    second.close()
    assert group_state(admin, group) == (ConsumerGroupState.EMPTY, [])
    reasons = [line["reason"] for line in coordinator.events("member removed") if line["group"] == group]
    assert len(reasons) == 2
    assert all("session" not in reason for reason in reasons)


def test_a_producer_is_refused_at_once(clients: JavaClients, coordinator: PrivateCoordinator) -> None:
    assert clients.produce(coordinator.bootstrap, TOPIC, b"value") == "InvalidTopicException"
