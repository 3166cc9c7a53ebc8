"""Fail-over: from `kill -9` of a coordinator to the first answered commit of a group that it owned.

Three nodes with their log on three brokers, and afterwards the coordinators of these brokers. Timeouts are the defaults of both.
The same members commit five times a second; one process after the other is killed, and started again.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from committing_members import Commits, FranzCrowd, JavaCommitter, LibrdkafkaMember, wait_for_progress
from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient, NewTopic
from eventually import eventually
from java_clients import java_clients
from live_kafka import QUIET
from patience import PATIENCE_SECONDS
from private_cluster import PrivateCluster

from benchmarks.brokers import VERSION
from benchmarks.report import print_machine, print_table
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator

_TOPIC, _PARTITIONS = "orders", 6
_LOG_TOPIC, _LOG_PARTITIONS = "grouplake_offsets", 8
_OFFSETS_TOPIC = "__consumer_offsets"
_NUMBERS = (1, 2, 3)
_HOST = "127.0.0.1"
_COMMIT_SECONDS = 0.2
#: Kafka's defaults, which the private cluster shortens.
_SESSION_MS, _HEARTBEAT_MS, _REPLICA_LAG_MS, _FETCH_WAIT_MS = "9000", "2000", "30000", "500"
#: Between the return of all coordinators and the next kill.
_SETTLE_SECONDS = 10.0
#: An answer that was on the way at the kill.
_ON_THE_WAY = 0.05


@dataclass(frozen=True, slots=True)
class _Library:
    """A library, its groups, and the members of each."""

    name: str
    groups: tuple[str, ...]
    members: int


@dataclass(frozen=True, slots=True)
class _Coordinators:
    """Processes with the numbers 1 to 3, which are the ids that clients know."""

    name: str
    bootstrap: str
    kill: Callable[[int], None]
    start: Callable[[int], None]


def main(arguments: list[str] | None = None) -> None:
    parsing = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parsing.add_argument("--kills", type=int, default=6, help="kills of nodes, and of brokers (default 6)")
    parsing.add_argument("--groups", type=int, default=10, help="groups of librdkafka and of franz-go (default 10)")
    options = parsing.parse_args(arguments)
    print_machine("confluent-kafka")
    libraries = _libraries(options.groups)
    rows = []
    with tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch, _cluster() as cluster:
        for start in (_nodes, _brokers):
            with start(cluster, Path(scratch)) as coordinators:
                rows += _rows(coordinators, libraries, options.kills, Path(scratch))
    print_table(["coordinator", "library", "groups of killed coordinators", "median, s", "longest, s"], rows)


def _libraries(groups: int) -> list[_Library]:
    shares = {"librdkafka": (groups, 2), "java": (max(groups // 3, 1), 1), "franz": (groups, 3)}
    return [_Library(name, tuple(f"{name}-{number}" for number in range(count)), size) for name, (count, size) in shares.items()]


# ---- the coordinators


def _cluster() -> PrivateCluster:
    own = {"broker.heartbeat.interval.ms": _HEARTBEAT_MS, "replica.lag.time.max.ms": _REPLICA_LAG_MS}
    own |= {"replica.fetch.wait.max.ms": _FETCH_WAIT_MS, "min.insync.replicas": "2", "transaction.state.log.min.isr": "2"}
    count = len(_NUMBERS)
    return PrivateCluster(count, VERSION, offsets_partitions=_LOG_PARTITIONS, properties=own, session_ms=_SESSION_MS)


@contextmanager
def _nodes(cluster: PrivateCluster, scratch: Path) -> Iterator[_Coordinators]:
    with ExitStack() as running:
        ports = {number: PortReservation() for number in _NUMBERS}
        nodes = {
            number: PrivateCoordinator(
                scratch / f"node-{number}",
                topics={_TOPIC: _PARTITIONS},
                listen=f"{_HOST}:{reserved.port}",
                log=f"kafka://{cluster.bootstrap}/{_LOG_TOPIC}",
                node_id=number,
                offsets_topic_num_partitions=_LOG_PARTITIONS,
            )
            for number, reserved in ports.items()
        }
        for number, node in nodes.items():
            running.callback(ports[number].release)
            running.callback(node.kill)
            node.start()
        bootstrap = ",".join(node.bootstrap for node in nodes.values())
        yield _Coordinators("ours", bootstrap, lambda number: nodes[number].kill(), lambda number: nodes[number].start())


@contextmanager
def _brokers(cluster: PrivateCluster, scratch: Path) -> Iterator[_Coordinators]:  # noqa: ARG001 - as `_nodes`
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for made in admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, len(_NUMBERS))]).values():
        made.result(PATIENCE_SECONDS)

    def start(number: int) -> None:
        cluster.brokers[number - 1].start()
        _await_replicas(admin)
        # otherwise brokers do it every five minutes
        admin.elect_leaders(ElectionType.PREFERRED).result(PATIENCE_SECONDS)

    yield _Coordinators(f"Kafka {VERSION}", cluster.bootstrap, lambda number: cluster.brokers[number - 1].kill(), start)


def _await_replicas(admin: AdminClient) -> None:
    """Wait until all replicas of the offsets are in sync."""
    eventually(
        "all replicas are in sync",
        lambda: [len(each.isrs) for each in admin.list_topics(_OFFSETS_TOPIC).topics[_OFFSETS_TOPIC].partitions.values()],
        lambda replicas: set(replicas) == {len(_NUMBERS)},
        pause_seconds=0.25,
    )


# ---- kills


def _rows(coordinators: _Coordinators, libraries: Sequence[_Library], kills: int, scratch: Path) -> list[tuple[object, ...]]:
    commits = Commits()
    groups = [group for library in libraries for group in library.groups]
    found: dict[str, list[float]] = {group: [] for group in groups}
    with _members(coordinators, libraries, commits, scratch):
        wait_for_progress(commits, groups)
        for kill in range(kills):
            number = _NUMBERS[kill % len(_NUMBERS)]
            owned = _settled(coordinators.bootstrap, commits, groups, number)
            at = time.time()
            coordinators.kill(number)
            for group, first in _first_answers(commits, owned, at).items():
                found[group].append(first - at)
            coordinators.start(number)
    rows: list[tuple[object, ...]] = []
    for library in libraries:
        times = [each for group in library.groups for each in found[group]]
        shown = (f"{median(times):.1f}", f"{max(times):.1f}") if times else ("", "")
        rows.append((coordinators.name, library.name, len(times), *shown))
    return rows


@contextmanager
def _members(coordinators: _Coordinators, libraries: Sequence[_Library], commits: Commits, scratch: Path) -> Iterator[None]:
    at = coordinators.bootstrap
    with ExitStack() as running:
        java = running.enter_context(java_clients(VERSION))
        for library in libraries:
            if library.name == "franz":
                log = scratch / "franz.log"
                crowd = FranzCrowd(commits, at, _TOPIC, library.groups, library.members, _COMMIT_SECONDS, log)
                running.callback(crowd.kill)
                continue
            for group in library.groups:
                for number in range(library.members):
                    name = f"{group}-{number}"
                    member: JavaCommitter | LibrdkafkaMember
                    if library.name == "java":
                        member = JavaCommitter(commits, java, at, _TOPIC, group, name, _COMMIT_SECONDS)
                    else:
                        member = LibrdkafkaMember(commits, at, _TOPIC, group, name, _COMMIT_SECONDS, "range")
                    running.callback(member.kill)
        yield


def _settled(bootstrap: str, commits: Commits, groups: Sequence[str], number: int) -> list[str]:
    """Wait until all groups commit and each process coordinates some; return the groups of the one with this number."""
    eventually(
        "each process coordinates groups",
        lambda: set(_coordinators(bootstrap, groups).values()),
        lambda ids: ids == set(_NUMBERS),
    )
    time.sleep(_SETTLE_SECONDS)
    _first_answers(commits, groups, time.time())
    return [group for group, owner in _coordinators(bootstrap, groups).items() if owner == number]


def _coordinators(bootstrap: str, groups: Sequence[str]) -> dict[str, int]:
    """Group → id of its coordinator, of groups that can be described now."""
    # a new client each time: an old one keeps asking the coordinator that it has found once
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    described = admin.describe_consumer_groups(list(groups), request_timeout=PATIENCE_SECONDS)
    return {group: each.result().coordinator.id for group, each in described.items() if each.exception(PATIENCE_SECONDS) is None}


def _first_answers(commits: Commits, groups: Sequence[str], since: float) -> Mapping[str, float]:
    """Wait until a commit of each group is answered after `since`; return the times of the first ones."""
    first: dict[str, float] = {}
    looked = 0

    def missing() -> list[str]:
        nonlocal looked
        end = commits.count()
        for each in commits.acknowledged[looked:end]:
            if each.at > since + _ON_THE_WAY:
                first[each.group] = min(first.get(each.group, each.at), each.at)
        looked = end
        return sorted(set(groups) - first.keys())

    eventually("a commit of each group is answered", missing, lambda left: not left, pause_seconds=0.1)
    return {group: first[group] for group in groups}


if __name__ == "__main__":
    main()
