"""Coordinators to compare, each as a process: ours with an fsync policy, and a broker with Kafka's JVM settings."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.brokers import JVM, VERSION, LoadTime
from benchmarks.logs import PARTITIONS, GeneratedLog
from benchmarks.processes import cpu_seconds
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

#: Kafka's setting for the time that the first rebalance of a group waits for more members.
_DELAY = "group.initial.rebalance.delay.ms"
_LOAD_LIMIT_SECONDS = 300
_BROKER = f"Kafka {VERSION}"


@dataclass(frozen=True, slots=True)
class Server:
    """A running coordinator: label, address, process id, and those of its nodes if it has several."""

    name: str
    bootstrap: str
    pid: int
    nodes: tuple[int, ...] = ()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    def cpu_seconds(self) -> float:
        """CPU time of all processes so far."""
        return sum(map(cpu_seconds, (self.pid, *self.nodes)))


@contextmanager
def our_coordinator(folder: Path, topic: str, fsync: str, delay_ms: int) -> Iterator[Server]:
    """Our coordinator on an empty log in `folder`, otherwise with default settings."""
    settings: dict[str, Any] = {"fsync": fsync, _DELAY.replace(".", "_"): delay_ms}
    with PrivateCoordinator(folder, topics={topic: 1}, **settings) as coordinator:
        yield Server(f"ours, fsync {fsync}", coordinator.bootstrap, coordinator.pid)
        coordinator.stop()


@contextmanager
def kafka_broker(topic: str, delay_ms: int) -> Iterator[Server]:
    """A broker with the same number of partitions of `__consumer_offsets`, and Kafka's default flush settings."""
    with PrivateBroker(VERSION, offsets_partitions=PARTITIONS, properties={_DELAY: str(delay_ms)}, jvm_arguments=JVM) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(topic, 1, 1)]).values():
            made.result(60)
        yield Server(_BROKER, broker.bootstrap, broker.pid)


def our_load(log: GeneratedLog, folder: Path) -> LoadTime:
    """Start our coordinator on a copy of `log` in `folder`, and wait until every partition is loaded."""
    partitions = log.shape.partitions
    coordinator = PrivateCoordinator(folder, log_cleaner_interval_ms=0, offsets_topic_num_partitions=partitions)
    return _load_time(coordinator, partitions)


def node_load(folder: Path, address: str, partitions: int) -> LoadTime:
    """Start a node whose log is the topic at `address`, and wait until it has loaded every partition."""
    return _load_time(PrivateCoordinator(folder, log=address, offsets_topic_num_partitions=partitions), partitions)


def _load_time(coordinator: PrivateCoordinator, partitions: int) -> LoadTime:
    coordinator.log.unlink(missing_ok=True)
    started = time.time()
    with coordinator:
        coordinator.wait_until_active(partitions, _LOAD_LIMIT_SECONDS)
        events = coordinator.events("load finished")
        coordinator.stop()
    ends = [datetime.fromisoformat(event["timestamp"]).timestamp() for event in events]
    seconds = [float(event["seconds"]) for event in events]
    first = min(end - took for end, took in zip(ends, seconds, strict=True))
    return LoadTime(max(ends) - first, sum(seconds), max(ends) - started, sum(int(event["records"]) for event in events))
