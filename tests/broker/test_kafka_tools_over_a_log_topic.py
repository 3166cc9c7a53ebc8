"""Kafka's command line tools of 2.8 to 4.3 against a node whose log is a topic, and against the topic."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
LOG_PARTITIONS = 4
#: Release → the era of a node whose records its tools can read.
ERAS = {"2.8.2": "3", "3.9.1": "3", "4.3.0": "4"}
VERSIONS = list(ERAS)
#: What was committed: group → partition → offset.
COMMITTED = {LIVE: {3: 34}, EMPTY: {0: 5, 1: 6}}

_CLASSIC_DUMP = re.compile(r"key: offset_commit::group=(\w+),partition=orders-(\d+) payload: offset=(\d+)")
_DUMP = re.compile(r"key: (\{.*\}) payload: (\{.*\})")
_CLASSIC_LINE = re.compile(r"\[(\w+),orders,(\d+)\]::OffsetAndMetadata\(offset=(\d+)")


class QueriedNode(NamedTuple):
    """A running node, and its log topic."""

    version: str
    bootstrap: str
    log: str


class Place(NamedTuple):
    """A committed offset as a tool prints it."""

    group: str
    partition: int
    offset: int


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """A broker of this file."""
    with PrivateBroker() as running:
        yield running


@pytest.fixture(scope="module", params=VERSIONS)
def node(
    request: pytest.FixtureRequest, broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[QueriedNode]:
    """A node with a group of one member, and a group that has committed offsets only, in the era of a release."""
    version = str(request.param)
    log = f"log-{version}"
    with PrivateCoordinator(
        tmp_path_factory.mktemp("node") / "node-1",
        topics={TOPIC: PARTITIONS},
        log=f"kafka://{broker.bootstrap}/{log}",
        era=ERAS[version],
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
        yield QueriedNode(version, running.bootstrap, log)
        member.close()


def test_a_node_is_queried(node: QueriedNode) -> None:
    listed = java_tools.consumer_groups(node.bootstrap, "--list", version=node.version)
    assert {LIVE, EMPTY} <= set(listed.split())
    for group, offsets in COMMITTED.items():
        rows = java_tools.table(java_tools.consumer_groups(node.bootstrap, "--describe", "--group", group, version=node.version))
        assert {int(row["PARTITION"]): int(row["CURRENT-OFFSET"]) for row in rows if row["CURRENT-OFFSET"] != "-"} == offsets
    described = "--describe", "--group", LIVE
    rows = java_tools.table(java_tools.consumer_groups(node.bootstrap, *described, "--members", version=node.version))
    assert [(row["CLIENT-ID"], row["#PARTITIONS"]) for row in rows] == [("seen-by-tools", str(PARTITIONS))]
    assert "Stable" in java_tools.consumer_groups(node.bootstrap, *described, "--state", version=node.version)


def test_the_files_of_the_topic_are_dumped(node: QueriedNode, broker: PrivateBroker, tmp_path: Path) -> None:
    # the broker may append to its own files while the tool reads them
    for folder in broker.data.glob(f"{node.log}-[0-9]*"):
        shutil.copytree(folder, tmp_path / folder.name)
    dumped = java_tools.dumped_records(tmp_path, node.log, "offsets", node.version)
    lines = [line for some in dumped.values() for line in some]
    assert _offsets(_of_dump(line) for line in lines) == COMMITTED
    assert any("isTransactional: true" in line for line in lines)


def test_the_topic_is_printed(node: QueriedNode, broker: PrivateBroker) -> None:
    printed = java_tools.printed_offsets(broker.bootstrap, node.log, _records(broker, node.log), node.version)
    assert _offsets(_of_formatter(printed)) == COMMITTED


def _records(broker: PrivateBroker, log: str) -> int:
    """The number of committed records in the topic."""
    with KafkaSource(f"kafka://{broker.bootstrap}/{log}", {"isolation_level": "read_committed"}) as source:
        starts, ends = source.earliest_offsets(), source.end_offsets()
        return sum(len(columns) for at in starts for columns in source.read_columns(at, starts[at], ends[at]))


def _offsets(places: Iterable[Place | None]) -> dict[str, dict[int, int]]:
    """Group → partition → the last offset."""
    found: dict[str, dict[int, int]] = {}
    for place in places:
        if place is not None:
            found.setdefault(place.group, {})[place.partition] = place.offset
    return found


def _of_dump(line: str) -> Place | None:
    classic, dumped = _CLASSIC_DUMP.search(line), _DUMP.search(line)
    if classic is not None:
        return _classic(classic)
    return None if dumped is None else _of_json(json.loads(dumped[1]), json.loads(dumped[2]))


def _of_formatter(printed: str) -> Iterator[Place | None]:
    """Lines of the classic formatter; later ones print JSON objects without a line end."""
    yield from (_classic(found) for found in _CLASSIC_LINE.finditer(printed))
    decoder = json.JSONDecoder()
    start = printed.find("{")
    while start >= 0 and not _CLASSIC_LINE.search(printed):
        both, end = decoder.raw_decode(printed, start)
        yield _of_json(both["key"], both["value"])
        start = printed.find("{", end)


def _classic(found: re.Match[str]) -> Place:
    return Place(found[1], int(found[2]), int(found[3]))


def _of_json(key: Any, value: Any) -> Place | None:
    data = key["data"]
    return Place(data["group"], data["partition"], value["data"]["offset"]) if "partition" in data else None
