"""Topics with data and librdkafka: records, transactions and administration, before and after a kill."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from eventually import equal_to, eventually
from live_kafka import QUIET
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.long

TOPIC, PARTITIONS, WITHOUT_DATA = "orders", 2, "declared"
SETTINGS: dict[str, Any] = {
    "offsets_topic_num_partitions": 2,
    "transaction_state_log_num_partitions": 2,
    "group_initial_rebalance_delay_ms": 0,
}
#: Its methods have no types.
SPECS: Any = OffsetSpec


@pytest.fixture
def coordinator(tmp_path: Any) -> Iterator[PrivateCoordinator]:
    topics: dict[str, Any] = {TOPIC: {"partitions": PARTITIONS, "data": True}, WITHOUT_DATA: 3}
    reserved = PortReservation()
    listen = f"127.0.0.1:{reserved.port}"
    with PrivateCoordinator(tmp_path / "log", topics=topics, listen=listen, **SETTINGS) as running:
        yield running
        assert [line["reason"] for line in running.events("connection ended")] == []
        assert running.events("unexpected error") == []
    reserved.release()


def producer(coordinator: PrivateCoordinator, **settings: Any) -> Producer:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": coordinator.bootstrap, "enable.idempotence": True, **QUIET, **given})


def produced(sender: Producer, values: list[str], topic: str = TOPIC) -> None:
    """Send and wait; every record is delivered."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    for value in values:
        sender.produce(topic, value.encode(), key=value.encode(), on_delivery=delivered)
    assert sender.flush(PATIENCE_SECONDS) == 0
    assert failures == []


