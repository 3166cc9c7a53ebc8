"""Sarama, franz-go and KafkaJS as members of the coordinator's groups, and of a real broker's, which validates the tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient
from eventually import eventually
from group_offsets import committed, group_state
from live_kafka import create_topic, produce
from member_programs import MemberProgram, go_member, kafkajs_member

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

# the first run downloads and builds the clients
pytestmark = [pytest.mark.broker, pytest.mark.long]

TOPIC, PARTITIONS = "orders", 4
SETTINGS: dict[str, Any] = {"offsets_topic_num_partitions": 4, "group_initial_rebalance_delay_ms": 0}


BROKER = pytest.param("broker", marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address that the clients connect to: a coordinator of an era, or "broker"."""
    if request.param == "broker":
        with PrivateBroker("4.1.1", offsets_partitions=4) as broker:
            create_topic(broker.bootstrap, TOPIC, PARTITIONS)
            # a client that finds its offset out of range may commit another
            produce(broker.bootstrap, TOPIC, [(number % PARTITIONS, None, b"value") for number in range(40 * PARTITIONS)])
            yield broker.bootstrap
        return
    log = tmp_path_factory.mktemp("coordinator") / "log"
    with PrivateCoordinator(log, topics={TOPIC: PARTITIONS}, era=request.param, **SETTINGS) as running:
        yield running.bootstrap
        # a request that the coordinator does not support
        assert [line["reason"] for line in running.events("connection ended")] == []


def settle(members: list[MemberProgram]) -> None:
    """Wait until the members together own every partition, each at least one."""

    def unless() -> str | None:
        return next((failure for member in members if (failure := member.failure())), None)

    def settled(owned: list[frozenset[int]]) -> bool:
        return all(owned) and sorted(partition for each in owned for partition in each) == list(range(PARTITIONS))

    eventually("the members own every partition once", lambda: [member.owned for member in members], settled, unless=unless)


def join_commit_and_leave(bootstrap: str, member: Callable[[str], MemberProgram], group: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    with ExitStack() as running:
        first = running.enter_context(member("first"))
        settle([first])
        first.commit(10)
        assert committed(admin, group) == {(TOPIC, partition): 10 + partition for partition in range(PARTITIONS)}

        second = running.enter_context(member("second"))
        settle([first, second])
        assert group_state(admin, group) == (ConsumerGroupState.STABLE, ["first", "second"])
        first.commit(20)
        second.commit(20)
        assert committed(admin, group) == {(TOPIC, partition): 20 + partition for partition in range(PARTITIONS)}

        first.close()
        settle([second])
        second.close()
        assert group_state(admin, group) == (ConsumerGroupState.EMPTY, [])


@pytest.mark.parametrize(
    ("bootstrap", "version"),
    [
        ("3", "0.10.2.0"),
        ("4", "2.1.0"),
        pytest.param("0.10", "0.10.2.0", marks=pytest.mark.slow),
        pytest.param("3", "3.6.0", marks=pytest.mark.slow),
        pytest.param("4", "3.6.0", marks=pytest.mark.slow),
        pytest.param("broker", "2.1.0", marks=pytest.mark.slow),
    ],
    indirect=["bootstrap"],
)
def test_sarama(bootstrap: str, version: str) -> None:
    """Sarama sends the versions of its configured Kafka release: for 0.10.2 Fetch v2, which brokers before 4.0 support."""
    group = f"sarama-{uuid4().hex[:8]}"

    def member(client_id: str) -> MemberProgram:
        return MemberProgram(go_member("sarama"), bootstrap, group, TOPIC, client_id, version)

    join_commit_and_leave(bootstrap, member, group)


@pytest.mark.parametrize("bootstrap", ["4", pytest.param("0.10", marks=pytest.mark.slow), BROKER], indirect=True)
def test_franz_go(bootstrap: str) -> None:
    """franz-go treats the version of a broker that does not list Produce as unknown."""
    group = f"franz-{uuid4().hex[:8]}"
    join_commit_and_leave(bootstrap, partial(MemberProgram, go_member("franz"), bootstrap, group, TOPIC), group)


@pytest.mark.parametrize("bootstrap", ["4", pytest.param("0.10", marks=pytest.mark.slow), BROKER], indirect=True)
def test_kafkajs(bootstrap: str) -> None:
    group = f"kafkajs-{uuid4().hex[:8]}"
    join_commit_and_leave(bootstrap, partial(MemberProgram, kafkajs_member(), bootstrap, group, TOPIC), group)
