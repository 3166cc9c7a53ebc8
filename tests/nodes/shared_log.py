"""Three nodes that share a log topic on three brokers; between each node and each broker, a link that can be cut."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from confluent_kafka.admin import AdminClient
from cut_connections import Links
from eventually import eventually
from live_kafka import QUIET
from private_cluster import PrivateCluster, linked_listeners

from coordinator_core.log.errors import LogError
from coordinator_core.log.partitioner import partition_for
from coordinator_core.topic_log.group_requests import GroupRequests
from coordinator_core.topic_log.node_group import group_id_of
from coordinator_core.topic_log.node_names import node_of
from pipelines.examples.private.kafka.distribution import PrivateKafkaError
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator, PrivateCoordinatorError

COUNT = 3
LOG_TOPIC, LOG_PARTITIONS = "grouplake_offsets", 8
TOPIC, PARTITIONS = "orders", 20
_HOST = "127.0.0.1"
_NUMBERS = range(1, COUNT + 1)
#: Errors of a node's log that a fault never explains.
_BUGS = ("unexpected error", "partition failed")


class SharedLog:
    """The running processes. Nodes and brokers are numbered from 1."""

    def __init__(self, cluster: PrivateCluster, links: Links, ports: Mapping[tuple[int, int], int], folder: Path) -> None:
        self.cluster = cluster
        self.links = links
        self._ports = dict(ports)
        self._reserved = {number: PortReservation() for number in _NUMBERS}
        self.nodes = {number: self._node(folder, number) for number in _NUMBERS}
        #: Starts that failed, with the reason, as while the brokers are away or a machine is busy.
        self.failed_starts: list[str] = []
        #: Nodes that ended without a fault, with the last line of their logs.
        self.ended: list[str] = []

    @property
    def bootstrap(self) -> str:
        """Addresses of all nodes, which stay the same."""
        return ",".join(f"{_HOST}:{self._reserved[number].port}" for number in _NUMBERS)

    @property
    def address(self) -> str:
        """The log, for readers that are not cut off."""
        return f"kafka://{self.cluster.bootstrap}/{LOG_TOPIC}"

    def start_node(self, number: int) -> None:
        """Start a node, again until it starts, as a service manager does."""

        def started() -> str:
            try:
                self.nodes[number].start()
            except PrivateCoordinatorError as error:
                self.failed_starts.append(str(error)[-300:])
                time.sleep(1)
                return f"{len(self.failed_starts)} failed starts"
            return ""

        eventually(f"node {number} starts", started, lambda reason: not reason)

    def start_broker(self, number: int) -> None:
        """Start a broker, again until it starts."""

        def started() -> str:
            try:
                self.cluster.brokers[number - 1].start()
            except PrivateKafkaError as error:
                self.cluster.brokers[number - 1].kill()
                self.failed_starts.append(str(error)[:300])
                return f"{len(self.failed_starts)} failed starts"
            return ""

        eventually(f"broker {number} starts", started, lambda reason: not reason)

    def start_ended_nodes(self) -> None:
        """Start nodes that have ended without a fault, as a service manager does."""
        for number, node in self.nodes.items():
            code = node.exit_code
            if code is not None:
                self.ended.append(f"node {number}, exit code {code}: {node.log.read_text().splitlines()[-1][-300:]}")
                node.kill()
                self.start_node(number)

    def links_of(self, node: int, brokers: Sequence[int]) -> list[int]:
        """Listening ports of the links between a node and brokers."""
        return [self._ports[node, broker] for broker in brokers]

    def groups_of(self, node: int, groups: Sequence[str]) -> list[str]:
        """The groups whose partitions a node owns, as the group of the nodes has it; none if it cannot be described now."""
        with suppress(LogError):
            described = GroupRequests(tuple(self.cluster.bootstrap.split(",")), {}).describe(group_id_of(LOG_TOPIC))
            for member in described.members:
                found = node_of(member.client_id)
                if found is not None and found.node_id == node:
                    return [group for group in groups if partition_for(group, LOG_PARTITIONS) in member.partitions]
        return []

    def bugs(self) -> list[str]:
        """Lines in the logs of the nodes that no fault explains."""
        return [f"node {number}: {line}" for number in _NUMBERS for bug in _BUGS for line in self.nodes[number].events(bug)]

    def wait_until_served(self) -> None:
        """Wait until all partitions of the log are active, some on each node, and all replicas of the topic are in sync."""
        eventually(
            "the nodes serve all partitions",
            lambda: [self.nodes[number]._active() for number in _NUMBERS],
            # a node that has just started takes partitions from the others
            lambda active: sum(active) == LOG_PARTITIONS and all(active),
            pause_seconds=0.25,
        )
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, **QUIET})
        eventually(
            "all replicas are in sync",
            lambda: sum(len(each.isrs) for each in admin.list_topics(LOG_TOPIC).topics[LOG_TOPIC].partitions.values()),
            lambda replicas: replicas == COUNT * LOG_PARTITIONS,
            pause_seconds=0.25,
        )

    def close(self) -> None:
        for number in _NUMBERS:
            self.nodes[number].kill()
            self._reserved[number].release()

    def _node(self, folder: Path, number: int) -> PrivateCoordinator:
        servers = ",".join(f"{_HOST}:{self._ports[number, broker]}" for broker in _NUMBERS)
        return PrivateCoordinator(
            folder / f"node-{number}",
            topics={TOPIC: PARTITIONS},
            listen=f"{_HOST}:{self._reserved[number].port}",
            log=f"kafka://{servers}/{LOG_TOPIC}",
            node_id=number,
            offsets_topic_num_partitions=LOG_PARTITIONS,
            # no broker cleans the topic during a run: each acknowledged commit can be looked up
            offsets_topic_segment_bytes=1_073_741_824,
            group_initial_rebalance_delay_ms=0,
        )


@contextmanager
def shared_log(folder: Path) -> Iterator[SharedLog]:
    """The processes, started and serving."""
    reserved = {(node, broker): (PortReservation(), PortReservation()) for node in _NUMBERS for broker in _NUMBERS}
    cluster = PrivateCluster(
        COUNT,
        offsets_partitions=4,
        properties={"min.insync.replicas": "2", "transaction.state.log.min.isr": "2"},
        own_properties=[
            linked_listeners({node: (reserved[node, broker][0].port, reserved[node, broker][1].port) for node in _NUMBERS})
            for broker in _NUMBERS
        ],
    )
    with ExitStack() as stack:
        stack.enter_context(cluster)
        links = stack.enter_context(Links((link.port, server.port) for link, server in reserved.values()))
        found = SharedLog(cluster, links, {at: link.port for at, (link, _) in reserved.items()}, folder)
        stack.callback(found.close)
        for number in _NUMBERS:
            found.start_node(number)
        found.wait_until_served()
        yield found
