"""The tables of brokers and replicas: written when the cluster has changed, and only then."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from log_builder import Log
from sampled_topics import SampledTopics, sampled
from table_logs import applied

from coordinator_core.sources.cluster_metadata import ClusterMetadata, LiveBroker, Replicas
from coordinator_core.state.era import Era
from pipelines.lag.sampling.cluster_sampling import ClusterSampling
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter

CLUSTER = ClusterMetadata(
    "cluster",
    2,
    (LiveBroker(1, "one", 9092, None), LiveBroker(2, "two", 9092, "east")),
    (Replicas("orders", 0, "id", 1, (1, 2), (1, 2)), Replicas("orders", 1, "id", None, (2, 1), ())),
    "4.1",
)


@pytest.fixture
def root(tmp_path: Path) -> str:
    log = Log()
    log.commit(0, 5, group="billing", topic="orders")
    applied(log, Era.named("4"), [], str(tmp_path))
    sampled(str(tmp_path), SampledTopics(orders=9))
    return str(tmp_path)


def rows(root: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Snapshot.open(root).query(f"SELECT * FROM {name}").to_pylist()
    return found


def test_tables_follow_the_cluster(root: str) -> None:
    sampling, writer = ClusterSampling(lambda: CLUSTER), TablesWriter.claim(TableStore(root))
    first = sampling.sample(writer)
    assert isinstance(first, Batch)
    assert [(row["node_id"], row["rack"], row["is_controller"]) for row in rows(root, "brokers")] == [
        (1, None, False),
        (2, "east", True),
    ]
    assert [
        (row["partition"], row["leader"], row["replicas"], row["in_sync_replicas"]) for row in rows(root, "topic_partitions")
    ] == [
        (0, 1, [1, 2], [1, 2]),
        (1, None, [2, 1], []),
    ]
    # a new process compares with the stored rows
    assert sampling.sample(writer) is None
    writer = TablesWriter.claim(TableStore(root))
    assert ClusterSampling(lambda: CLUSTER).sample(writer) is None

    changed = replace(CLUSTER, partitions=(replace(CLUSTER.partitions[0], in_sync=(1,)),))
    second = ClusterSampling(lambda: changed).sample(writer)
    assert second is not None
    assert second.versions["brokers"] == first.versions["brokers"]
    assert [row["in_sync_replicas"] for row in rows(root, "topic_partitions")] == [[1]]
    assert check(root) == []


def test_settings_that_cannot_be_read_are_those_of_the_last_sample(root: str) -> None:
    writer = TablesWriter.claim(TableStore(root))
    assert ClusterSampling(lambda: CLUSTER, cleanup_policies=lambda: {"orders": "compact"}).sample(writer) is not None
    assert {row["cluster_version"] for row in rows(root, "brokers")} == {"4.1"}
    # another process, before it has read the settings, or without an answer
    assert ClusterSampling(lambda: CLUSTER).sample(TablesWriter.claim(TableStore(root))) is None
    assert {row["cleanup_policy"] for row in rows(root, "topic_partitions")} == {"compact"}
    changed = ClusterSampling(lambda: CLUSTER, cleanup_policies=lambda: {"orders": "compact,delete"})
    assert changed.sample(TablesWriter.claim(TableStore(root))) is not None
    assert {row["cleanup_policy"] for row in rows(root, "topic_partitions")} == {"compact,delete"}
    assert check(root) == []


def test_without_a_sample_the_tables_are_unchanged(root: str) -> None:
    writer = TablesWriter.claim(TableStore(root))
    ClusterSampling(lambda: CLUSTER).sample(writer)
    assert ClusterSampling(lambda: None).sample(writer) is None
    assert len(rows(root, "brokers")) == 2
