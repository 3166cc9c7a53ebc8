"""This node among the nodes of one machine, each of which owns a fixed share of the log in their folder."""

from collections.abc import Sequence

from coordinator_core.protocol.groups import Node


def share(position: int, nodes: int, partitions: int) -> range:
    """Return the log partitions of the node at this position among `nodes`."""
    return range(position, partitions, nodes)


class FixedShares:
    """Implements `Membership`; `nodes` are all nodes in the order of their shares."""

    def __init__(self, own: Node, nodes: Sequence[Node]) -> None:
        self.own = own
        self._nodes = tuple(nodes)

    def all(self) -> tuple[Node, ...]:
        """All nodes, also those that are being started again."""
        return self._nodes

    def owner(self, partition: int) -> Node | None:
        """Return the owner, which is the same for ever (`share`)."""
        return self._nodes[partition % len(self._nodes)]

    def start(self) -> None:
        """Do nothing: no node waits for another one."""

    async def stop(self) -> None:
        """Do nothing: a share is never given up."""
