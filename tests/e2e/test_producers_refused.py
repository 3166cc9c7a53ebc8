"""Producers at a topic that is declared without data: every version of Produce is read and rejected."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from confluent_kafka import KafkaError, Message, Producer
from patience import PATIENCE_SECONDS
from wire_connection import Wire

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import (
    ApiVersionsRequest,
    MetadataRequest,
    ProducePartition,
    ProduceRequest,
    RequestedTopic,
)
from coordinator_core.protocol.error_code import ErrorCode
from pipelines.examples.private.private_coordinator import PrivateCoordinator

TOPIC = "orders"
FIRST_IN_4, FIRST_WITH_MESSAGES, FIRST_BY_ID = 3, 8, 13
PRODUCE = apis.PRODUCE.versions


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    with PrivateCoordinator(tmp_path_factory.mktemp("coordinator") / "log", topics={TOPIC: 2}) as running:
        yield running
        running.stop()


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    """Of era 3, whose brokers serve the versions that brokers of 4.x only list."""
    with PrivateCoordinator(tmp_path_factory.mktemp("older") / "log", topics={TOPIC: 2}, era="3") as running:
        yield running
        running.stop()


@pytest.fixture
def client(coordinator: PrivateCoordinator) -> Iterator[Wire]:
    wire = Wire(coordinator.port)
    yield wire
    wire.close()


@pytest.mark.parametrize("version", range(FIRST_IN_4, PRODUCE.highest + 1))
def test_every_partition_has_its_error(client: Wire, version: int) -> None:
    expect_errors(client, version)


@pytest.mark.parametrize("version", range(PRODUCE.lowest, FIRST_IN_4))
def test_old_versions_are_served_in_their_eras(older: PrivateCoordinator, client: Wire, version: int) -> None:
    wire = Wire(older.port)
    expect_errors(wire, version)
    wire.close()
    with pytest.raises(ConnectionError):
        client.ask(apis.PRODUCE, version, ProduceRequest(()))


def expect_errors(client: Wire, version: int) -> None:
    (known,) = client.ask(apis.METADATA, 12, MetadataRequest((RequestedTopic(TOPIC),))).topics
    by_id = version >= FIRST_BY_ID
    here, elsewhere = (("", known.topic_id), ("", UUID(int=9))) if by_id else ((TOPIC, ZERO_UUID), ("unknown", ZERO_UUID))
    asked = tuple(ProducePartition(name, topic_id, number) for (name, topic_id), number in ((here, 0), (here, 7), (elsewhere, 0)))
    answer = client.ask(apis.PRODUCE, version, ProduceRequest(asked))
    missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(each.partition, each.error) for each in answer.partitions] == [
        (0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, missing),
    ]
    message = answer.partitions[0].error_message
    assert (message is not None and "holds no data" in message) is (version >= FIRST_WITH_MESSAGES)
    (other,) = client.ask(apis.PRODUCE, version, ProduceRequest(asked[:1], acks=2)).partitions
    assert other.error is ErrorCode.INVALID_REQUIRED_ACKS


def test_a_producer_without_acks_is_disconnected(coordinator: PrivateCoordinator, client: Wire) -> None:
    """It reads no response, so the lost connection is how it learns of the error, from brokers as well."""
    client.send(apis.PRODUCE, 7, ProduceRequest((ProducePartition(TOPIC, ZERO_UUID, 0),), acks=0))
    assert client.receive() == b""
    reasons = [line["reason"] for line in coordinator.events("connection ended")]
    assert reasons[-1] == "Produce with acks=0 failed: INVALID_TOPIC_EXCEPTION"


def test_nothing_without_acks_has_no_answer(client: Wire) -> None:
    client.send(apis.PRODUCE, 7, ProduceRequest((), acks=0))
    assert client.ask(apis.API_VERSIONS, 3, ApiVersionsRequest("c", "1")).error is ErrorCode.NONE


def test_librdkafka_reports_the_error_at_once(coordinator: PrivateCoordinator) -> None:
    failures: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        failures.append(error)

    producer = Producer({"bootstrap.servers": coordinator.bootstrap, "log_level": 0})
    producer.produce(TOPIC, b"value", on_delivery=delivered)
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert [error and error.code() for error in failures] == [KafkaError.TOPIC_EXCEPTION]
