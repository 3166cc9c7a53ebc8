"""Job, pages, alerts and a coordinator under load, with a broker outage, full disks and hostile clients at known times."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alert_receivers import webhook_server
from dashboards import Dashboard
from eventually import eventually
from following import Committers
from hostile_clients import HostileVisitors, Nuisance, hostile_bytes, hostile_groups
from live_kafka import create_topic
from memory_watch import MemoryWatch
from patience import LIMIT_SECONDS
from services import Service
from small_disk import SmallDisk, small_disk

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator
from pipelines.query.engine import Snapshot

TOPIC, PARTITIONS = "orders", 2
OFFSETS_PARTITIONS = 4
CLUSTER = "endured"
_GROUPS, _COORDINATOR_GROUPS = 40, 20
_DISK_MEBIBYTES = 1_024
#: Pages are requested this often by visitors of good and of bad will.
_VISIT_SECONDS = 0.5
_LOOK_SECONDS = 5.0
_PARTS_OF_A_LIFE = 12
_RULES = """
[alerts]
receivers = ["ops"]
every = "5s"
group_wait = "0s"
group_interval = "0s"
[receivers.ops]
kind = "webhook"
url = "{url}"
[[rules]]
name = "OldBatch"
on = "batch_age"
above = "40s"
"""
#: The heap of the job's JVM is resident from its start on, so what grows is something else. A full heap ends the job.
_CONFIGURATION = """
[kafka]
retry_seconds = 5
[lag]
interval_seconds = 10
[spark]
master = "local[2]"
driver_memory = "640m"
java_options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms640m -XX:+AlwaysPreTouch"
"""


@dataclass(frozen=True)
class Event:
    """A disturbance, with the times of its begin and its end."""

    kind: str
    start: float
    end: float


@dataclass
class Record:
    """What a run leaves: events, logs, results, memory, and the broker that still has the answers."""

    events: list[Event] = field(default_factory=list)
    services: dict[str, Service] = field(default_factory=dict)
    nuisances: dict[str, Counter[str]] = field(default_factory=dict)
    growth: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    memory: Mapping[str, Mapping[str, list[float]]] = field(default_factory=dict)
    notifications: list[Any] = field(default_factory=list)
    dashboard_lines: list[str] = field(default_factory=list)
    coordinator_events: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    coordinator_commits: int = 0


@dataclass(frozen=True)
class Parts:
    """The running parts."""

    broker: PrivateBroker
    coordinator: PrivateCoordinator
    tables: Path
    disk: SmallDisk
    coordinator_disk: SmallDisk
    committers: Committers
    coordinator_committers: Committers


class Endurance:
    """One run of `seconds`, in `folder`."""

    def __init__(self, folder: Path, seconds: float, seed: int) -> None:
        self.record = Record()
        self._folder, self._seconds, self._seed = folder, seconds, seed

    @contextmanager
    def run(self) -> Iterator[Parts]:
        """Run everything; in the context the loads have ended, the tables have all of the log, and the servers still answer."""
        record = self.record
        with ExitStack() as stack:
            broker = stack.enter_context(PrivateBroker(offsets_partitions=OFFSETS_PARTITIONS))
            create_topic(broker.bootstrap, TOPIC, PARTITIONS)
            disk = stack.enter_context(small_disk(self._folder / "disk", _DISK_MEBIBYTES))
            # its log of events is beside the folder, on a disk with space
            other = stack.enter_context(small_disk(self._folder / "log", _DISK_MEBIBYTES))
            tables = disk.folder / CLUSTER
            coordinator = stack.enter_context(
                PrivateCoordinator(other.folder, topics={TOPIC: PARTITIONS}, offsets_topic_num_partitions=OFFSETS_PARTITIONS)
            )
            with ExitStack() as loads:
                committers = loads.enter_context(Committers(broker.bootstrap, _GROUPS, TOPIC))
                others = loads.enter_context(Committers(coordinator.bootstrap, _COORDINATOR_GROUPS, TOPIC))
                record.nuisances["groups"] = loads.enter_context(hostile_groups(broker.bootstrap, TOPIC)).results
                committers.wait_for_more(_GROUPS)
                job = self._service(stack, "job", self._job(broker, tables))
                eventually(
                    "the job follows",
                    lambda: job.texts()[-5:],
                    lambda _: _has(job, "ready: following"),
                    patience_seconds=LIMIT_SECONDS,
                    pause_seconds=1.0,
                )
                webhooks = stack.enter_context(webhook_server())
                record.notifications = webhooks.bodies
                alerts = self._service(stack, "alerts", self._alerts(tables, webhooks.url))
                dashboard = Dashboard(f"{CLUSTER}={tables}")
                stack.callback(dashboard.close)
                dashboard.wait_until_ready()
                pids = {"job": lambda: job.pid, "alerts": lambda: alerts.pid, "dashboard": lambda: dashboard.process.pid}
                memory = loads.enter_context(MemoryWatch({**pids, "coordinator": lambda: coordinator.pid}, _LOOK_SECONDS))
                visitors = HostileVisitors(dashboard.url, CLUSTER, self._seed)
                loads.callback(visitors.close)
                visits = Nuisance("visitors", visitors.visit, _VISIT_SECONDS)
                record.nuisances["visitors"] = loads.enter_context(visits).results
                attack = Nuisance("bytes", hostile_bytes(coordinator.port, self._seed))
                record.nuisances["bytes"] = loads.enter_context(attack).results
                parts = Parts(broker, coordinator, tables, disk, other, committers, others)
                self._disturb(parts)
            outages = [(event.start, event.end) for event in record.events if event.kind == "broker"]
            record.growth, record.memory = memory.growth(outages), memory.courses(_PARTS_OF_A_LIFE)
            record.commits, record.coordinator_commits = committers.commits, others.commits
            self._await_all_read(parts)
            record.dashboard_lines = dashboard.errors().splitlines()
            record.coordinator_events = Counter(line["event"] for line in coordinator.log_lines())
            yield parts

    def _service(self, stack: ExitStack, name: str, command: list[str]) -> Service:
        service = Service(name, command)
        self.record.services[name] = service
        stack.callback(service.kill)
        return service

    def _job(self, broker: PrivateBroker, tables: Path) -> list[str]:
        path = self._folder / "job.toml"
        path.write_text(_CONFIGURATION)
        source = f"kafka://{broker.bootstrap}/__consumer_offsets"
        more = ["--trigger", "2s", "--maintain-every", "5m", "--conf", str(path)]
        return ["run", "--source", source, "--tables", str(tables), *more]

    def _alerts(self, tables: Path, url: str) -> list[str]:
        rules = self._folder / "alerts.toml"
        rules.write_text(_RULES.format(url=url))
        return ["alerts", "--tables", str(tables), "--rules", str(rules)]

    def _disturb(self, parts: Parts) -> None:
        """The disturbances, at their shares of the time: full disk, outage of the broker for a sixth, both disks full."""
        started = time.time()
        for share, kind, length in (
            (0.10, "disk", 0.02),
            (0.22, "broker", 1 / 6),
            (0.55, "disks", 0.02),
            (1.0, "", 0.0),
        ):
            _sleep_until(started + share * self._seconds)
            if kind:
                self._event(parts, kind, max(20.0, length * self._seconds))

    def _event(self, parts: Parts, kind: str, seconds: float) -> None:
        start = time.time()
        if kind == "broker":
            parts.broker.kill()
            time.sleep(seconds)
            parts.broker.start()
        else:
            disks = [parts.disk] if kind == "disk" else [parts.disk, parts.coordinator_disk]
            for each in disks:
                each.fill()
            time.sleep(seconds)
            for each in disks:
                each.free()
        self.record.events.append(Event(kind, start, time.time()))

    def _await_all_read(self, parts: Parts) -> None:
        """Wait until a batch has begun after the last commit, and stop the job."""
        job = self.record.services["job"]
        now = time.time()
        eventually(
            "a batch after the last commit",
            lambda: _newest_batch(parts.tables),
            lambda begun: begun is not None and begun > now + 5,
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=1.0,
        )
        assert job.stop() == 0, job.texts()[-10:]


def _newest_batch(tables: Path) -> float | None:
    found = Snapshot.open(str(tables)).query("SELECT max(started_at) AS begun FROM batches").to_pylist()
    begun = found[0]["begun"]
    return None if begun is None else float(begun.timestamp())


def _has(service: Service, text: str) -> bool:
    return any(text in line for line in service.texts())


def _sleep_until(at: float) -> None:
    threading.Event().wait(max(0.0, at - time.time()))
