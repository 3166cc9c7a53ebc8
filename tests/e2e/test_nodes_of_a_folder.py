"""`grouplake coordinator --nodes 2`: members of many groups, a node that is killed, and the ends of the processes."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from committing_members import Commits, FranzCrowd, LibrdkafkaMember
from confluent_kafka.admin import AdminClient
from eventually import equal_to, eventually
from group_offsets import committed
from live_kafka import QUIET
from patience import PATIENCE_SECONDS

from coordinator_core.log.partitioner import partition_for
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.long

PARTITIONS = 8
TOPIC, SIZE = "orders", 3
GROUPS = [f"group-{number}" for number in range(6)]
LIBRDKAFKA_GROUPS = ["billing", "invoices"]
#: Node 1 has the even partitions.
FIRST, SECOND = 1, 2


def node_of(group: str) -> int:
    return FIRST + partition_for(group, PARTITIONS) % 2


def two_nodes(folder: Path) -> PrivateCoordinator:
    return PrivateCoordinator(
        folder / "log",
        topics={TOPIC: SIZE},
        nodes=2,
        offsets_topic_num_partitions=PARTITIONS,
        group_initial_rebalance_delay_ms=0,
    )


@contextmanager
def members(commits: Commits, bootstrap: str, folder: Path) -> Iterator[None]:
    """Members of franz-go in half of the groups, and of librdkafka in the others; each commits several times a second."""
    running = [FranzCrowd(commits, bootstrap, TOPIC, GROUPS, SIZE, 0.2, folder / "franz.log")]
    started: list[FranzCrowd | LibrdkafkaMember] = [
        *running,
        *(
            LibrdkafkaMember(commits, bootstrap, TOPIC, group, f"{group}-{number}", 0.2, "range")
            for group in LIBRDKAFKA_GROUPS
            for number in range(2)
        ),
    ]
    try:
        yield
        for each in started:
            each.pause()
    finally:
        for each in started:
            each.kill()


def test_a_killed_node_is_started_again_and_loses_nothing(tmp_path: Path) -> None:
    assert {node_of(group) for group in GROUPS} == {node_of(group) for group in LIBRDKAFKA_GROUPS} == {FIRST, SECOND}
    coordinator, commits = two_nodes(tmp_path), Commits()
    with coordinator, members(commits, coordinator.bootstrap, tmp_path):
        everyone = {*GROUPS, *LIBRDKAFKA_GROUPS}
        eventually("every group commits", commits.groups, equal_to(everyone))
        killed = coordinator.node_pids[1]
        os.kill(killed, signal.SIGKILL)
        at = len(commits.acknowledged)

        def groups_since() -> set[str]:
            return {each.group for each in commits.acknowledged[at:]}

        eventually("every group commits again", groups_since, equal_to(everyone))
        coordinator.wait_until_loaded()
        pids = coordinator.node_pids
        assert killed not in pids
        (ended,) = coordinator.events("node ended")
        assert (ended["node"], ended["exit_code"]) == (SECOND, -signal.SIGKILL)
        metrics = coordinator.get("/metrics")[1].splitlines()
        assert 'grouplake_coordinator_node_starts_total{node="1"} 1.0' in metrics
        assert 'grouplake_coordinator_node_starts_total{node="2"} 2.0' in metrics
        assert 'grouplake_coordinator_partitions{node="2",status="active",topic="__consumer_offsets"} 4.0' in metrics
    # the members are paused: what they got acknowledged last is what is there
    with coordinator:
        admin = AdminClient({"bootstrap.servers": coordinator.bootstrap, **QUIET})
        last: dict[str, dict[tuple[str, int], int]] = {}
        for each in commits.acknowledged:
            offsets, place = last.setdefault(each.group, {}), (TOPIC, each.partition)
            offsets[place] = max(offsets.get(place, 0), each.offset)
        answered = {group: committed(admin, group) for group in last}
        lost = {
            (group, place): (offset, answered[group].get(place))
            for group, offsets in last.items()
            for place, offset in offsets.items()
            if answered[group].get(place, -1) < offset
        }
        assert not lost
        described = admin.list_topics(timeout=PATIENCE_SECONDS)
        assert list(described.brokers) == [FIRST, SECOND]
        coordinator.stop()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_nodes_end_with_their_supervisor(tmp_path: Path) -> None:
    coordinator = two_nodes(tmp_path)
    with coordinator:
        # the nodes, and a spare process
        pids = eventually("all processes run", lambda: children(coordinator.pid), lambda found: len(found) == 3)
        assert set(coordinator.node_pids) < set(pids)
        coordinator.kill()
        eventually("the nodes have ended", lambda: [pid for pid in pids if Path(f"/proc/{pid}").exists()], equal_to([]))
    with coordinator:
        # as a terminal does: to all processes
        for pid in children(coordinator.pid):
            os.kill(pid, signal.SIGINT)
        assert coordinator.end(signal.SIGINT) == 0
    stopped = [line["node"] for line in coordinator.events("stopped")]
    assert sorted(stopped) == [FIRST, SECOND]
    assert coordinator.events("node ended") == []
