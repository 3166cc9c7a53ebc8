"""The clock, addresses, settings, health and the log lines."""

import io
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from coordinator_core.group_coordinator.group_events import MemberIdGiven, RebalanceBegan
from coordinator_core.service.net.addresses import ListenAddress, java_host, parse_listen_address
from coordinator_core.service.node.admin_server import json_answer
from coordinator_core.service.node.composite_observer import CompositeObserver
from coordinator_core.service.node.event_log import EventLog
from coordinator_core.service.node.health import Health
from coordinator_core.service.node.metrics import Metrics
from coordinator_core.service.runtime.clock import SteadyClock
from coordinator_core.service.settings import ServiceSettings


@dataclass
class Node:
    """Partitions by status, of one topic."""

    statuses: dict[str, int]
    topic: str = "__consumer_offsets"
    failed: dict[str, str] = field(default_factory=dict)
    refused_appends: dict[str, str] = field(default_factory=dict)
    shares_log: bool = False

    def partitions(self) -> dict[str, dict[str, int]]:
        return {self.topic: self.statuses}

    def failures(self) -> dict[str, str]:
        return self.failed

    def failing_tasks(self) -> dict[str, str | None]:
        return {}


class Time:
    def __init__(self) -> None:
        self.wall, self.monotonic = 1_000_000.0, 5.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.monotonic)

    def passes(self, seconds: float) -> int:
        self.wall += seconds
        self.monotonic += seconds
        return self.clock.now_ms()


def test_the_clock_goes_with_the_system() -> None:
    time = Time()
    assert time.passes(2.5) == 1_000_002_500


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_jump_of_the_system_is_made_up_for_little_by_little(jump: float) -> None:
    time = Time()
    time.wall += jump
    before = time.clock.now_ms()
    assert before == 1_000_000_000
    after = time.passes(100)
    assert after - before == pytest.approx(100_000 * (1.1 if jump > 0 else 0.9), abs=2)
    for _ in range(400):
        after = time.passes(100)
    assert after == int(time.wall * 1000)


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "/10.0.0.1"),
        ("", "/"),
    ],
)
def test_hosts_as_java_writes_them(host: str, written: str) -> None:
    assert java_host(host) == written


def test_addresses() -> None:
    assert parse_listen_address("localhost:9092") == ListenAddress("localhost", 9092)
    assert str(parse_listen_address("[::1]:0")) == "[::1]:0"
    for wrong in ("", "9092", "host", "host:", "host:70000", "::1:9092", "a b:1"):
        with pytest.raises(ValueError, match="HOST:PORT"):
            parse_listen_address(wrong)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_connections", 0),
        ("socket_request_max_bytes", 2**31),
        ("topics", {"a b": 1}),
        ("topics", {"..": 1}),
        ("topics", {"orders": 0}),
        ("topics", {"orders": True}),
    ],
)
def test_settings_out_of_their_range(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=setting):
        ServiceSettings(**{setting: value})


@pytest.mark.parametrize(
    ("partitions", "code", "status"),
    [
        ({"active": 2}, 200, "ok"),
        ({"active": 1, "loading": 1}, 503, "loading"),
        ({"unloaded": 1}, 503, "loading"),
        ({"active": 1, "failed": 1}, 503, "failed"),
    ],
)
def test_health(partitions: dict[str, int], code: int, status: str) -> None:
    found = Health(Node(partitions)).report()
    assert (json_answer(found).status, found) == (code, {"status": status, "partitions": partitions})


def test_health_of_a_node_that_shares_its_log() -> None:
    """Partitions that are not loaded here have another owner."""
    for statuses, code in (({"active": 1, "unloaded": 1}, 200), ({"unloaded": 2}, 200), ({"loading": 1, "unloaded": 1}, 503)):
        assert json_answer(Health(Node(statuses, shares_log=True)).report()).status == code


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "orders"])
def test_a_failed_partition_of_any_topic_is_named_by_health(topic: str) -> None:
    node = Node({"active": 4, "failed": 1}, topic, {f"{topic}-3": "fsync failed"})
    found = Health(node).report()
    expected = {"status": "failed", "partitions": {"active": 4, "failed": 1}, "failed_partitions": {f"{topic}-3": "fsync failed"}}
    assert (json_answer(found).status, found) == (503, expected)


def test_a_line_says_which_group_and_why() -> None:
    stream = io.StringIO()
    metrics = Metrics()
    observer = CompositeObserver((metrics, EventLog(stream, "info")))
    observer.group_events(3, (MemberIdGiven("g", "m"), RebalanceBegan("g", "Stable", 4, "member m was removed: session timeout")))
    observer.queued(0.1)
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert said.pop("timestamp").endswith("Z")
    assert said == {
        "event": "group rebalances",
        "level": "info",
        "partition": 3,
        "group": "g",
        "state": "Stable",
        "generation": 4,
        "reason": "member m was removed: session timeout",
    }
    assert b"grouplake_coordinator_rebalances_total 1.0" in metrics.text()
