"""The consumer group on the log's cluster that spreads the partitions of the log over the nodes.

The group says which node should own a partition; InitProducerId of the owner decides who may write it (`owned_partition`).
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.protocol.groups import Node
from coordinator_core.topic_log.group_requests import STABLE, GroupRequests
from coordinator_core.topic_log.node_names import client_id_of, node_of
from coordinator_core.topic_log.node_watch import NodeWatch, is_running

_POLL_SECONDS = 0.1
#: Between two descriptions of the group: while it rebalances, and otherwise.
_SEARCH_SECONDS, _LOOK_SECONDS = 0.1, 1.0
#: Heartbeats in the time of a session. Their answers report a rebalance, which waits for all nodes.
_HEARTBEATS_PER_SESSION = 24
_FIRST_DESCRIBE_SECONDS = 30.0
#: A revoked partition is given away after this time, even if its loop has not ended its last append.
_REVOKE_SECONDS = 15.0


class NodeGroupEvents(Protocol):
    """Receives changes, in the thread of the group."""

    def assigned(self, partitions: Collection[int]) -> None:
        """This node is to own the partitions."""

    def revoked(self, partitions: Collection[int]) -> "Future[None]":
        """This node is to own the partitions no more; the result is there when it does not write them any more."""

    def described(self, nodes: Sequence[Node], owners: Mapping[int, Node]) -> None:
        """The members of the group, and the partitions that the group has assigned to them."""

    def group_failed(self, reason: str) -> None:
        """A request of the group failed; it is repeated."""

    def node_ended(self, node: Node) -> None:
        """The process of another node has ended; it is removed from the group."""


def group_id_of(topic: str) -> str:
    """Return the id of the group of the nodes that share a topic."""
    return f"grouplake-{topic}"


def node_with_id(requests: GroupRequests, topic: str, node_id: int) -> Node | None:
    """Return the running node with this id among those that share the topic; None without one.

    Raises LogUnreachable if the group cannot be described for 30 s; brokers that have just started create their topic first.
    """
    group_id = group_id_of(topic)
    give_up = time.monotonic() + _FIRST_DESCRIBE_SECONDS
    while True:
        try:
            described = requests.describe(group_id)
            break
        except LogUnreachable:
            if time.monotonic() >= give_up:
                raise
        time.sleep(_SEARCH_SECONDS)
    nodes = (node_of(member.client_id) for member in described.members)
    # a node that was killed stays a member for a while
    return next((node for node in nodes if node is not None and node.node_id == node_id and is_running(node)), None)


class NodeGroup:
    """The membership of one node in the group `grouplake-TOPIC`, from `start` to `stop`.

    `client_options` are those of the log, `requests` go to its cluster, and `events` receives changes.
    """

    def __init__(
        self,
        client_options: Mapping[str, Any],
        topic: str,
        node: Node,
        session_timeout_ms: int,
        events: NodeGroupEvents,
        requests: GroupRequests,
    ) -> None:
        self.group_id = group_id_of(topic)
        self._client_options = dict(client_options)
        self._topic = topic
        self._node = node
        self._session_timeout_ms = session_timeout_ms
        self._events = events
        self._requests = requests
        self._member_ids: Mapping[Node, str] = {}
        self._stopping = threading.Event()
        #: The group has changed: what the newest description says is out of date.
        self._changed = threading.Event()
        self._member = threading.Thread(target=self._run, args=(self._follow,), name="node group", daemon=True)
        # apart from the member: a description that a broker does not answer would hold up the rebalances of all nodes
        self._onlooker = threading.Thread(target=self._run, args=(self._look_on,), name="other nodes", daemon=True)

    def start(self) -> None:
        """Join the group."""
        self._member.start()
        self._onlooker.start()

    def stop(self) -> None:
        """Leave the group, after this node has given up its partitions. Blocks until then."""
        self._stopping.set()
        self._changed.set()
        self._member.join()

    def _run(self, work: Callable[[], None]) -> None:
        """Do the work of a thread until `stop`, again after an error."""
        while not self._stopping.is_set():
            try:
                work()
            except Exception as error:
                # a node that has silently left the group would keep partitions that others own
                self._report(f"{type(error).__name__}: {error}; the node joins again")
                self._stopping.wait(_LOOK_SECONDS)

    def _report(self, reason: str) -> None:
        # `stop` does not wait for the requests about the other nodes, and its caller may end the event loop
        if not self._stopping.is_set():
            self._events.group_failed(reason)

    def _follow(self) -> None:
        """Be a member of the group until `stop`; the end gives up all partitions."""
        consumer = Consumer(
            {
                **self._client_options,
                "client.id": client_id_of(self._node),
                "group.id": self.group_id,
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": self._session_timeout_ms,
                "heartbeat.interval.ms": max(self._session_timeout_ms // _HEARTBEATS_PER_SESSION, 1),
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
            }
        )
        consumer.subscribe([self._topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke)
        try:
            while not self._stopping.is_set():
                message = consumer.poll(_POLL_SECONDS)
                error = None if message is None else message.error()
                if error is not None:
                    self._events.group_failed(error.str())
        finally:
            consumer.close()

    # ---- callbacks of `poll` and `close`

    def _assign(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        at_end = [TopicPartition(self._topic, each.partition, OFFSET_END) for each in partitions]
        consumer.incremental_assign(at_end)
        # the owner writes the partition; it reads it once, before that, on its own
        consumer.pause(at_end)
        numbers = [each.partition for each in partitions]
        if numbers:
            self._events.assigned(numbers)
        self._changed.set()

    def _revoke(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        numbers = [each.partition for each in partitions]
        if numbers:
            try:
                self._events.revoked(numbers).result(_REVOKE_SECONDS)
            except TimeoutError:
                self._events.group_failed(f"partitions {sorted(numbers)} are given away before their last append has ended")
        consumer.incremental_unassign(list(partitions))

    # ---- the other nodes

    def _look_on(self) -> None:
        """Describe the group and watch its nodes until `stop`."""
        watch = NodeWatch(self._ended)
        try:
            while not self._stopping.is_set():
                pause_seconds = self._look()
                watch.watch(self._member_ids.keys() - {self._node})
                self._changed.wait(pause_seconds)
                self._changed.clear()
        finally:
            watch.close()

    def _look(self) -> float:
        """Describe the group; return the seconds until the next look."""
        try:
            described = self._requests.describe(self.group_id)
        except LogError as error:
            self._report(str(error))
            return _LOOK_SECONDS
        if not described.members or self._stopping.is_set():
            return _SEARCH_SECONDS
        member_ids: dict[Node, str] = {}
        owners: dict[int, Node] = {}
        for member in described.members:
            node = node_of(member.client_id)
            if node is None:
                continue
            member_ids[node] = member.member_id
            owners.update(dict.fromkeys(member.partitions, node))
        # also while the group rebalances: a node that has ended since it joined would hold it up for the time of its session
        self._member_ids = member_ids
        if described.state != STABLE:
            return _SEARCH_SECONDS
        self._events.described(tuple(member_ids), owners)
        return _LOOK_SECONDS

    def _ended(self, node: Node) -> None:
        """Remove a node that has ended, in the thread of the watch; the session timeout would do it later."""
        if self._stopping.is_set():
            return
        self._events.node_ended(node)
        member_id = self._member_ids.get(node)
        if member_id is None:
            return
        try:
            self._requests.remove_member(self.group_id, member_id)
            self._changed.set()
        except LogError as error:
            self._report(str(error))
