"""Assignment by the leader of a group, between JoinGroup and SyncGroup (`ConsumerCoordinator.onLeaderElected`)."""

from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.assignors.assignor import Assignor
from coordinator_core.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from coordinator_core.assignors.model import Assignment, Cluster, RebalanceProtocol, Subscription
from coordinator_core.assignors.protocol_bytes import assignment_bytes, read_subscription
from coordinator_core.codec import Malformed


class AssignmentFailed(ValueError):
    """The leader cannot assign: an unknown assignor, an undecodable subscription, or an assignor that violates its protocol."""


def rebalance_protocol(assignors: Iterable[Assignor]) -> RebalanceProtocol:
    """Returns the highest protocol that all assignors of a member support. Raises AssignmentFailed without one."""
    named = {assignor.name: frozenset(assignor.supported_protocols) for assignor in assignors}
    common = frozenset(RebalanceProtocol).intersection(*named.values())
    if not named or not common:
        raise AssignmentFailed(f"assignors {', '.join(sorted(named)) or 'none'} have no rebalance protocol in common")
    return max(common)


def assign_group(
    chosen: str, assignors: Sequence[Assignor], metadata: Cluster, members: Iterable[tuple[str, str | None, bytes]]
) -> dict[str, bytes]:
    """Returns the assignment bytes by member id, for the leader's SyncGroup.

    `chosen` is the protocol name of the JoinGroup response, `members` its member ids, instance ids and subscription bytes.
    Raises AssignmentFailed.
    """
    assignor = next((each for each in assignors if each.name == chosen), None)
    if assignor is None:
        own = ", ".join(each.name for each in assignors)
        raise AssignmentFailed(f"the coordinator chose assignor {chosen!r}, but this member has {own}")
    subscriptions = {member: _subscription(member, instance, data) for member, instance, data in members}
    assignments = assignor.assign(metadata, subscriptions)
    checks_claims_itself = isinstance(assignor, CooperativeStickyAssignor)
    if rebalance_protocol(assignors) is RebalanceProtocol.COOPERATIVE and not checks_claims_itself:
        _check_cooperative(chosen, subscriptions, assignments)
    return {member: assignment_bytes(assignment) for member, assignment in assignments.items()}


def _subscription(member: str, instance: str | None, data: bytes) -> Subscription:
    subscription = read_subscription(data, instance)
    if isinstance(subscription, Malformed):
        raise AssignmentFailed(f"member {member!r}: {subscription.reason}")
    return subscription


def _check_cooperative(chosen: str, subscriptions: Mapping[str, Subscription], assignments: Mapping[str, Assignment]) -> None:
    """Checks that no partition is assigned to a new owner before its old owner has revoked it (KIP-429)."""
    owned = {member: set(subscription.owned_partitions) for member, subscription in subscriptions.items()}
    assigned = {member: set(assignment.partitions) for member, assignment in assignments.items()}
    revoked = {partition for member in owned for partition in owned[member] - assigned.get(member, set())}
    added = {partition for member in assigned for partition in assigned[member] - owned[member]}
    if both := sorted(revoked & added):
        topic, partition = both[0]
        raise AssignmentFailed(f"assignor {chosen!r} assigned {topic}-{partition} to a new owner before the old one revoked it")