def read(coordinator: PrivateCoordinator, count: int, isolation: str = "read_committed", topic: str = TOPIC) -> list[str]:
    """The values of the topic, up to the end of every partition."""
    reader = Consumer(
        {
            "bootstrap.servers": coordinator.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    values: list[str] = []
    ended: set[int] = set()

    def poll() -> int:
        for message in reader.consume(500, 0.2):
            error = message.error()
            if error is None:
                values.append((message.value() or b"").decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(int(message.partition() or 0))
        return len(ended)

    eventually("every partition is read to its end", poll, equal_to(PARTITIONS))
    reader.close()
    assert len(values) == count
    return sorted(values)


def result(futures: Any, key: Any) -> Any:
    """The result of an admin request, or the name of its error."""
    try:
        return futures[key].result(PATIENCE_SECONDS)
    except KafkaException as error:
        return error.args[0].name()


def test_records_survive_a_kill(coordinator: PrivateCoordinator) -> None:
    sender = producer(coordinator, linger_ms=5)
    before = [f"before-{number}" for number in range(500)]
    produced(sender, before)
    assert read(coordinator, 500) == sorted(before)
    coordinator.kill()
    coordinator.start()
    after = [f"after-{number}" for number in range(100)]
    # the sequence numbers continue
    produced(sender, after)
    assert read(coordinator, 600) == sorted(before + after)


def test_only_committed_records_are_read(coordinator: PrivateCoordinator) -> None:
    sender = producer(coordinator, transactional_id="writer")
    sender.init_transactions(PATIENCE_SECONDS)
    committed, aborted = [], []
    for number in range(4):
        values = [f"{number}-{each}" for each in range(10)]
        sender.begin_transaction()
        produced(sender, values)
        if number % 2:
            sender.abort_transaction(PATIENCE_SECONDS)
            aborted += values
        else:
            sender.commit_transaction(PATIENCE_SECONDS)
            committed += values
    sender.begin_transaction()
    produced(sender, ["open"])

    def visible() -> list[str]:
        return read(coordinator, 20)

    eventually("markers are written", visible, equal_to(sorted(committed)))
    coordinator.kill()
    coordinator.start()
    assert read(coordinator, 20) == sorted(committed)
    assert read(coordinator, 41, "read_uncommitted") == sorted([*committed, *aborted, "open"])


def test_topics_are_created_changed_and_deleted(coordinator: PrivateCoordinator) -> None:
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap, **QUIET})
    new = [NewTopic("new", 1, 1, config={"cleanup.policy": "compact"}), NewTopic(TOPIC, 1, 1), NewTopic("a b", 1, 1)]
    created = admin.create_topics([*new, NewTopic("many", 1, 3), NewTopic("bad", 1, 1, config={"retention.ms": "x"})])
    assert {name: result(created, name) for name in created} == {
        "new": None,
        TOPIC: "TOPIC_ALREADY_EXISTS",
        "a b": "TOPIC_EXCEPTION",
        "many": "INVALID_REPLICATION_FACTOR",
        "bad": "INVALID_CONFIG",
    }
    assert result(admin.create_partitions([NewPartitions("new", PARTITIONS)]), "new") is None
    produced(producer(coordinator), ["kept"], "new")
    entry = ConfigEntry("segment.bytes", "5000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "new", incremental_configs=[entry])
    assert result(admin.incremental_alter_configs([resource]), resource) is None

    coordinator.kill()
    coordinator.start()
    described = result(
        admin.describe_configs([ConfigResource(ResourceType.TOPIC, "new")]), ConfigResource(ResourceType.TOPIC, "new")
    )
    assert (described["cleanup.policy"].value, described["segment.bytes"].value) == ("compact", "5000")
    assert read(coordinator, 1, topic="new") == ["kept"]
    found = {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=PATIENCE_SECONDS).topics.items()}
    assert found == {"new": 2, TOPIC: 2, WITHOUT_DATA: 3, "__consumer_offsets": 2, "__transaction_state": 2}

    deleted = admin.delete_topics(["new", TOPIC, WITHOUT_DATA, "missing"])
    assert {name: result(deleted, name) for name in deleted} == {
        "new": None,
        TOPIC: "TOPIC_DELETION_DISABLED",
        WITHOUT_DATA: "TOPIC_DELETION_DISABLED",
        "missing": "UNKNOWN_TOPIC_OR_PART",
    }
    assert "new" not in admin.list_topics(timeout=PATIENCE_SECONDS).topics
    assert not list(coordinator.directory.glob("new-*"))


def test_offsets_agree(coordinator: PrivateCoordinator) -> None:
    """ListOffsets, the high watermark of fetches and deleted records, and topics without data."""
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap, **QUIET})
    sender = producer(coordinator)
    for number in range(10):
        sender.produce(TOPIC, b"v", partition=0, timestamp=1_700_000_000_000 + number)
        assert sender.flush(PATIENCE_SECONDS) == 0
    at, empty = TopicPartition(TOPIC, 0), TopicPartition(WITHOUT_DATA, 1)

    def offset(partition: TopicPartition, spec: Any) -> int:
        return int(result(admin.list_offsets({partition: spec}), partition).offset)

    specs = [SPECS.earliest(), SPECS.latest(), SPECS.max_timestamp(), SPECS.for_timestamp(1_700_000_000_004)]
    assert [offset(at, spec) for spec in specs] == [0, 10, 9, 4]
    assert result(admin.delete_records([TopicPartition(TOPIC, 0, 3)]), at).low_watermark == 3
    assert offset(at, SPECS.earliest()) == 3
    coordinator.kill()
    coordinator.start()
    coordinator.wait_until_loaded()
    # the other one knows the leader epoch of before
    admin = AdminClient({"bootstrap.servers": coordinator.bootstrap, **QUIET})
    assert [offset(at, spec) for spec in specs] == [3, 10, 9, 4]
    client = Consumer({"bootstrap.servers": coordinator.bootstrap, "group.id": "g", **QUIET})
    assert client.get_watermark_offsets(at, PATIENCE_SECONDS) == (3, 10)
    client.commit(offsets=[TopicPartition(WITHOUT_DATA, 1, 77)], asynchronous=False)
    client.close()
    assert offset(empty, SPECS.latest()) == 77
