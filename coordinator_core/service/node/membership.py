"""Membership of this node among several ones, as the process uses it; `cluster_membership` implements it."""

from collections.abc import Callable
from typing import Protocol

from coordinator_core.protocol.groups import Node
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.topics.nodes import Nodes


class Membership(Nodes, Protocol):
    """The nodes that share a log, with this one among them from `start` to `stop`."""

    def start(self) -> None:
        """Join the nodes."""

    async def stop(self) -> None:
        """Give up the partitions of this node, and leave the nodes."""


#: Makes the membership of a node, for its service and its address for clients.
NewMembership = Callable[[GroupCoordinatorService, Node, Observer], Membership]
