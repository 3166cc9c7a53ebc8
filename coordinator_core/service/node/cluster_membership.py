"""This node among the nodes that share a log: it takes over the partitions that it is assigned, and knows the other owners."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.group_coordinator.result import CoordinatorResult
from coordinator_core.protocol.groups import Node
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.runtime.events import ShardCalled
from coordinator_core.service.runtime.observer import Observer


class GroupOfNodes(Protocol):
    """The group that assigns partitions to nodes; `topic_log` has one on the brokers of the log."""

    def start(self) -> None:
        """Join."""

    def stop(self) -> None:
        """Leave; blocks until the partitions are given up."""


class ClusterMembership:
    """Implements `Membership`, and the events of the group in its thread. `start` and `stop` run in the event loop.

    `new_group` makes the group that reports to this object. `release` ends the writes of a partition; it blocks.
    """

    def __init__(
        self,
        own: Node,
        groups: GroupCoordinatorService,
        observer: Observer,
        new_group: Callable[["ClusterMembership"], GroupOfNodes],
        release: Callable[[int], None],
    ) -> None:
        self.own = own
        self._release = release
        self._groups = groups
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        self._nodes: tuple[Node, ...] = (own,)
        self._owners: Mapping[int, Node] = {}
        self._owned: set[int] = set()
        #: Partitions that the newest description gives to this node, and that it has not loaded.
        self._unloaded: frozenset[int] = frozenset()
        self._group = new_group(self)

    def start(self) -> None:
        """Join the nodes."""
        self._group.start()

    async def stop(self) -> None:
        """Give up the partitions of this node, and leave the nodes."""
        await asyncio.to_thread(self._group.stop)

    # ---- `Nodes`

    def all(self) -> tuple[Node, ...]:
        """All nodes, by node id."""
        return self._nodes

    def owner(self, partition: int) -> Node | None:
        """Return the owner: this node for its own partitions, for others the one in the newest description of the group."""
        if partition in self._owned:
            return self.own
        owner = self._owners.get(partition)
        return None if owner == self.own else owner

    # ---- events of the group

    def assigned(self, partitions: Collection[int]) -> None:
        """Load the partitions."""
        # a coroutine as the other: they begin in the order of the events
        asyncio.run_coroutine_threadsafe(self._assigned(frozenset(partitions)), self._loop)

    def revoked(self, partitions: Collection[int]) -> "Future[None]":
        """Unload the partitions."""
        return asyncio.run_coroutine_threadsafe(self._revoked(frozenset(partitions)), self._loop)

    def described(self, nodes: Sequence[Node], owners: Mapping[int, Node]) -> None:
        """Take over the owners."""
        self._loop.call_soon_threadsafe(self._described, tuple(sorted({*nodes, self.own})), owners)

    def group_failed(self, reason: str) -> None:
        """Report the failure."""
        self._loop.call_soon_threadsafe(self._observer.node_group_failed, reason)

    def node_ended(self, node: Node) -> None:
        """Report the end, and name the node to clients no more."""
        self._loop.call_soon_threadsafe(self._node_ended, node)

    # ---- the same in the event loop

    async def _assigned(self, partitions: frozenset[int]) -> None:
        self._owned |= partitions
        self._observer.partitions_assigned(sorted(partitions))
        for partition in partitions:
            self._groups.elect(partition, None)

    async def _revoked(self, partitions: frozenset[int]) -> None:
        self._owned -= partitions
        self._observer.partitions_revoked(sorted(partitions))
        unloaded = []
        for partition in partitions:
            self._groups.resign(partition, None)
            done: asyncio.Future[None] = self._loop.create_future()
            # behind the resignation, which waits for the append under way
            self._groups.loops[partition].submit(ShardCalled("resigned", partial(_settle, done)))
            unloaded.append(done)
        await asyncio.gather(*unloaded)
        given_up = partitions - self._owned
        await asyncio.gather(*(asyncio.to_thread(self._release, partition) for partition in given_up))

    def _node_ended(self, node: Node) -> None:
        self._observer.node_ended(f"node {node.node_id} at {node.host}:{node.port}")
        # clients give up their membership when the address that they are sent to refuses them
        self._nodes = tuple(each for each in self._nodes if each != node)
        self._owners = {partition: owner for partition, owner in self._owners.items() if owner != node}

    def _described(self, nodes: tuple[Node, ...], owners: Mapping[int, Node]) -> None:
        """Take over the owners, and load what two descriptions in a row give to this node although it was fenced.

        A node that was away may have fenced the owner with a late InitProducerId. The brokers end a long transaction
        and forget an idle id. The group sees none of that, and does not assign the partition again.
        """
        self._nodes, self._owners = nodes, owners
        loops = self._groups.loops
        unloaded = frozenset(
            number
            for number in self._owned
            if owners.get(number) == self.own and loops[number].status == ShardStatus.UNLOADED.value
        )
        for number in unloaded & self._unloaded:
            self._groups.elect(number, None)
        self._unloaded = unloaded


def _settle(done: "asyncio.Future[None]", _now_ms: int) -> CoordinatorResult:
    if not done.done():
        done.set_result(None)
    return CoordinatorResult()
