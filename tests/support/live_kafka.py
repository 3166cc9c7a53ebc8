"""Clients of a live broker for tests: topics, records of every kind, and a reader that shares no code with ours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from eventually import equal_to, eventually
from patience import PATIENCE_SECONDS

from coordinator_core.log.columns import RecordColumns, to_log_records
from coordinator_core.log.entries import LogRecord
from coordinator_core.sources.kafka import KafkaSource

#: librdkafka logs every lost broker to stderr; tests stop brokers on purpose.
QUIET = {"log_level": 0}
#: When no broker is left, librdkafka 2.16 forgets those it has learned and begins with the bootstrap servers again. A transaction
#: then waits for ever for the group coordinator of before, with brokers and with the coordinator alike (confluentinc/librdkafka
#: issue 5511). A consumer alone, or a producer of records alone, continues.
SURVIVES_RESTARTS = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 500}


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """The part of a record that any client can see."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def create_topic(bootstrap: str, name: str, partitions: int = 1, **settings: str) -> None:
    """Create a topic and wait until brokers list it. Underscores in `settings` stand for dots."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    config = {setting.replace("_", "."): value for setting, value in settings.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(PATIENCE_SECONDS)
    wait_for_topic(admin, name)


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic and wait until brokers no longer list it."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.delete_topics([name])[name].result(PATIENCE_SECONDS)
    eventually(f"topic {name} is gone", lambda: name not in admin.list_topics(timeout=PATIENCE_SECONDS).topics)


def wait_for_topic(admin: AdminClient, name: str) -> None:
    """Wait until every partition of a topic has a leader."""

    def has_leaders() -> bool:
        found = admin.list_topics(name, timeout=PATIENCE_SECONDS).topics[name]
        return found.error is None and bool(found.partitions) and all(each.leader >= 0 for each in found.partitions.values())

    eventually(f"every partition of topic {name} has a leader", has_leaders)


def produce(bootstrap: str, topic: str, records: Iterable[tuple[int, bytes | None, bytes | None]], **settings: object) -> None:
    """Write (partition, key, value); underscores in `settings` stand for dots."""
    config = {setting.replace("_", "."): value for setting, value in settings.items()}
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **QUIET, **config})
    for partition, key, value in records:
        producer.produce(topic, key=key, value=value, partition=partition)
    assert producer.flush(PATIENCE_SECONDS) == 0


def seen_by_a_client(bootstrap: str, topic: str, ends: Mapping[int, int]) -> list[SeenRecord]:
    """Every data record below `ends`, READ_UNCOMMITTED, as librdkafka reads it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "independent-reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    waiting = {partition for partition, end in ends.items() if end > 0}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in waiting])
    seen: list[SeenRecord] = []

    def unread() -> tuple[int, ...]:
        for message in consumer.consume(5000, 0.2) if waiting else ():
            if message.error() is not None:
                waiting.discard(message.partition())
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            seen.append(SeenRecord(partition, offset, message.timestamp()[1], message.key(), message.value()))
        return tuple(waiting)

    eventually("the independent reader has read every partition", unread, equal_to(()), pause_seconds=0)
    consumer.close()
    return sorted((each for each in seen if each.offset < ends[each.partition]), key=lambda each: (each.partition, each.offset))


def read_all(log: KafkaSource) -> list[LogRecord]:
    """Everything between earliest and end of every partition, in order of partition and offset."""
    earliest, ends = log.earliest_offsets(), log.end_offsets()
    return records_of(log.read_many({partition: (earliest[partition], ends[partition]) for partition in ends}))


def records_of(pieces: Iterable[tuple[int, RecordColumns]]) -> list[LogRecord]:
    """The ordered rows of a `read_many` result; asserts that no record is damaged."""
    records: list[LogRecord] = []
    for partition, columns in pieces:
        assert columns.damages == ()
        records += to_log_records(columns, partition)
    return sorted(records, key=lambda record: (record.partition, record.offset))


def visible(records: Iterable[LogRecord]) -> list[SeenRecord]:
    """The records that a client would see: all but control records."""
    return [
        SeenRecord(each.partition, each.offset, each.timestamp, each.key, each.value) for each in records if not each.is_control
    ]
