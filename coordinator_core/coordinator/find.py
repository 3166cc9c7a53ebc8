"""FindCoordinator: who answers for a group (`partitionFor`, and the leader of that partition)."""

from typing import Protocol

from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    Node,
)
from coordinator_core.log.partitioner import partition_for

#: `Node.noNode()`.
NO_NODE = Node(-1, "", -1)


class Topology(Protocol):
    """Who leads which partition of the coordinators' topics."""

    def partitions(self, kind: CoordinatorType) -> int | None:
        """How many partitions the topic of these coordinators has; None while there is no such topic."""

    def leader(self, kind: CoordinatorType, partition: int) -> Node | None:
        """The node that leads a partition; None while nobody does."""


def find_coordinators(topology: Topology, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """For each key its node, or COORDINATOR_NOT_AVAILABLE while there is none."""
    return FindCoordinatorResponse(tuple(_find(topology, request.key_type, key) for key in request.keys))


def _find(topology: Topology, kind: CoordinatorType, key: str) -> FoundCoordinator:
    count = topology.partitions(kind)
    node = None if count is None else topology.leader(kind, partition_for(key, count))
    if node is None:
        return FoundCoordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_NODE)
    return FoundCoordinator(key, ErrorCode.NONE, node)
