"""FindCoordinator: the node that leads the partition of a group (`partitionFor`)."""

from typing import Protocol

from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    Node,
)

#: `Node.noNode()`.
NO_NODE = Node(-1, "", -1)


class Topology(Protocol):
    """Partitions of the coordinators' topics, and their leaders."""

    def partitions(self, kind: CoordinatorType) -> int | None:
        """Returns the number of partitions of the topic of these coordinators; None while the topic does not exist."""

    def leader(self, kind: CoordinatorType, partition: int) -> Node | None:
        """Returns the leader of a partition; None while the partition has none."""


def find_coordinators(topology: Topology, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Finds the coordinator of each key; COORDINATOR_NOT_AVAILABLE while a key has none.

    INVALID_REQUEST for the key types that this node does not serve, as from brokers without share groups.
    """
    kind = request.key_type
    if kind is None or kind is CoordinatorType.SHARE:
        return FindCoordinatorResponse(tuple(FoundCoordinator(key, ErrorCode.INVALID_REQUEST, NO_NODE) for key in request.keys))
    return FindCoordinatorResponse(tuple(_find(topology, kind, key) for key in request.keys))


def _find(topology: Topology, kind: CoordinatorType, key: str) -> FoundCoordinator:
    count = topology.partitions(kind)
    node = None if count is None else topology.leader(kind, partition_for(key, count))
    if node is None:
        return FoundCoordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_NODE)
    return FoundCoordinator(key, ErrorCode.NONE, node)
