"""Kafka's command line tools of 1.1 to 4.1 against the coordinator; each call starts a JVM, so each queries much."""

from collections.abc import Iterator
from typing import Any

import java_tools
import pytest
from confluent_kafka import Consumer, TopicPartition
from eventually import eventually
from group_offsets import commit_offsets
from live_kafka import QUIET

from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.broker

TOPIC, PARTITIONS, LIVE, EMPTY = "orders", 4, "live", "empty"
VERSIONS = ["1.1.1", *(pytest.param(version, marks=pytest.mark.slow) for version in ("2.8.2", "3.9.1", "4.1.1"))]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A coordinator with a group of one member, and a group that has committed offsets only."""
    log = tmp_path_factory.mktemp("coordinator") / "log"
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 4, "group_initial_rebalance_delay_ms": 0}
    with PrivateCoordinator(log, topics={TOPIC: PARTITIONS}, **settings) as running:
        common = {"bootstrap.servers": running.bootstrap, "enable.auto.commit": False, **QUIET}
        commit_offsets(running.bootstrap, EMPTY, {(TOPIC, 0): 5, (TOPIC, 1): 6})
        member = Consumer({**common, "group.id": LIVE, "client.id": "seen-by-tools"})
        member.subscribe([TOPIC])

        def owned() -> int:
            member.poll(0.05)
            return len(member.assignment())

        eventually("the member owns every partition", owned, lambda count: count == PARTITIONS)
        member.commit(offsets=[TopicPartition(TOPIC, 3, 33)], asynchronous=False)
        yield running.bootstrap
        member.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_groups_are_listed_and_described(bootstrap: str, version: str) -> None:
    listed = java_tools.consumer_groups(bootstrap, "--list", version=version)
    assert {LIVE, EMPTY} <= set(listed.split())

    rows = java_tools.table(java_tools.consumer_groups(bootstrap, "--describe", "--group", LIVE, version=version))
    assert {row["PARTITION"]: row["CURRENT-OFFSET"] for row in rows} == {"0": "-", "1": "-", "2": "-", "3": "33"}
    assert {(row["CLIENT-ID"], row["HOST"]) for row in rows} == {("seen-by-tools", "/127.0.0.1")}

    rows = java_tools.table(java_tools.consumer_groups(bootstrap, "--describe", "--group", EMPTY, version=version))
    assert {row["PARTITION"]: row["CURRENT-OFFSET"] for row in rows} == {"0": "5", "1": "6"}

    printed = java_tools.consumer_groups(bootstrap, "--describe", "--members", "--group", LIVE, version=version)
    assert [(row["CLIENT-ID"], row["#PARTITIONS"]) for row in java_tools.table(printed)] == [("seen-by-tools", str(PARTITIONS))]
    printed = java_tools.consumer_groups(bootstrap, "--describe", "--state", "--group", LIVE, version=version)
    assert "Stable" in printed
    assert "range" in printed


@pytest.mark.slow
def test_configs_of_a_group_are_described(bootstrap: str) -> None:
    printed = java_tools.group_configs(bootstrap, LIVE)
    assert printed[0] == f"All configs for group {LIVE} are:"
    shown = [line.split()[0] for line in printed[1:] if line.strip()]
    assert "group.max.session.timeout.ms=1800000" in shown
    assert "group.initial.rebalance.delay.ms=0" in shown
