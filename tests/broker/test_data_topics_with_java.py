"""Topics with data, Kafka's Java client and Kafka's command line tools: lag, resets, topics, before and after a kill."""

from collections.abc import Iterator
from typing import Any

import java_tools
import pytest
from java_clients import JavaClients, java_clients

from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.broker

TOPIC, GROUP = "orders", "lagging"
VERSIONS = ["4.1.1", *(pytest.param(version, marks=pytest.mark.slow) for version in ("2.8.2", "3.9.1", "4.3.0"))]


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    log = tmp_path_factory.mktemp("coordinator") / "log"
    reserved = PortReservation()
    listen = f"127.0.0.1:{reserved.port}"
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 2, "transaction_state_log_num_partitions": 2}
    with PrivateCoordinator(log, topics={TOPIC: {"partitions": 1, "data": True}}, listen=listen, **settings) as running:
        yield running
        assert [line["reason"] for line in running.events("connection ended")] == []
    reserved.release()


@pytest.fixture(scope="module", params=VERSIONS)
def clients(request: pytest.FixtureRequest) -> Iterator[JavaClients]:
    with java_clients(request.param) as running:
        yield running


def lag(coordinator: PrivateCoordinator) -> tuple[str, str, str]:
    printed = java_tools.consumer_groups(coordinator.bootstrap, "--describe", "--group", GROUP)
    (row,) = java_tools.table(printed)
    return row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]


@pytest.mark.long
def test_lag_and_resets_after_idempotent_records(clients: JavaClients, coordinator: PrivateCoordinator) -> None:
    start = clients.end_offset(coordinator.bootstrap, TOPIC)
    with clients.producer(coordinator.bootstrap, enable_idempotence="true", acks="all") as send:
        for number in range(10):
            assert send(TOPIC, b"%d" % number) == start + number
        reset = ("--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--execute")
        java_tools.consumer_groups(coordinator.bootstrap, *reset, "--to-offset", str(start + 4))
        assert lag(coordinator) == (str(start + 4), str(start + 10), "6")

        coordinator.kill()
        coordinator.start()
        coordinator.wait_until_loaded()
        # the same producer continues its sequence
        assert send(TOPIC, b"after") == start + 10
        assert lag(coordinator) == (str(start + 4), str(start + 11), "7")
    java_tools.consumer_groups(coordinator.bootstrap, *reset, "--to-latest")
    assert lag(coordinator) == (str(start + 11), str(start + 11), "0")
    java_tools.consumer_groups(coordinator.bootstrap, *reset, "--shift-by", "-3")
    assert lag(coordinator)[2] == "3"


def test_transactions_are_isolated(clients: JavaClients, coordinator: PrivateCoordinator) -> None:
    before = clients.read(coordinator.bootstrap, TOPIC, "read_committed")
    with clients.producer(coordinator.bootstrap, transactional_id="java") as send:
        for number in range(4):
            with send.transaction(aborts=number % 2 == 1):
                send(TOPIC, b"t%d" % number)
    found = clients.read(coordinator.bootstrap, TOPIC, "read_committed")
    assert found[len(before) :] == [b"t0", b"t2"]
    assert clients.read(coordinator.bootstrap, TOPIC, "read_uncommitted")[-4:] == [b"t0", b"t1", b"t2", b"t3"]


@pytest.mark.slow
def test_tools_describe_topics(coordinator: PrivateCoordinator) -> None:
    topics = java_tools.topics(coordinator.bootstrap, "--create", "--topic", "made", "--partitions", "3")
    assert "Created topic made." in topics
    described = java_tools.topics(coordinator.bootstrap, "--describe", "--topic", "made")
    assert described.count("Leader: 1") == 3
    java_tools.topics(coordinator.bootstrap, "--delete", "--topic", "made")
    assert "made" not in java_tools.topics(coordinator.bootstrap, "--list").split()
