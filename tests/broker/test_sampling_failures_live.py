"""Samples of a cluster that does not answer for all topics: a reason for each partition without an answer, the rest complete."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType
from end_offset_rows import samples_from
from live_kafka import create_topic, delete_topic
from live_lag import LiveLag, now_ms
from patience import PATIENCE_SECONDS
from private_cluster import PrivateCluster

from coordinator_core.sources.kafka_connection import close_idle_connections
from coordinator_core.sources.topic_offsets import TopicOffsetsSampler
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

pytestmark = [pytest.mark.broker, pytest.mark.long]

VISIBLE, SECRET, UNREADABLE = "visible", "secret", "unreadable"
READER, PASSWORD = "reader", "reader-secret"


def sasl(user: str, password: str) -> dict[str, str | int | float | bool]:
    """Settings of librdkafka."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }


def allow(admin: AdminClient, resource: ResourceType, name: str, *operations: AclOperation) -> None:
    acls = [
        AclBinding(resource, name, ResourcePatternType.LITERAL, f"User:{READER}", "*", operation, AclPermissionType.ALLOW)
        for operation in operations
    ]
    for future in admin.create_acls(acls).values():
        future.result(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def guarded() -> Iterator[PrivateBroker]:
    """A broker whose user `reader` may do what its ACLs allow."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = f'username="admin" password="admin-secret" user_admin="admin-secret" user_{READER}="{PASSWORD}";'
    properties = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:{port}",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{login} {users}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with PrivateBroker("4.1.1", offsets_partitions=2, properties=properties) as broker:
        with Clients(broker.bootstrap, sasl("admin", "admin-secret")) as clients:
            clients.create_topics([VISIBLE, SECRET, UNREADABLE], 1)
            allow(clients.admin, ResourceType.TOPIC, "__consumer_offsets", AclOperation.READ)
            allow(clients.admin, ResourceType.TOPIC, VISIBLE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
            allow(clients.admin, ResourceType.TOPIC, UNREADABLE, AclOperation.DESCRIBE)
            consumer = clients.consumer("group")
            for topic in (VISIBLE, SECRET, UNREADABLE):
                clients.produce(topic, 1, 4)
                clients.commit(consumer, [(topic, 0, 1)])
        yield broker
        close_idle_connections()


def test_topics_without_permission(guarded: PrivateBroker, tmp_path: Path) -> None:
    kafka = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": READER,
        "sasl_password": PASSWORD,
    }
    lag = LiveLag(guarded.bootstrap, tmp_path / "tables", kafka)
    lag.sample()
    rows = {topic: row for (_, topic, _), row in lag.sample().items()}
    secret = rows[SECRET]
    assert (secret["group_offset"], secret["latest_offset"], secret["lag"]) == (1, None, None)
    assert (secret["lag_reason"], secret["lag_method"], secret["lag_seconds"]) == ("topic_authorization_failed", "none", None)
    # the others are complete
    assert [(rows[topic]["latest_offset"], rows[topic]["lag"]) for topic in (VISIBLE, UNREADABLE)] == [(4, 3), (4, 3)]
    # without the ACL Read, records are not counted, and that is remembered
    assert [rows[topic]["data_lag"] for topic in (VISIBLE, UNREADABLE)] == [3, None]
    assert {topic: row["data_lag"] for (_, topic, _), row in lag.sample().items()}[UNREADABLE] is None
    # without the ACL DescribeConfigs there is no retention, which is reported once
    assert [line for line in lag.lines if "DescribeConfigs" in line] == [
        "settings of topics secret, unreadable cannot be read (topic_authorization_failed), so their retention and compaction "
        "are unknown: the user needs the ACL DescribeConfigs on them"
    ]


def test_a_topic_deleted_between_the_requests_of_a_sample(broker: PrivateBroker, topic: str) -> None:
    deleted, kept = f"{topic}-deleted", f"{topic}-kept"
    for name in (deleted, kept):
        create_topic(broker.bootstrap, name)
    with Clients(broker.bootstrap) as clients:
        clients.produce(kept, 1, 3)
    looks = count()

    def clock() -> int:
        # the start, and then the look before the offsets are requested, after the metadata
        if next(looks) == 1:
            delete_topic(broker.bootstrap, deleted)
        return now_ms()

    sampler = TopicOffsetsSampler(f"kafka://{broker.bootstrap}/__consumer_offsets", None, clock)
    samples = {sample.topic: sample for sample in samples_from(sampler.sample({deleted: [0], kept: [0]}))}
    assert (samples[deleted].log_end, samples[deleted].reason) == (None, "unknown_topic_or_partition")
    assert (samples[kept].log_start, samples[kept].log_end, samples[kept].last_stable) == (0, 3, 3)


@pytest.mark.slow
def test_a_leader_that_is_away(tmp_path: Path, topic: str) -> None:
    with PrivateCluster(2, offsets_partitions=2) as cluster:
        first, second = cluster.brokers
        create_topic(first.bootstrap, topic, 4)
        with Clients(first.bootstrap) as clients:
            clients.produce(topic, 4, 8)
            consumer = clients.consumer("group")
            clients.commit(consumer, [(topic, partition, 1) for partition in range(4)])
            leaders = {number: each.leader for number, each in clients.admin.list_topics(topic).topics[topic].partitions.items()}
            assert sorted(leaders.values()) == [1, 1, 2, 2]
            lag = LiveLag(first.bootstrap, tmp_path / "tables")
            assert [row["lag"] for row in lag.sample().values()] == [1, 1, 1, 1]
            second.kill()
            rows = lag.sample(with_commits=False)
        for partition, leader in leaders.items():
            row = rows["group", topic, partition]
            assert row["group_offset"] == 1
            if leader == 1:
                assert (row["lag"], row["lag_method"]) == (1, "lower_bound")
            else:
                assert (row["lag"], row["lag_seconds"], row["lag_method"]) == (None, None, "none")
                assert row["lag_reason"] in ("leader_does_not_answer", "leader_not_available")
        close_idle_connections()
