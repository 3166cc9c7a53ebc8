"""The group of the nodes on a broker: partitions move although a request hangs, or a node has ended while it joined."""

import socket
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from uuid import uuid4

import pytest
from eventually import equal_to, eventually
from live_kafka import QUIET, create_topic
from patience import PATIENCE_SECONDS
from protocol_member import ProtocolMember

from coordinator_core.codec import encode_subscription
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolSubscription
from coordinator_core.protocol.groups import Node
from coordinator_core.topic_log.group_requests import DescribedGroup, GroupRequests
from coordinator_core.topic_log.node_group import NodeGroup, group_id_of
from coordinator_core.topic_log.node_names import client_id_of
from pipelines.examples.private.kafka.broker import PrivateBroker

pytestmark = pytest.mark.broker

_SESSION_MS = 30_000
#: Of a member that has ended: longer than the patience of this test.
_LONG_MS = 1_800_000


class Owned:
    """Receives changes of the group."""

    def __init__(self) -> None:
        self.partitions: set[int] = set()
        self.nodes: Sequence[Node] = ()

    def assigned(self, partitions: Collection[int]) -> None:
        self.partitions |= set(partitions)

    def revoked(self, partitions: Collection[int]) -> "Future[None]":
        self.partitions -= set(partitions)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def described(self, nodes: Sequence[Node], owners: Mapping[int, Node]) -> None:  # noqa: ARG002 - of `NodeGroupEvents`
        self.nodes = nodes

    def group_failed(self, reason: str) -> None:
        """Do nothing."""

    def node_ended(self, node: Node) -> None:
        """Do nothing."""


class CutOff(GroupRequests):
    """Requests that are not answered while `is_cut`."""

    def __init__(self, servers: Sequence[str]) -> None:
        super().__init__(servers, {})
        self.is_cut, self.healed = False, threading.Event()

    def describe(self, group_id: str) -> DescribedGroup:
        if self.is_cut:
            self.healed.wait()
        return super().describe(group_id)


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """A broker of this file."""
    with PrivateBroker() as running:
        yield running


@contextmanager
def member(broker: PrivateBroker, topic: str, number: int, owned: Owned, requests: GroupRequests) -> Iterator[None]:
    options = {"bootstrap.servers": broker.bootstrap, **QUIET}
    group = NodeGroup(options, topic, Node(number, "127.0.0.1", number), _SESSION_MS, owned, requests)
    group.start()
    yield
    group.stop()


def test_a_node_whose_requests_hang_gives_partitions_to_another(broker: PrivateBroker) -> None:
    topic = f"log-{uuid4().hex[:8]}"
    create_topic(broker.bootstrap, topic, 2)
    first, second, requests = Owned(), Owned(), CutOff([broker.bootstrap])
    with member(broker, topic, 1, first, requests):
        eventually("the first node knows itself", lambda: len(first.nodes), equal_to(1))
        assert first.partitions == {0, 1}
        requests.is_cut = True
        with member(broker, topic, 2, second, GroupRequests([broker.bootstrap], {})):
            eventually("each has one partition", lambda: (len(first.partitions), len(second.partitions)), equal_to((1, 1)))
            requests.healed.set()
            eventually("the first node knows both", lambda: len(first.nodes), equal_to(2))


def test_a_node_that_ended_while_it_joined_is_removed(broker: PrivateBroker) -> None:
    """The group is never stable with it; its session would end after minutes."""
    topic = f"log-{uuid4().hex[:8]}"
    create_topic(broker.bootstrap, topic, 2)
    owned = Owned()
    with (
        member(broker, topic, 1, owned, GroupRequests([broker.bootstrap], {})),
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        eventually("the node owns all partitions", lambda: owned.partitions, equal_to({0, 1}))
        subscription = encode_subscription(ConsumerProtocolSubscription(topics=(topic,)), 1)
        name = client_id_of(Node(2, *listener.getsockname()))
        with ProtocolMember(
            broker.bootstrap,
            group_id_of(topic),
            name,
            {"cooperative-sticky": subscription},
            session_ms=_LONG_MS,
            rebalance_ms=_LONG_MS,
        ) as ended:
            ended.join()
            eventually("the node gives a partition to it", lambda: len(owned.partitions), equal_to(1))
            listener.settimeout(PATIENCE_SECONDS)
            listener.accept()[0].close()
            listener.close()
            eventually("the node owns all partitions again", lambda: owned.partitions, equal_to({0, 1}))
