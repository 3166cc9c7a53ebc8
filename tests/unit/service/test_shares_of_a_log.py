"""Shares of the nodes of a folder, their files, and their reports as those of one coordinator."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from coordinator_core.protocol.groups import Node
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.cleaner_offsets import read_cleaner_offsets, remove_cleaner_offsets, write_cleaner_offsets
from coordinator_core.segment_log.lock import FolderLock
from coordinator_core.segment_log.segment_log import SegmentLog, create_partitions
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.service.node.admin_server import json_answer
from coordinator_core.service.node.fixed_shares import FixedShares, share
from coordinator_core.service.node.merged_reports import merged_health, merged_metrics
from coordinator_core.service.node.metrics import Metrics
from pipelines.job.node_process import NodeTask

NODES = [Node(7, "host", 9092), Node(8, "host", 9093), Node(9, "::1", 9094)]


@given(st.integers(1, 8), st.integers(1, 60))
def test_each_partition_has_one_owner_that_all_nodes_name(nodes: int, partitions: int) -> None:
    all_nodes = [Node(number, "host", 9000 + number) for number in range(nodes)]
    shares = {node: share(position, nodes, partitions) for position, node in enumerate(all_nodes)}
    assert sorted(number for numbers in shares.values() for number in numbers) == list(range(partitions))
    for own in all_nodes:
        seen = FixedShares(own, all_nodes)
        assert {number: seen.owner(number) for numbers in shares.values() for number in numbers} == {
            number: node for node, numbers in shares.items() for number in numbers
        }
        assert (seen.own, seen.all()) == (own, tuple(all_nodes))


def test_the_task_of_a_node() -> None:
    section = {"era": "4", "topics": {"orders": 4}, "log_level": "info", "min_ratio": 0.5, "admin_listen": ""}
    task = NodeTask(1, NODES, "/logs", section, 5, 6, [7, 8])
    assert NodeTask.parse(task.line()) == task


def opened(folder: Path, numbers: range | None, *, is_locked: bool) -> SegmentLog:
    return SegmentLog.open(folder, OFFSETS_TOPIC, 5, SegmentLogSettings(), is_locked=is_locked, numbers=numbers)


def test_nodes_write_partitions_of_one_log(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    created = create_partitions(tmp_path, OFFSETS_TOPIC, 5)
    logs = [opened(tmp_path, share(position, 2, 5), is_locked=True) for position in range(2)]
    assert [(log.partitions, list(log.numbers), list(log.owned_at_start)) for log in logs] == [
        (5, [0, 2, 4], [0, 2, 4]),
        (5, [1, 3], [1, 3]),
    ]
    for log in logs:
        for number in log.numbers:
            log.partition(number).append([AppendBatch([(b"key", b"value")])] * (number + 1), 1_000)
        assert log.flush(log.numbers) == [None] * len(log.numbers)
        log.close()
    lock.release()
    whole = opened(tmp_path, None, is_locked=False)
    assert [whole.partition(number).end_offset for number in whole.numbers] == [1, 2, 3, 4, 5]
    assert {log.topic_id for log in (*logs, whole)} == {created}
    whole.close()


def test_cleaners_of_two_nodes_keep_the_lines_of_each_other(tmp_path: Path) -> None:
    write_cleaner_offsets(tmp_path, "log", {0: 10, 2: 20})
    write_cleaner_offsets(tmp_path, "log", {1: 30})
    write_cleaner_offsets(tmp_path, "other", {0: 5})
    write_cleaner_offsets(tmp_path, "log", {0: 11, 2: 20})
    assert read_cleaner_offsets(tmp_path, "log") == {0: 11, 1: 30, 2: 20}
    remove_cleaner_offsets(tmp_path, "log")
    assert (read_cleaner_offsets(tmp_path, "log"), read_cleaner_offsets(tmp_path, "other")) == ({}, {0: 5})


OK = {"status": "ok", "partitions": {"active": 3}}


@pytest.mark.parametrize(
    ("reports", "code", "found"),
    [
        ({1: OK, 2: OK}, 200, {"status": "ok", "nodes": {"1": "ok", "2": "ok"}, "partitions": {"active": 6}}),
        (
            {1: OK, 2: None},
            503,
            {"status": "loading", "nodes": {"1": "ok", "2": "not running"}, "partitions": {"active": 3}},
        ),
        (
            {1: {"status": "loading", "partitions": {"loading": 3}}, 2: None},
            503,
            {"status": "loading", "nodes": {"1": "loading", "2": "not running"}, "partitions": {"loading": 3}},
        ),
        (
            {
                1: {"status": "degraded", "partitions": {"active": 3}, "failing_tasks": {"log-cleaner": "disk full"}},
                2: {
                    "status": "failed",
                    "partitions": {"active": 1, "failed": 1},
                    "failed_partitions": {"log-1": "fsync"},
                    "refused_appends": {"log-3": "no space"},
                    "failing_tasks": {"log-cleaner": "disk full"},
                },
            },
            503,
            {
                "status": "failed",
                "nodes": {"1": "degraded", "2": "failed"},
                "partitions": {"active": 4, "failed": 1},
                "failed_partitions": {"log-1": "fsync"},
                "refused_appends": {"log-3": "no space"},
                "failing_tasks": {"log-cleaner of node 1": "disk full", "log-cleaner of node 2": "disk full"},
            },
        ),
    ],
)
def test_health_of_several_nodes(reports: dict[int, dict[str, Any] | None], code: int, found: dict[str, object]) -> None:
    answer = json_answer(merged_health(reports))
    assert (answer.status, json.loads(answer.body)) == (code, found)


def test_metrics_of_several_nodes() -> None:
    """Every series of every node is there once, with its value, type and help."""
    nodes = {1: Metrics(), 2: Metrics()}
    nodes[1].answered("Heartbeat", 0.2)
    nodes[2].answered("Heartbeat", 3.0)
    nodes[2].load_finished(5, 1, 100, 0, 0.5)
    texts: dict[int, str | None] = {number: metrics.text().decode() for number, metrics in nodes.items()}
    merged = list(text_string_to_metric_families(merged_metrics({**texts, 3: None}, {1: 1, 2: 3, 3: 9}).decode()))
    alone = {number: list(text_string_to_metric_families(text or "")) for number, text in texts.items()}

    found = {(each.name, tuple(sorted(each.labels.items()))): each.value for family in merged for each in family.samples}
    expected = {
        (each.name, tuple(sorted({**each.labels, "node": str(number)}.items()))): each.value
        for number, families in alone.items()
        for family in families
        for each in family.samples
    }
    for number, up, starts in ((1, 1, 1), (2, 1, 3), (3, 0, 9)):
        expected["grouplake_coordinator_node_up", (("node", str(number)),)] = up
        expected["grouplake_coordinator_node_starts_total", (("node", str(number)),)] = starts
    assert found == expected
    described = {family.name: (family.type, family.documentation) for family in merged}
    assert {family.name: (family.type, family.documentation) for family in alone[1]}.items() <= described.items()
    assert len(described) == len(merged)
