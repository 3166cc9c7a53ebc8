"""Kafka's Java consumer and kafka-python read in a fetch session, and begin a new one when the coordinator has restarted."""

import gc
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eventually import eventually
from java_clients import java_clients
from kafka import KafkaConsumer, TopicPartition
from live_kafka import produce
from recorded_fetches import RecordedFetches, recorded_fetches

from coordinator_core.service.topics.fetch_sessions import NO_SESSION
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.broker

TOPIC, PARTITIONS = "orders", 3
Poll = Callable[[], list[bytes]]


@pytest.fixture
def recorded() -> Iterator[RecordedFetches]:
    with recorded_fetches() as proxy:
        yield proxy


@pytest.fixture
def coordinator(tmp_path: Any, recorded: RecordedFetches) -> Iterator[PrivateCoordinator]:
    """Its clients connect to the proxy."""
    reserved = PortReservation()
    recorded.port = reserved.port
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 2, "transaction_state_log_num_partitions": 2}
    settings |= {"advertised_listener": recorded.address}
    topics = {TOPIC: {"partitions": PARTITIONS, "data": True}}
    with PrivateCoordinator(tmp_path / "log", topics=topics, listen=f"127.0.0.1:{recorded.port}", **settings) as running:
        yield running
        assert running.events("unexpected error") == []
    reserved.release()


def errors_of_sessions(coordinator: PrivateCoordinator) -> dict[str, int]:
    """Number of errors in the answers to fetches, by name."""
    _, text = coordinator.get("/metrics")
    found = re.findall(r'^grouplake_coordinator_errors_total\{.*error="(\w*FETCH_SESSION\w*)".*\} (\S+)$', text, re.MULTILINE)
    return {name: int(float(number)) for name, number in found}


def receive(coordinator: PrivateCoordinator, poll: Poll, values: list[bytes]) -> None:
    """Produce the values to the partitions in turn; the consumer gets all of them, each once."""
    produce(coordinator.bootstrap, TOPIC, [(number % PARTITIONS, None, value) for number, value in enumerate(values)])
    read: list[bytes] = []

    def polled() -> list[bytes]:
        read.extend(poll())
        return sorted(read)

    eventually("the records are read", polled, lambda seen: seen == sorted(values))


def reads_in_a_session(coordinator: PrivateCoordinator, recorded: RecordedFetches, poll: Poll) -> None:
    for step in range(5):
        receive(coordinator, poll, [b"%d-%d" % (step, number) for number in range(2 * PARTITIONS)])
        receive(coordinator, poll, [b"%d-one" % step])
    assert errors_of_sessions(coordinator) == {}
    incremental = [each for each in recorded.fetches if each.session_epoch > 0]
    # one session, whose requests have the partitions whose offset has changed
    assert len({each.session_id for each in incremental} - {NO_SESSION}) == 1
    assert [each.session_epoch for each in incremental] == list(range(1, len(incremental) + 1))
    assert any(len(each.partitions) < PARTITIONS for each in incremental)


def restart(coordinator: PrivateCoordinator) -> None:
    coordinator.kill()
    coordinator.start()
    coordinator.wait_until_loaded()


def read_with_python(coordinator: PrivateCoordinator, recorded: RecordedFetches) -> None:
    consumer = KafkaConsumer(bootstrap_servers=coordinator.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)

    def poll() -> list[bytes]:
        return [each.value for records in consumer.poll(200).values() for each in records]

    try:
        consumer.assign([TopicPartition(TOPIC, number) for number in range(PARTITIONS)])
        reads_in_a_session(coordinator, recorded, poll)
        restart(coordinator)
        receive(coordinator, poll, [b"after-%d" % number for number in range(PARTITIONS)])
        assert errors_of_sessions(coordinator).keys() == {"FETCH_SESSION_ID_NOT_FOUND"}
        receive(coordinator, poll, [b"last"])
    finally:
        consumer.close()


def test_python(coordinator: PrivateCoordinator, recorded: RecordedFetches) -> None:
    read_with_python(coordinator, recorded)
    with warnings.catch_warnings():
        # kafka-python does not close sockets whose connection was refused
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.long
@pytest.mark.parametrize("version", ["4.1.1", *(pytest.param(each, marks=pytest.mark.slow) for each in ("2.8.2", "4.3.0"))])
def test_java(coordinator: PrivateCoordinator, recorded: RecordedFetches, version: str) -> None:
    with java_clients(version) as clients, clients.reader(coordinator.bootstrap, TOPIC, PARTITIONS) as poll:
        reads_in_a_session(coordinator, recorded, poll)
        restart(coordinator)
        receive(coordinator, poll, [b"after-%d" % number for number in range(PARTITIONS)])
