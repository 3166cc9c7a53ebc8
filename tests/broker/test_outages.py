"""Disturbances of a log while it is read: brokers that hang, lose records, compact or throttle."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from eventually import equal_to, eventually
from live_kafka import QUIET, create_topic, produce, read_all, records_of, wait_for_topic
from lost_records import cut_log
from patience import PATIENCE_SECONDS
from private_cluster import PrivateCluster

from coordinator_core.log.errors import LogUnreachable
from coordinator_core.sources.kafka import KafkaSource
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.process import java_command

pytestmark = [pytest.mark.broker, pytest.mark.long]

_CLEANS_AT_ONCE = {"log.cleaner.backoff.ms": "50"}


@pytest.fixture(scope="module")
def harmed() -> Iterator[PrivateBroker]:
    """A broker that tests may stop and kill."""
    with PrivateBroker(properties=_CLEANS_AT_ONCE) as running:
        yield running


def address(broker: PrivateBroker, topic: str) -> str:
    return f"kafka://{broker.bootstrap}/{topic}"


def numbered(first: int, behind: int) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(0, b"key", b"%d" % number) for number in range(first, behind)]


@pytest.mark.slow
def test_a_broker_that_hangs_is_waited_for(harmed: PrivateBroker, topic: str) -> None:
    create_topic(harmed.bootstrap, topic)
    produce(harmed.bootstrap, topic, numbered(0, 50))
    impatient = {"request_timeout_ms": "500"}
    with KafkaSource(address(harmed, topic), impatient) as log:
        os.kill(harmed.pid, signal.SIGSTOP)
        comeback = threading.Timer(3.5, os.kill, (harmed.pid, signal.SIGCONT))
        comeback.start()
        try:
            assert log.end_offsets() == {0: 50}
        finally:
            comeback.join()
        assert len(read_all(log)) == 50


def test_records_that_a_broker_lost_are_missed_after_others_took_their_offsets(harmed: PrivateBroker, topic: str) -> None:
    create_topic(harmed.bootstrap, topic)
    produce(harmed.bootstrap, topic, numbered(0, 20), batch_num_messages=1)
    with KafkaSource(address(harmed, topic)) as log:
        ends, epochs = log.end_offsets(), log.leader_epochs()
    assert ends == {0: 20}
    position = {0: (ends[0], epochs[0])}
    harmed.kill()
    cut_log(harmed.data / f"{topic}-0", 12)
    harmed.start()
    produce(harmed.bootstrap, topic, numbered(100, 130))
    with KafkaSource(address(harmed, topic)) as log:
        assert log.end_offsets() == {0: 42}
        assert log.leader_epochs()[0] > epochs[0]
        assert log.truncated_partitions(position) == {0: 12}
        assert log.truncated_partitions({0: (12, epochs[0])}) == {}
        assert log.truncated_partitions({0: (42, log.leader_epochs()[0])}) == {}


def test_a_log_that_is_compacted_while_it_is_read(harmed: PrivateBroker, topic: str) -> None:
    create_topic(
        harmed.bootstrap,
        topic,
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.01",
        segment_ms="100",
        delete_retention_ms="0",
    )
    newest: dict[bytes, bytes | None] = {}

    def write() -> None:
        producer = Producer({"bootstrap.servers": harmed.bootstrap, "linger.ms": 1, **QUIET})
        for number in range(3000):
            key, value = b"key-%d" % (number * number % 97), None if number % 7 == 0 else b"%d" % number
            producer.produce(topic, key=key, value=value, partition=0)
            newest[key] = value
            if number % 20 == 0:
                producer.flush(PATIENCE_SECONDS)
                time.sleep(0.01)
        producer.flush(PATIENCE_SECONDS)

    writer = threading.Thread(target=write)
    writer.start()
    followed: dict[bytes, bytes | None] = {}
    position, read = 0, 0
    with KafkaSource(address(harmed, topic), partition_bytes=2000, response_bytes=2000) as log:
        while writer.is_alive() or position < log.end_offsets()[0]:
            end = log.end_offsets()[0]
            for record in records_of(log.read_many({0: (position, end)})):
                followed[record.key or b""] = record.value
                read += 1
            position = end
        writer.join()
        left = {record.key or b"": record.value for record in read_all(log)}
    assert followed == newest
    assert read > 1000
    # the cleaner has run: fewer records are left than were written, and the log ends at the same offset
    assert {**dict.fromkeys(newest), **left} == newest
    with KafkaSource(address(harmed, topic)) as log:
        assert len(read_all(log)) < 3000


@pytest.mark.slow
def test_a_reader_that_is_throttled_reads_on_and_reads_all(broker: PrivateBroker, topic: str) -> None:
    create_topic(broker.bootstrap, topic, 2)
    produce(broker.bootstrap, topic, [(number % 2, None, os.urandom(1000)) for number in range(3000)], batch_num_messages=50)
    quota = ["--entity-type", "clients", "--entity-name", topic, "--alter", "--add-config", "consumer_byte_rate=500000"]
    tool = java_command(broker.jars, "kafka.admin.ConfigCommand", ["--bootstrap-server", broker.bootstrap, *quota])
    subprocess.run(tool, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
    with KafkaSource(address(broker, topic), {"client_id": topic}, partition_bytes=100_000, response_bytes=200_000) as log:
        started = time.monotonic()
        assert len(read_all(log)) == 3000
        assert time.monotonic() - started > 1


def test_after_the_limit_the_wait_ends_with_the_reason(
    harmed: PrivateBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(harmed.bootstrap, topic)
    with KafkaSource(address(harmed, topic), {"retry_seconds": "4"}) as log:
        harmed.kill()
        with pytest.raises(LogUnreachable, match=r"connection refused.* \(waited for 4 s\)$"):
            log.end_offsets()
    logged = [record.message for record in caplog.records if record.name.startswith("coordinator_core")]
    assert [line.split(":")[0] for line in logged] == ["waiting for the brokers, up to 4 s"]


@pytest.mark.slow
def test_a_leader_elected_uncleanly_is_found_out_and_one_elected_cleanly_is_not_suspected(topic: str) -> None:
    with PrivateCluster(2) as cluster:
        first, second = cluster.brokers
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        config = {"unclean.leader.election.enable": "true"}
        admin.create_topics([NewTopic(topic, 1, replica_assignment=[[1, 2]], config=config)])[topic].result(PATIENCE_SECONDS)
        wait_for_topic(admin, topic)
        produce(cluster.bootstrap, topic, numbered(0, 10), acks="all")
        with KafkaSource(f"kafka://{cluster.bootstrap}/{topic}") as log:
            before = {0: (log.end_offsets()[0], log.leader_epochs()[0])}
            second.kill()
            produce(cluster.bootstrap, topic, numbered(10, 20), acks="all")
            lost = {0: (log.end_offsets()[0], log.leader_epochs()[0])}
            first.kill()
            second.start()
            produce(cluster.bootstrap, topic, numbered(100, 130), acks="all")
            assert log.end_offsets() == {0: 40}
            assert log.truncated_partitions(lost) == {0: 10}
            assert log.truncated_partitions(before) == {}
            after = {0: (40, log.leader_epochs()[0])}
            first.start()
            follow_leader(admin, topic, 1)
            assert log.end_offsets() == {0: 40}
            assert log.leader_epochs()[0] > after[0][1]
            assert log.truncated_partitions(after) == {}
            assert [record.value for record in read_all(log)] == [b"%d" % number for number in (*range(10), *range(100, 130))]


def follow_leader(admin: AdminClient, topic: str, wanted: int) -> None:
    """Wait until `wanted`, the preferred leader, has caught up and leads."""

    def leader() -> int:
        found = int(admin.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic].partitions[0].leader)
        if found != wanted:
            admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result(PATIENCE_SECONDS)
        return found

    eventually("the preferred replica leads", leader, equal_to(wanted), pause_seconds=0.5)
