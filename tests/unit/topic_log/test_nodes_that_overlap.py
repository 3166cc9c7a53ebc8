"""Nodes that both take themselves for the owner of a log partition, in the orders that were once wrong."""

from collections.abc import Iterator

import pytest
from modelled_clients import Fate
from stepped_node import SteppedNode
from stepped_nodes import GROUP, PLACES, SteppedNodes

from coordinator_core.protocol.error_code import ErrorCode

NONE = [ErrorCode.NONE]


@pytest.fixture
def nodes() -> Iterator[SteppedNodes]:
    """Two nodes, which give up a request that times out; the first one has loaded the partition and acknowledged offset 1."""
    found = SteppedNodes(2, append_seconds=0.0)
    first = found.nodes[0]
    found.take_over(first)
    assert committed(found, first, 1) == NONE
    yield found
    found.close()


def committed(nodes: SteppedNodes, node: SteppedNode, offset: int) -> list[ErrorCode]:
    """The errors of a commit, once the node has worked."""
    errors = nodes.commit(node, offset)
    nodes.work(node)
    return errors


def offset_at(node: SteppedNode) -> int:
    return int(node.shard.context.state.committed(GROUP)[PLACES[0]].offset)


def test_an_owner_that_was_fenced_gives_up(nodes: SteppedNodes) -> None:
    first, second = nodes.nodes
    nodes.take_over(second)
    assert (second.status, offset_at(second)) == ("active", 1)
    assert committed(nodes, second, 2) == NONE
    assert committed(nodes, first, 3) == [ErrorCode.NOT_COORDINATOR]
    assert (first.status, offset_at(second)) == ("unloaded", 2)


def test_a_load_waits_for_the_one_before_it(nodes: SteppedNodes) -> None:
    """The first one waited for a thread while its node lost the partition and got it again. Behind the second one it would make
    an owner of a node whose state is behind the log."""
    first, second = nodes.nodes
    first.membership.revoked([0])
    nodes.work(first)
    first.membership.assigned([0])
    first.loop.turn()
    (earlier,) = first.waiting
    earlier.is_stalled = True
    first.membership.revoked([0])
    first.membership.assigned([0])
    nodes.work(first)
    nodes.take_over(second)
    assert committed(nodes, second, 2) == NONE
    earlier.is_stalled = False
    nodes.work(first)
    assert (first.status, offset_at(first)) == ("active", 2)
    assert committed(nodes, first, 3) == NONE


def test_a_load_that_is_not_wanted_any_more_fences_nobody(nodes: SteppedNodes) -> None:
    """All threads of loads were busy while the group moved the partition."""
    first, second = nodes.nodes
    first.membership.revoked([0])
    nodes.work(first)
    first.membership.assigned([0])
    first.loop.turn()
    (queued,) = first.waiting
    queued.is_stalled = True
    first.membership.revoked([0])
    nodes.work(first)
    nodes.take_over(second)
    queued.is_stalled = False
    nodes.work(first)
    assert committed(nodes, second, 2) == NONE


def test_an_owner_that_was_fenced_by_a_node_without_the_partition_takes_it_back(nodes: SteppedNodes) -> None:
    """The node was cut off while the group moved its partition, and loads it again before it hears of that."""
    first, second = nodes.nodes
    lost = nodes.commit(first, 2)
    for _ in range(5):
        nodes.seconds += 0.004
        first.loop.turn()
        for call in first.waiting:
            call.step(Fate.ANSWERED if call.waits_for is None else Fate.TIMED_OUT)
    nodes.take_over(second)
    nodes.seconds += 1.0
    nodes.work(first)
    assert (lost, first.status) == ([ErrorCode.COORDINATOR_NOT_AVAILABLE], "active")
    assert committed(nodes, second, 3) == [ErrorCode.NOT_COORDINATOR]
    first.membership.revoked([0])
    nodes.second(second)
    nodes.second(second)
    assert (first.status, second.status) == ("unloaded", "active")
    assert committed(nodes, second, 4) == NONE


def test_a_fenced_owner_does_not_trust_a_description_from_before(nodes: SteppedNodes) -> None:
    first, second = nodes.nodes
    nodes.take_over(second)
    assert committed(nodes, first, 2) == [ErrorCode.NOT_COORDINATOR]
    first.membership.described([first.own, second.own], {0: first.own})
    nodes.work(first)
    assert first.status == "unloaded"
    nodes.second(second)
    nodes.second(second)
    assert (first.status, second.status) == ("unloaded", "active")


@pytest.mark.parametrize("event", ["time_out", "forget"])
def test_an_owner_that_the_brokers_have_ended_takes_the_partition_back(nodes: SteppedNodes, event: str) -> None:
    """Its transaction took too long, or it wrote nothing for so long that the brokers forgot its transactional id."""
    owner = nodes.nodes[0]
    failed = nodes.commit(owner, 2)
    if event == "forget":
        nodes.coordinator.forget()
    else:
        while nodes.coordinator.commits == nodes.coordinator.commits[:1] and not failed:
            nodes.work(owner, 1)
            nodes.coordinator.time_out()
    nodes.work(owner)
    assert failed == [ErrorCode.NOT_COORDINATOR]
    nodes.second(owner)
    nodes.second(owner)
    assert (owner.status, offset_at(owner)) == ("active", 1)
    assert committed(nodes, owner, 3) == NONE


def test_an_assignment_right_behind_a_revocation_counts(nodes: SteppedNodes) -> None:
    """The loop of the node handles both events in one turn."""
    owner = nodes.nodes[0]
    owner.membership.revoked([0])
    owner.membership.assigned([0])
    nodes.work(owner)
    assert (owner.status, offset_at(owner)) == ("active", 1)
    nodes.second(owner)
    assert committed(nodes, owner, 2) == NONE


def test_a_write_from_before_a_revocation_is_not_appended(nodes: SteppedNodes) -> None:
    """The append was collecting writes. Behind the load that follows, its records would be in the log and not in the state."""
    owner = nodes.nodes[0]
    errors = nodes.commit(owner, 2)
    owner.loop.turn()
    owner.membership.revoked([0])
    owner.membership.assigned([0])
    nodes.work(owner)
    assert (errors, owner.status, offset_at(owner)) == ([ErrorCode.NOT_COORDINATOR], "active", 1)
    nodes.take_over(nodes.nodes[1])
    assert offset_at(nodes.nodes[1]) == 1


def test_a_node_that_has_ended_is_not_named_to_clients(nodes: SteppedNodes) -> None:
    """Until the next description, which may come after a rebalance."""
    first, second = nodes.nodes
    first.membership.revoked([0])
    first.membership.described([first.own, second.own], {0: second.own})
    nodes.work(first)
    assert (first.membership.all(), first.membership.owner(0)) == ((first.own, second.own), second.own)
    first.membership.node_ended(second.own)
    nodes.work(first)
    assert (first.membership.all(), first.membership.owner(0)) == ((first.own,), None)
