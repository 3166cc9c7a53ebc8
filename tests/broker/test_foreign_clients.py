"""Third-party clients against the coordinator, and against a real broker, which validates the tests."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import java_tools
import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from coordinator_scenario import LONG_POLL_MS
from eventually import eventually
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata
from live_kafka import create_topic
from patience import PATIENCE_SECONDS

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.broker

TOPIC = "orders"
PARTITIONS = 4
_QUIET = {"log_level": 0}


class Cluster:
    """The server that the clients connect to."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})

    def consumer(self, group: str, **settings: object) -> Consumer:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "session.timeout.ms": 45_000,
                "heartbeat.interval.ms": 200,
                "auto.offset.reset": "earliest",
                **_QUIET,
                **given,
            }
        )

    def commit(self, group: str, offsets: dict[int, int]) -> None:
        """Commit offsets of a group without members."""
        consumer = self.consumer(group)
        try:
            consumer.commit(offsets=[TopicPartition(TOPIC, p, offset) for p, offset in offsets.items()], asynchronous=False)
        finally:
            consumer.close()


@pytest.fixture(scope="module", params=["coordinator", pytest.param("broker", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if request.param == "coordinator":
        log = tmp_path_factory.mktemp("coordinator") / "log"
        settings: dict[str, Any] = {"offsets_topic_num_partitions": 4, "group_initial_rebalance_delay_ms": 0}
        with PrivateCoordinator(log, topics={TOPIC: PARTITIONS}, **settings) as running:
            yield Cluster(running.bootstrap)
        return
    with PrivateBroker("4.1.1", offsets_partitions=4) as running:
        create_topic(running.bootstrap, TOPIC, PARTITIONS)
        yield Cluster(running.bootstrap)


@pytest.fixture
def group() -> str:
    """A group id that no other test uses."""
    return f"group-{uuid4().hex[:8]}"


@contextmanager
def polled(consumer: Consumer) -> Iterator[list[int]]:
    """Poll the consumer in a thread of its own; the list has the partitions that it owns."""
    owned: list[int] = []
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            consumer.poll(0.05)
            # a call of another thread would wait for `poll`
            owned[:] = [each.partition for each in consumer.assignment()]

    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(poll)
        try:
            yield owned
        finally:
            done.set()
        polling.result()


def settle(members: list[Consumer]) -> None:
    """Wait until the members together own every partition, each at least one."""

    def settled() -> bool:
        for member in members:
            member.poll(0.05)
        owned = [partition.partition for member in members for partition in member.assignment()]
        return sorted(owned) == list(range(PARTITIONS)) and all(member.assignment() for member in members)

    eventually("every partition is owned once", settled)


class TestConfluentAdmin:
    def test_lists_and_describes(self, cluster: Cluster, group: str) -> None:
        members = [cluster.consumer(group, client_id=f"client-{number}") for number in range(2)]
        try:
            for member in members:
                member.subscribe([TOPIC])
            settle(members)
            listed = cluster.admin.list_consumer_groups(request_timeout=PATIENCE_SECONDS).result()
            found = {each.group_id: each for each in listed.valid}
            assert not listed.errors
            assert found[group].state == ConsumerGroupState.STABLE
            described = cluster.admin.describe_consumer_groups([group], request_timeout=PATIENCE_SECONDS)[group].result()
            assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
            assert sorted(member.client_id for member in described.members) == ["client-0", "client-1"]
            owned = [tp.partition for member in described.members for tp in member.assignment.topic_partitions]
            assert sorted(owned) == list(range(PARTITIONS))
            assert {member.host for member in described.members} == {"/127.0.0.1"}
        finally:
            for member in members:
                member.close()
        described = cluster.admin.describe_consumer_groups([group], request_timeout=PATIENCE_SECONDS)[group].result()
        assert (described.state, described.members) == (ConsumerGroupState.EMPTY, [])

    def test_a_group_that_does_not_exist(self, cluster: Cluster, group: str) -> None:
        described = cluster.admin.describe_consumer_groups([group], request_timeout=PATIENCE_SECONDS)[group].result()
        assert described.state == ConsumerGroupState.DEAD

    def test_offsets_are_listed_altered_and_listed(self, cluster: Cluster, group: str) -> None:
        cluster.commit(group, {0: 10, 1: 11})
        of_group = ConsumerGroupTopicPartitions(group)
        first = cluster.admin.list_consumer_group_offsets([of_group])[group].result()
        assert {tp.partition: tp.offset for tp in first.topic_partitions} == {0: 10, 1: 11}
        to = ConsumerGroupTopicPartitions(group, [TopicPartition(TOPIC, 1, 5), TopicPartition(TOPIC, 2, 7)])
        cluster.admin.alter_consumer_group_offsets([to])[group].result()
        after = cluster.admin.list_consumer_group_offsets([of_group])[group].result()
        assert {tp.partition: tp.offset for tp in after.topic_partitions} == {0: 10, 1: 5, 2: 7}

    def test_a_group_is_deleted(self, cluster: Cluster, group: str) -> None:
        cluster.commit(group, {0: 1})
        cluster.admin.delete_consumer_groups([group])[group].result()
        left = cluster.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
        assert left.topic_partitions == []
        with pytest.raises(KafkaException, match="GROUP_ID_NOT_FOUND"):
            cluster.admin.delete_consumer_groups([group])[group].result()

    def test_a_group_with_members_is_not_deleted(self, cluster: Cluster, group: str) -> None:
        member = cluster.consumer(group)
        try:
            member.subscribe([TOPIC])
            settle([member])
            with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
                cluster.admin.delete_consumer_groups([group])[group].result()
        finally:
            member.close()


class TestKafkaPython:
    def test_administers(self, cluster: Cluster, group: str) -> None:
        cluster.commit(group, {0: 3, 3: 4})
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        try:
            assert group in {each["group_id"] for each in admin.list_groups()}
            assert admin.describe_groups([group])[group]["group_state"] == "Empty"
            partitions = {PythonPartition(TOPIC, 0): OffsetAndMetadata(30, "", -1)}
            admin.alter_group_offsets(group, partitions)
            listed = admin.list_group_offsets(group)[group]
            assert {tp.partition: found.offset for tp, found in listed.items()} == {0: 30, 3: 4}
            admin.delete_group_offsets(group, [PythonPartition(TOPIC, 3)])
            assert {tp.partition for tp in admin.list_group_offsets(group)[group]} == {0}
            admin.delete_groups([group])
            assert group not in {each["group_id"] for each in admin.list_groups()}
        finally:
            admin.close()

    def test_is_a_member_beside_another_client(self, cluster: Cluster, group: str) -> None:
        mine = KafkaConsumer(
            TOPIC,
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
            session_timeout_ms=45_000,
            heartbeat_interval_ms=200,
            enable_auto_commit=False,
            metadata_max_age_ms=1_000,
        )
        other = cluster.consumer(group)
        try:
            # its range assignor leaves out a topic whose metadata has not arrived yet, and no later rebalance may follow;
            # metadata that arrived after it has led its group would make it join again
            mine.topics()

            def alone() -> bool:
                mine.poll(timeout_ms=LONG_POLL_MS)
                return len(mine.assignment()) == PARTITIONS

            eventually("the first member owns every partition", alone)
            other.subscribe([TOPIC])

            with polled(other) as theirs:

                def settled() -> bool:
                    mine.poll(timeout_ms=LONG_POLL_MS)
                    own = [each.partition for each in mine.assignment()]
                    return bool(own and theirs) and sorted([*own, *theirs]) == list(range(PARTITIONS))

                eventually("two kinds of clients share the topic", settled)
            partition = min(mine.assignment())
            mine.commit({partition: OffsetAndMetadata(77, "by hand", -1)})
            assert mine.committed(partition) == 77
        finally:
            mine.close()
            other.close()


class TestJavaTool:
    """`kafka-consumer-groups`; each call starts a JVM, so each of the few calls queries much."""

    @pytest.mark.long
    def test_lists_describes_resets_and_deletes(self, cluster: Cluster, group: str) -> None:
        cluster.commit(group, {0: 5, 1: 6})
        member = cluster.consumer(f"{group}-live", client_id="seen-by-java")
        try:
            member.subscribe([TOPIC])
            settle([member])
            listed = java_tools.table(java_tools.consumer_groups(cluster.bootstrap, "--list", "--state"))
            assert {row["GROUP"]: row["STATE"] for row in listed if row["GROUP"].startswith(group)} == {
                group: "Empty",
                f"{group}-live": "Stable",
            }
            members = java_tools.table(
                java_tools.consumer_groups(cluster.bootstrap, "--describe", "--members", "--group", f"{group}-live")
            )
            assert [(row["CLIENT-ID"], row["#PARTITIONS"]) for row in members] == [("seen-by-java", str(PARTITIONS))]
        finally:
            member.close()
        described = java_tools.table(java_tools.consumer_groups(cluster.bootstrap, "--describe", "--group", group))
        assert {row["PARTITION"]: row["CURRENT-OFFSET"] for row in described} == {"0": "5", "1": "6"}
        java_tools.consumer_groups(cluster.bootstrap, "--delete-offsets", "--group", group, "--topic", f"{TOPIC}:1")
        described = java_tools.table(java_tools.consumer_groups(cluster.bootstrap, "--describe", "--group", group))
        assert {row["PARTITION"]: row["CURRENT-OFFSET"] for row in described} == {"0": "5"}
        printed = java_tools.consumer_groups(cluster.bootstrap, "--delete", "--group", group, "--group", f"{group}-live")
        assert "was successful" in printed
