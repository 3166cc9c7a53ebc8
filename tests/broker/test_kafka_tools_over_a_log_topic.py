"""Kafka's command line tools of 2.8 to 4.3 against a node whose log is a topic, and against the topic."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import java_tools
import pytest
from confluent_kafka import Consumer, TopicPartition
from eventually import equal_to, eventually
from group_offsets import commit_offsets
from live_kafka import QUIET

from coordinator_core.sources.kafka import KafkaSource
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = [pytest.mark.broker, pytest.mark.slow]

TOPIC, PARTITIONS, LIVE, EMPTY = "orders", 4, "live", "empty"
LOG_TOPIC, LOG_PARTITIONS = "grouplake_offsets", 4
VERSIONS = ["2.8.2", "3.9.1", "4.3.0"]
#: What was committed: group → partition → offset.
COMMITTED = {LIVE: {3: 34}, EMPTY: {0: 5, 1: 6}}

_CLASSIC_DUMP = re.compile(r"key: offset_commit::group=(\w+),partition=orders-(\d+) payload: offset=(\d+)")
_DUMP = re.compile(r"key: (\{.*\}) payload: (\{.*\}|<DELETE>)")
_CLASSIC_LINE = re.compile(r"\[(\w+),orders,(\d+)\]::OffsetAndMetadata\(offset=(\d+)")


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """A broker of this file."""
    with PrivateBroker() as running:
        yield running


@pytest.fixture(scope="module")
def bootstrap(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node with a group of one member, and a group that has committed offsets only."""
    with PrivateCoordinator(
        tmp_path_factory.mktemp("node") / "node-1",
        topics={TOPIC: PARTITIONS},
        log=f"kafka://{broker.bootstrap}/{LOG_TOPIC}",
        offsets_topic_num_partitions=LOG_PARTITIONS,
        group_initial_rebalance_delay_ms=0,
    ) as running:
        running.wait_until_active(LOG_PARTITIONS)
        commit_offsets(running.bootstrap, EMPTY, {(TOPIC, partition): offset for partition, offset in COMMITTED[EMPTY].items()})
        settings = {"bootstrap.servers": running.bootstrap, "enable.auto.commit": False, **QUIET}
        member = Consumer({**settings, "group.id": LIVE, "client.id": "seen-by-tools"})
        member.subscribe([TOPIC])

        def owned() -> int:
            member.poll(0.05)
            return len(member.assignment())

        eventually("the member owns every partition", owned, equal_to(PARTITIONS))
        for offset in (33, 34):
            member.commit(offsets=[TopicPartition(TOPIC, 3, offset)], asynchronous=False)
        yield running.bootstrap
        member.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_node_is_queried(bootstrap: str, version: str) -> None:
    listed = java_tools.consumer_groups(bootstrap, "--list", version=version)
    assert {LIVE, EMPTY} <= set(listed.split())
    for group, offsets in COMMITTED.items():
        rows = java_tools.table(java_tools.consumer_groups(bootstrap, "--describe", "--group", group, version=version))
        assert {int(row["PARTITION"]): int(row["CURRENT-OFFSET"]) for row in rows if row["CURRENT-OFFSET"] != "-"} == offsets
    printed = java_tools.consumer_groups(bootstrap, "--describe", "--members", "--group", LIVE, version=version)
    assert [(row["CLIENT-ID"], row["#PARTITIONS"]) for row in java_tools.table(printed)] == [("seen-by-tools", str(PARTITIONS))]
    printed = java_tools.consumer_groups(bootstrap, "--describe", "--state", "--group", LIVE, version=version)
    assert "Stable" in printed


@pytest.mark.parametrize("version", VERSIONS)
def test_the_files_of_the_topic_are_dumped(bootstrap: str, broker: PrivateBroker, version: str, tmp_path: Path) -> None:
    assert bootstrap
    # the tool refuses files to which the broker appends meanwhile
    for folder in broker.data.glob(f"{LOG_TOPIC}-[0-9]*"):
        shutil.copytree(folder, tmp_path / folder.name)
    lines = java_tools.dumped_records(tmp_path, LOG_TOPIC, "offsets", version)
    assert _offsets(line for some in lines.values() for line in some) == COMMITTED
    assert any("isTransactional: true" in line for some in lines.values() for line in some)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_topic_is_printed(bootstrap: str, broker: PrivateBroker, version: str) -> None:
    assert bootstrap
    printed = java_tools.printed_offsets(broker.bootstrap, LOG_TOPIC, _records(broker), version)
    assert _offsets(printed) == COMMITTED


def _records(broker: PrivateBroker) -> int:
    """The number of committed records in the topic."""
    with KafkaSource(f"kafka://{broker.bootstrap}/{LOG_TOPIC}", {"isolation_level": "read_committed"}) as source:
        starts, ends = source.earliest_offsets(), source.end_offsets()
        return sum(len(columns) for at in starts for columns in source.read_columns(at, starts[at], ends[at]))


def _offsets(lines: Iterable[str]) -> dict[str, dict[int, int]]:
    """Group → partition → the last offset in the lines of either tool, in the form of either release."""
    found: dict[str, dict[int, int]] = {}
    for line in lines:
        place = _place(line)
        if place is not None:
            group, partition, offset = place
            found.setdefault(group, {})[partition] = offset
    return found


def _place(line: str) -> tuple[str, int, int] | None:
    classic = _CLASSIC_DUMP.search(line) or _CLASSIC_LINE.search(line)
    if classic is not None:
        return classic[1], int(classic[2]), int(classic[3])
    dumped = _DUMP.search(line)
    if dumped is not None:
        key, value = json.loads(dumped[1]), json.loads(dumped[2]) if dumped[2] != "<DELETE>" else None
    elif line.startswith("{"):
        both = json.loads(line)
        key, value = both["key"], both["value"]
    else:
        return None
    if "partition" not in (key.get("data") or {}) or value is None:
        return None
    return key["data"]["group"], key["data"]["partition"], value["data"]["offset"]
