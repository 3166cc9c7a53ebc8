"""Kafka's Java consumer and kafka-python keep a fetch session, and begin a new one after the coordinator has restarted."""

import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eventually import eventually
from java_clients import java_clients
from kafka import KafkaConsumer, TopicPartition
from live_kafka import produce

from pipelines.private.coordinator import PrivateCoordinator

pytestmark = [pytest.mark.broker, pytest.mark.timeout(120)]

TOPIC, PARTITIONS = "orders", 3


@pytest.fixture
def coordinator(tmp_path: Any) -> Iterator[PrivateCoordinator]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 2, "transaction_state_log_num_partitions": 2}
    topics = {TOPIC: {"partitions": PARTITIONS, "data": True}}
    with PrivateCoordinator(tmp_path / "log", topics=topics, listen=listen, **settings) as running:
        running.wait_until_loaded()
        yield running
        assert running.events("unexpected error") == []


def lost_sessions(coordinator: PrivateCoordinator) -> int:
    """Number of fetches whose session the coordinator did not know; a consumer without a session never has one."""
    _, text = coordinator.get("/metrics")
    found = re.findall(r'^grouplake_coordinator_errors_total\{.*error="FETCH_SESSION_ID_NOT_FOUND"\} (\S+)$', text, re.MULTILINE)
    return sum(int(float(number)) for number in found)


def reads_on(coordinator: PrivateCoordinator, poll: Callable[[], list[bytes]]) -> None:
    """The consumer gets the records of all partitions, one after the other, before and after a restart."""
    read: list[bytes] = []

    def receive(values: list[bytes]) -> None:
        produce(coordinator.bootstrap, TOPIC, [(number % PARTITIONS, None, value) for number, value in enumerate(values)])
        read.clear()

        def polled() -> list[bytes]:
            read.extend(poll())
            return sorted(read)

        eventually("the records are read", polled, lambda seen: seen == sorted(values), patience_seconds=40)

    for step in range(5):
        receive([b"%d-%d" % (step, number) for number in range(2 * PARTITIONS)])
        receive([b"%d-one" % step])
    assert lost_sessions(coordinator) == 0
    coordinator.kill()
    coordinator.start()
    coordinator.wait_until_loaded()
    receive([b"after-%d" % number for number in range(PARTITIONS)])
    assert lost_sessions(coordinator) > 0
    receive([b"last"])


def test_python(coordinator: PrivateCoordinator) -> None:
    consumer = KafkaConsumer(bootstrap_servers=coordinator.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        consumer.assign([TopicPartition(TOPIC, number) for number in range(PARTITIONS)])
        reads_on(coordinator, lambda: [each.value for records in consumer.poll(200).values() for each in records])
    finally:
        consumer.close()


@pytest.mark.long
@pytest.mark.parametrize("version", ["4.1.1", pytest.param("2.8.2", marks=pytest.mark.slow)])
def test_java(coordinator: PrivateCoordinator, version: str) -> None:
    with java_clients(version) as clients, clients.reader(coordinator.bootstrap, TOPIC, PARTITIONS) as poll:
        reads_on(coordinator, poll)
