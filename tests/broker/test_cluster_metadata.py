"""Brokers and replicas of a live cluster, from the responses to a sample."""

import pytest
from confluent_kafka import Producer

from coordinator_core.sources.topic_offsets import TopicOffsetsSampler
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

pytestmark = pytest.mark.broker


def test_brokers_and_replicas_of_a_live_cluster(broker: PrivateBroker, topic: str) -> None:
    with Clients(broker.bootstrap) as clients:
        clients.create_topics([topic], 3)
        cluster = Producer({"bootstrap.servers": broker.bootstrap}).list_topics(topic)
    sampler = TopicOffsetsSampler(f"kafka://{broker.bootstrap}/__consumer_offsets", None, lambda: 0, [f"{topic}-missing"])
    sampler.sample({topic: [0]})
    found = sampler.cluster_metadata()
    assert found is not None
    (node,) = cluster.brokers.values()
    (own,) = found.brokers
    assert (own.node_id, f"{own.host}:{own.port}") == (node.id, f"{node.host}:{node.port}")
    assert (found.cluster_id, found.controller_id) == (cluster.cluster_id, node.id)
    assert found.release == "4.1"
    assert [(each.topic, each.partition, each.leader) for each in found.partitions] == [(topic, n, node.id) for n in range(3)]
    for each in found.partitions:
        expected = cluster.topics[topic].partitions[each.partition]
        assert (list(each.replicas), list(each.in_sync)) == (expected.replicas, expected.isrs)
        assert each.topic_id
