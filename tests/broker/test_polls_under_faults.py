"""Polls of brokers that stop, whose coordinators move, and whose answers get lost: no invented deletion, no lost group.

POLL_FAULT_MINUTES is the length of each case, POLL_SOAK_SEED the seed of the events.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from eventually import eventually
from living_groups import LivingGroups
from lost_requests import LostRequests
from offsets_leaders import leaders, move_leaders, wait_for_replicas
from patience import PATIENCE_SECONDS
from polled_beside_log import PolledBesideLog
from private_cluster import PrivateCluster, linked_listeners

from coordinator_core.sources.kafka_connection import close_idle_connections
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.examples.private.kafka.ports import PortReservation

MINUTES = float(os.environ.get("POLL_FAULT_MINUTES", "2"))
SEED = int(os.environ.get("POLL_SOAK_SEED", "20261129"))

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(1_200 + 60 * MINUTES)]

BROKERS, TOPIC, PARTITIONS = 3, "orders", 6
#: Events between two faults.
EVENTS = 8
#: Era and group protocols by version.
ERAS = {"4.3.0": "4", "3.9.1": "3", "1.1.1": "1", "0.10.2.2": "0.10"}
CLASSIC = {"classic": "classic"}
PROTOCOLS = {"4.3.0": {**CLASSIC, "consumer": "consumer"}}
#: The state of share groups survives the end of a broker.
PROPERTIES = {"share.coordinator.state.topic.replication.factor": str(BROKERS), "offsets.retention.minutes": "100000"}


@contextmanager
def living_cluster(version: str, own: Sequence[Mapping[str, str]] = ()) -> Iterator[tuple[PrivateCluster, LivingGroups]]:
    """Three brokers with groups of every type that follows its coordinator."""
    with ExitStack() as stack:
        cluster = stack.enter_context(PrivateCluster(BROKERS, version, properties=PROPERTIES, own_properties=own))
        clients = stack.enter_context(Clients(cluster.bootstrap))
        stack.callback(close_idle_connections)
        clients.admin.create_topics([NewTopic(TOPIC, PARTITIONS, BROKERS)])[TOPIC].result(PATIENCE_SECONDS)
        living = LivingGroups(
            *(cluster.bootstrap, clients, (TOPIC, PARTITIONS), PROTOCOLS.get(version, CLASSIC), SEED),
            with_share_group=version in PROTOCOLS,
        )
        yield cluster, stack.enter_context(living)


def polled_during(both: PolledBesideLog, work: Callable[[], object]) -> int:
    """Poll until the work is done, and twice more. Returns the number of polls meanwhile."""
    before = both.count
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        while not running.done():
            both.poll()
        running.result()
    during = both.count - before
    for _ in range(2):
        both.poll()
    return during


def end_a_broker(
    both: PolledBesideLog, cluster: PrivateCluster, number: int, end: Callable[[PrivateBroker], None]
) -> Counter[str]:
    """A broker gets all groups, ends, and starts again. Returns the number of polls meanwhile."""
    others = [each for each in range(1, BROKERS + 1) if each != number]
    broker = cluster.brokers[number - 1]
    polls = Counter(moves=polled_during(both, lambda: move_leaders(cluster.bootstrap, [number, *others])))
    both.expect_equal()
    both.live(EVENTS)
    polls["ends"] += polled_during(both, lambda: end(broker))
    alive = ",".join(cluster.brokers[each - 1].bootstrap for each in others)
    eventually("the other brokers lead", lambda: set(leaders(alive)) <= set(others))
    both.live(EVENTS)
    both.expect_equal()
    polls["starts"] += polled_during(both, broker.start)
    wait_for_replicas(cluster.bootstrap, BROKERS)
    return polls


@pytest.mark.parametrize("version", ["3.9.1", "4.3.0"])
@pytest.mark.parametrize("end", [PrivateBroker.stop, PrivateBroker.kill], ids=["stopped", "killed"])
def test_no_group_is_lost_while_brokers_end_and_coordinators_move(
    end: Callable[[PrivateBroker], None], version: str, tmp_path: Path
) -> None:
    """Each broker in turn; groups live on with the other coordinators meanwhile."""
    with living_cluster(version) as (cluster, groups):
        both = PolledBesideLog(cluster.bootstrap, TOPIC, tmp_path, groups, era=ERAS[version])
        both.live(EVENTS)
        both.expect_equal()
        rounds, during, until = 0, Counter[str](), time.monotonic() + 60 * MINUTES
        while time.monotonic() < until:
            during += end_a_broker(both, cluster, 1 + rounds % BROKERS, end)
            rounds += 1
        both.expect_equal()
        print(
            f"Kafka {version}: {rounds} brokers ended, {both.count} polls, {dict(during)} during faults, "
            f"{both.incomplete} incomplete, {both.unanswered} unanswered, {dict(groups.events)}, {both.contents()}"
        )
        both.expect_true_histories()


@pytest.mark.parametrize(("percent", "is_seen"), [(1, False), (10, True)])
def test_no_group_is_lost_while_requests_time_out(percent: int, is_seen: bool, tmp_path: Path) -> None:
    """A proxy between the polls and the brokers loses requests. They are repeated, so that polls see the loss of many only."""
    version = "4.3.0"
    with ExitStack() as stack:
        reserved = [(PortReservation(), PortReservation()) for _ in range(BROKERS)]
        for port in (port for pair in reserved for port in pair):
            stack.callback(port.release)
        ports = [(link.port, server.port) for link, server in reserved]
        cluster, groups = stack.enter_context(living_cluster(version, [linked_listeners({1: pair}) for pair in ports]))
        proxy = stack.enter_context(LostRequests(ports, percent / 100, SEED))
        both = PolledBesideLog(
            *(cluster.bootstrap, TOPIC, tmp_path, groups),
            era=ERAS[version],
            polled_at=",".join(f"127.0.0.1:{link}" for link, _ in ports),
            options={"kafka": {"request_timeout_ms": "1000"}},
        )
        quiet_moments = both.agree_for(MINUTES, EVENTS)
        print(
            f"{percent} %: {proxy.lost} of {proxy.passed + proxy.lost} requests lost, {both.count} polls, {both.incomplete} "
            f"incomplete, {both.unanswered} unanswered, {quiet_moments} quiet moments, {dict(groups.events)}, {both.contents()}"
        )
        assert proxy.lost
        assert both.incomplete or not is_seen
        both.expect_true_histories()
