"""`sendOffsetsToTransaction` of librdkafka and of Kafka's Java client: commits, aborts, zombies, a killed coordinator."""

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import java_tools
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from eventually import equal_to, eventually
from group_offsets import committed
from java_clients import JavaClients, java_clients
from java_transactions import JavaFailure, java_offset_producer
from live_kafka import QUIET, SURVIVES_RESTARTS
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = [pytest.mark.broker, pytest.mark.long]

TOPIC = "orders"
VERSIONS = [
    "4.1.1",
    "2.0.1",
    *(pytest.param(version, marks=pytest.mark.slow) for version in ("0.11.0.3", "2.8.2", "3.9.1", "4.3.0")),
]
SETTINGS: dict[str, Any] = {
    "offsets_topic_num_partitions": 4,
    "transaction_state_log_num_partitions": 4,
    "group_initial_rebalance_delay_ms": 0,
}


@pytest.fixture(
    scope="module", params=["4", pytest.param("3", marks=pytest.mark.slow), pytest.param("1", marks=pytest.mark.slow)]
)
def coordinator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    log = tmp_path_factory.mktemp("coordinator") / "log"
    # a coordinator that is killed and started again keeps its address
    reserved = PortReservation()
    listen = f"127.0.0.1:{reserved.port}"
    with PrivateCoordinator(log, topics={TOPIC: 2}, listen=listen, era=request.param, **SETTINGS) as running:
        yield running
        # a request that the coordinator does not support
        assert [line["reason"] for line in running.events("connection ended")] == []
    reserved.release()


@pytest.fixture
def name() -> str:
    """A transactional id, and a group, that no other test uses."""
    return f"name-{uuid4().hex[:8]}"


def offsets_of(coordinator: PrivateCoordinator, group: str) -> dict[tuple[str, int], int]:
    return committed(AdminClient({"bootstrap.servers": coordinator.bootstrap, "log_level": 0}), group)


class RdkafkaProducer:
    """librdkafka's producer, with a member of the group."""

    def __init__(self, coordinator: PrivateCoordinator, name: str, more: Mapping[str, Any] = MappingProxyType({})) -> None:
        settings: dict[str, Any] = {"bootstrap.servers": coordinator.bootstrap, **QUIET, **more}
        self._producer = Producer({**settings, "transactional.id": name})
        self._consumer = Consumer({**settings, "group.id": name, "enable.auto.commit": False})

    def init(self) -> None:
        self._producer.init_transactions(PATIENCE_SECONDS)

    def commit(self, offset: int, *, aborts: bool = False) -> None:
        self._producer.begin_transaction()
        metadata = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, offset)], metadata, PATIENCE_SECONDS)
        (self._producer.abort_transaction if aborts else self._producer.commit_transaction)(PATIENCE_SECONDS)

    def close(self) -> None:
        self._consumer.close()


def test_librdkafka(coordinator: PrivateCoordinator, name: str) -> None:
    first, second = RdkafkaProducer(coordinator, name), RdkafkaProducer(coordinator, name)
    try:
        first.init()
        first.commit(42)
        eventually("the offset is committed", lambda: offsets_of(coordinator, name), equal_to({(TOPIC, 0): 42}))
        first.commit(77, aborts=True)
        first.commit(43)
        eventually("the second offset is committed", lambda: offsets_of(coordinator, name), equal_to({(TOPIC, 0): 43}))
        second.init()
        with pytest.raises(KafkaException) as raised:
            first.commit(99)
        assert raised.value.args[0].name() == "_FENCED"
        second.commit(44)
        eventually("the new producer commits", lambda: offsets_of(coordinator, name), equal_to({(TOPIC, 0): 44}))
    finally:
        first.close()
        second.close()


def test_a_killed_coordinator(coordinator: PrivateCoordinator, name: str) -> None:
    """The log has the transactions: the next producer continues the id, and the offsets are there."""
    for offset in range(1, 3):
        producer = RdkafkaProducer(coordinator, name)
        try:
            producer.init()
            producer.commit(offset)
        finally:
            producer.close()
        coordinator.kill()
        coordinator.start()
        coordinator.wait_until_loaded()
        eventually("the offset is there", partial(offsets_of, coordinator, name), equal_to({(TOPIC, 0): offset}))


@pytest.mark.long
def test_a_producer_that_outlives_a_killed_coordinator(coordinator: PrivateCoordinator, name: str) -> None:
    """With the default `metadata.recovery.strategy` it waits for ever, for a restarted broker too (`SURVIVES_RESTARTS`)."""
    producer = RdkafkaProducer(coordinator, name, SURVIVES_RESTARTS)
    try:
        producer.init()
        for offset in range(1, 4):
            producer.commit(offset)
            coordinator.kill()
            coordinator.start()
            coordinator.wait_until_loaded()
            eventually("the offset is there", partial(offsets_of, coordinator, name), equal_to({(TOPIC, 0): offset}))
    finally:
        producer.close()


@pytest.fixture(scope="module", params=VERSIONS)
def clients(request: pytest.FixtureRequest) -> Iterator[JavaClients]:
    with java_clients(request.param) as running:
        yield running


def test_java(clients: JavaClients, coordinator: PrivateCoordinator, name: str) -> None:
    with (
        java_offset_producer(clients, coordinator.bootstrap, name) as first,
        java_offset_producer(clients, coordinator.bootstrap, name) as second,
    ):
        first.init()
        first.commit(name, TOPIC, 42)
        eventually("the offset is committed", lambda: offsets_of(coordinator, name), equal_to({(TOPIC, 0): 42}))
        first.commit(name, TOPIC, 77, aborts=True)
        first.commit(name, TOPIC, 43)
        eventually("the second offset is committed", lambda: offsets_of(coordinator, name), equal_to({(TOPIC, 0): 43}))
        second.init()
        with pytest.raises(JavaFailure, match=r"ProducerFencedException|InvalidProducerEpochException"):
            first.commit(name, TOPIC, 99)
        second.commit(name, TOPIC, 44)
        eventually("the new producer commits", lambda: offsets_of(coordinator, name), equal_to({(TOPIC, 0): 44}))


@pytest.mark.parametrize("coordinator", ["4"], indirect=True)
def test_kafka_transactions(coordinator: PrivateCoordinator, name: str) -> None:
    """`kafka-transactions.sh list` and `describe`."""
    producer = RdkafkaProducer(coordinator, name)
    try:
        producer.init()
        producer.commit(1)
        listed = java_tools.transactions(coordinator.bootstrap, "list")
        assert [row["TransactionState"] for row in listed if row["TransactionalId"] == name] == ["CompleteCommit"]
        (described,) = java_tools.transactions(coordinator.bootstrap, "describe", "--transactional-id", name)
        assert described["TransactionState"] == "CompleteCommit"
        assert described["CoordinatorId"] == "1"
    finally:
        producer.close()
