"""The nodes of the cluster, and the owners of the log's partitions among them."""

from typing import Protocol

from coordinator_core.protocol.groups import Node


class Nodes(Protocol):
    """What clients are told about the nodes; addresses are the advertised ones."""

    @property
    def own(self) -> Node:
        """This node."""

    def all(self) -> tuple[Node, ...]:
        """All nodes, by node id."""

    def owner(self, partition: int) -> Node | None:
        """The node that owns a partition of the log; None while no node does."""


class OneNode:
    """A node that owns all partitions."""

    def __init__(self, own: Node) -> None:
        self.own = own

    def all(self) -> tuple[Node, ...]:
        """This node."""
        return (self.own,)

    def owner(self, partition: int) -> Node | None:  # noqa: ARG002 - of `Nodes`
        """This node."""
        return self.own
