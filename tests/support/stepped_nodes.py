"""Several stepped nodes with one log partition, their clock, and the brokers between them."""

from collections.abc import Collection
from typing import Any

from modelled_brokers import ModelledCoordinator, ModelledPartition
from modelled_clients import Fate, Network
from stepped_node import SteppedNode

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import Node
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit

GROUP = "simple"
PLACES = [TopicPartition("orders", number) for number in range(3)]
#: Between two turns of an event loop: longer than an append collects writes.
_ROUND_SECONDS = 0.004
#: Rounds of steps in a second, enough for a load and an append.
_ROUNDS_OF_A_SECOND = 12


class SteppedNodes:
    """`count` nodes. `batch_records` and `append_seconds` are those of their producers; `verifies` as in `ModelledPartition`."""

    def __init__(self, count: int, batch_records: int = 100, append_seconds: float = 3600.0, *, verifies: bool = True) -> None:
        self.seconds = 0.0
        self.coordinator = ModelledCoordinator(ModelledPartition(verifies))
        self.network = Network(self.coordinator)
        self._more = batch_records, append_seconds
        self.nodes = [self._new(Node(number, "host", 9092)) for number in range(count)]

    def _new(self, own: Node) -> SteppedNode:
        return SteppedNode(own, self.network, lambda: self.seconds, *self._more)

    def work(self, node: SteppedNode, rounds: int = _ROUNDS_OF_A_SECOND) -> None:
        """Let a node and the brokers work without failures; stalled calls stay where they are."""
        for _ in range(0 if node.is_frozen else rounds):
            self.seconds += _ROUND_SECONDS
            node.loop.turn()
            for call in node.waiting:
                if not call.is_stalled:
                    call.step(Fate.ANSWERED)
            self.coordinator.write_markers(0)

    def second(self, owner: SteppedNode) -> None:
        """Let a second pass: the group of the nodes is stable and described, and all nodes work."""
        self.seconds += 1.0
        for node in self.nodes:
            node.membership.described([each.own for each in self.nodes], {0: owner.own})
        for _ in range(_ROUNDS_OF_A_SECOND):
            for node in self.nodes:
                self.work(node, 1)

    def take_over(self, node: SteppedNode, rounds: int = _ROUNDS_OF_A_SECOND) -> None:
        """Assign the partition to a node, and let it work."""
        node.membership.assigned([0])
        self.work(node, rounds)

    def commit(self, node: SteppedNode, offset: int, places: Collection[TopicPartition] = PLACES[:1]) -> list[ErrorCode]:
        """Send a commit to a node; the list gets the errors of its response."""
        errors: list[ErrorCode] = []

        def received(response: Any) -> None:
            errors.extend(response.errors.values())

        node.send(OffsetCommitRequest(GROUP, {place: OffsetToCommit(offset) for place in sorted(places)}), received)
        return errors

    def restart(self, number: int) -> None:
        """End a process where it stands, and begin another one with its id."""
        self.nodes[number].crash()
        self.nodes[number] = self._new(self.nodes[number].own)

    def close(self) -> None:
        for node in self.nodes:
            node.crash()
