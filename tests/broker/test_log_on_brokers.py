"""A topic of a broker as the coordinator's log: one owner per partition, and what was acknowledged is there."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from eventually import equal_to, eventually
from live_kafka import QUIET, create_topic, produce
from patience import PATIENCE_SECONDS

from coordinator_core.log.columns import to_log_records
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.errors import PartitionsDiffer
from coordinator_core.topic_log.errors import PartitionFenced, PartitionLost, TopicUnsuitable
from coordinator_core.topic_log.log_topic import LogTopicSettings, ensure_topic
from coordinator_core.topic_log.owned_partition import OwnedPartition
from coordinator_core.topic_log.topic_log import TopicLog
from pipelines.examples.private.kafka.broker import PrivateBroker

pytestmark = pytest.mark.broker

SETTINGS = LogTopicSettings(partitions=2, replication_factor=3, segment_bytes=1_048_576)
#: For appends to a broker that is there, and for the one that has to fail.
PATIENT_MS, APPEND_MS = int(PATIENCE_SECONDS * 1000), 5_000


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """A broker of this file."""
    with PrivateBroker() as running:
        yield running


def opened(broker: PrivateBroker, topic: str, append_ms: int = PATIENT_MS) -> TopicLog:
    return TopicLog(f"kafka://{broker.bootstrap}/{topic}", {}, SETTINGS, append_ms)


def keys(partition: OwnedPartition) -> list[bytes | None]:
    """Become the owner, and return the keys of all records."""
    return [record.key for columns in partition.read_columns() for record in to_log_records(columns, partition.partition)]


def batch(*keys: bytes) -> AppendBatch:
    return AppendBatch([(key, b"value") for key in keys])


@pytest.fixture
def topic() -> str:
    return f"log-{uuid4().hex[:8]}"


def test_the_next_owner_has_what_was_acknowledged_and_the_owner_before_it_is_fenced(broker: PrivateBroker, topic: str) -> None:
    before, after = opened(broker, topic), opened(broker, topic)
    assert (before.was_created, after.was_created) == (True, False)
    first, second = before.partition(1), after.partition(1)
    assert keys(first) == []
    assert first.append([batch(b"a", b"b"), batch(b"c")], 1_000) == [0, 2]
    assert first.append([batch(b"d")], 2_000) == [4]  # offset 3 is the marker of the first transaction
    assert keys(second) == [b"a", b"b", b"c", b"d"]
    with pytest.raises(PartitionFenced, match=rf"partition 1 of topic {topic}.*another coordinator owns"):
        first.append([batch(b"e")], 3_000)
    with pytest.raises(PartitionLost, match="not the owner"):
        first.append([batch(b"e")], 3_000)
    second.append([batch(b"f")], 4_000)
    assert keys(first) == [b"a", b"b", b"c", b"d", b"f"]
    before.close()
    after.close()


def test_an_open_transaction_of_a_killed_owner_is_aborted(broker: PrivateBroker, topic: str) -> None:
    killed, next_owner = opened(broker, topic).partition(0), opened(broker, topic).partition(0)
    assert keys(killed) == []
    killed.append([batch(b"kept")], 1_000)
    producer = killed._producer
    assert isinstance(producer, Producer)
    producer.begin_transaction()
    producer.produce(topic, b"value", b"lost", partition=0)
    # written, and not committed
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert keys(next_owner) == [b"kept"]


def test_records_are_those_of_segments(broker: PrivateBroker, topic: str) -> None:
    """Keys, values, timestamps and tombstones."""
    partition = opened(broker, topic).partition(0)
    assert keys(partition) == []
    partition.append([AppendBatch([(b"k1", b""), (b"k2", None)])], 1_234)
    found = [record for columns in partition.read_columns() for record in to_log_records(columns, 0)]
    assert [(each.offset, each.timestamp, each.key, each.value, each.is_transactional) for each in found] == [
        (0, 1_234, b"k1", b"", False),
        (1, 1_234, b"k2", None, False),
    ]


def test_a_record_that_the_broker_rejects_is_not_appended(broker: PrivateBroker, topic: str) -> None:
    partition = opened(broker, topic).partition(0)
    assert keys(partition) == []
    with pytest.raises(PartitionLost, match=r"(?i)large"):
        partition.append([batch(b"with it"), AppendBatch([(b"k", bytes(1_100_000))])], 1_000)
    assert keys(partition) == []
    partition.append([AppendBatch([(b"largest", bytes(1_048_000))])], 2_000)
    assert keys(partition) == [b"largest"]


def test_a_topic_that_is_no_log(broker: PrivateBroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    with pytest.raises(TopicUnsuitable, match="__consumer_offsets belongs to the coordinators of its cluster"):
        ensure_topic(admin, "__consumer_offsets", SETTINGS, 10)
    create_topic(broker.bootstrap, topic, 2, cleanup_policy="compact,delete")
    with pytest.raises(TopicUnsuitable, match=r"cleanup\.policy compact,delete"):
        ensure_topic(admin, topic, SETTINGS, 10)
    create_topic(broker.bootstrap, f"{topic}-small", 2, cleanup_policy="compact", max_message_bytes="2000")
    with pytest.raises(TopicUnsuitable, match=r"max\.message\.bytes 2000"):
        ensure_topic(admin, f"{topic}-small", SETTINGS, 10)
    create_topic(broker.bootstrap, f"{topic}-3", 3, cleanup_policy="compact")
    with pytest.raises(PartitionsDiffer, match="has 3 partitions, but 2 are configured"):
        ensure_topic(admin, f"{topic}-3", SETTINGS, 10)


def test_a_record_of_another_writer_is_read_and_its_open_transaction_is_named(broker: PrivateBroker, topic: str) -> None:
    log = opened(broker, topic)
    produce(broker.bootstrap, topic, [(0, b"foreign", b"value")])
    assert keys(log.partition(0)) == [b"foreign"]
    log.close()


def test_an_owner_outlasts_a_restart_of_the_broker(topic: str) -> None:
    with PrivateBroker() as broker:
        log = opened(broker, topic, APPEND_MS)
        partition = log.partition(0)
        assert keys(partition) == []
        partition.append([batch(b"before")], 1_000)
        broker.kill()
        with pytest.raises(PartitionLost):
            partition.append([batch(b"while it is away")], 2_000)
        broker.start()
        loaded = eventually("the partition is loaded again", lambda: _loaded(partition), lambda found: found is not None)
        assert loaded in ([b"before"], [b"before", b"while it is away"])
        partition.append([batch(b"after")], 3_000)
        eventually("the append is there", lambda: _loaded(partition), equal_to([*(loaded or ()), b"after"]))
        log.close()


def _loaded(partition: OwnedPartition) -> list[bytes | None] | None:
    from coordinator_core.log.errors import LogUnreachable

    try:
        return keys(partition)
    except LogUnreachable:
        return None
