"""The cooperative sticky assignor: members keep reading what they keep; a partition moves in two rebalances (KIP-429)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from coordinator_core.assignors.assignor import Ownership, PartitionAssignor, PartitionsByTopic, topic_partitions
from coordinator_core.assignors.claims import Claim, owners
from coordinator_core.assignors.model import Assignment, RebalanceProtocol, Subscription
from coordinator_core.assignors.sticky_assignor import sticky_ownership
from coordinator_core.codec import cooperative_generation, encode_cooperative_user_data
from coordinator_core.codec.consumer_protocol import UNKNOWN_GENERATION
from coordinator_core.codec.messages.consumer_protocol import CooperativeStickyUserData


@dataclass(frozen=True)
class CooperativeStickyAssignor(PartitionAssignor):
    """The sticky assignment without the partitions that another member still claims (`CooperativeStickyAssignor`): the first
    rebalance revokes these from their owner, which rejoins without them, and the second assigns them.

    Owned partitions are a field of the subscription. Their generation is a field since version 2, and user data before.
    """

    generation: int = UNKNOWN_GENERATION

    name = "cooperative-sticky"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def subscription_user_data(self, topics: Collection[str]) -> bytes:  # noqa: ARG002
        return encode_cooperative_user_data(CooperativeStickyUserData(self.generation))

    def on_assignment(self, assignment: Assignment, generation: int) -> Self:  # noqa: ARG002
        return replace(self, generation=generation)

    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        claims = {member: _claim(subscription) for member, subscription in subscriptions.items()}
        known = topic_partitions(partitions)
        owner = owners(claims, set(known))
        claimed = {partition for claim in claims.values() for partition in claim.partitions}
        # Members rejoin after a revocation. If that rebalance revoked more partitions in other racks, rebalances would never end.
        far_may_stay = len(owner) < len(known)
        wanted = sticky_ownership(partitions, subscriptions, claims, owner, far_may_stay=far_may_stay)
        return {
            member: [partition for partition in wanted[member] if partition not in claimed or owner.get(partition) == member]
            for member in wanted
        }


def _claim(subscription: Subscription) -> Claim:
    generation = cooperative_generation(subscription.generation_id, subscription.user_data)
    return Claim(subscription.owned_partitions, generation)
