"""The sticky assignor: balance first, then as few moves of partitions as possible (`StickyAssignor`, KIP-54)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from coordinator_core.assignors.assignor import Ownership, PartitionAssignor, PartitionsByTopic, topic_partitions
from coordinator_core.assignors.claims import Claim, former_owners, owners
from coordinator_core.assignors.equal_subscriptions import EqualSubscriptions
from coordinator_core.assignors.model import Assignment, Subscription
from coordinator_core.assignors.protocol_bytes import flat_partitions, grouped_partitions
from coordinator_core.assignors.racks import rack_matching
from coordinator_core.assignors.unequal_subscriptions import UnequalSubscriptions
from coordinator_core.codec import Malformed, decode_sticky_user_data, encode_sticky_user_data
from coordinator_core.codec.consumer_protocol import UNKNOWN_GENERATION
from coordinator_core.codec.messages.consumer_protocol import StickyUserData
from coordinator_core.codec.topic_partition import TopicPartition


@dataclass(frozen=True)
class StickyAssignor(PartitionAssignor):
    """The eager sticky assignor. Members revoke all partitions before they join, so the user data has each member's previous
    assignment and its generation.

    Since KAFKA-9987, equal subscriptions have a separate algorithm (`equals_apart`). Without it, as in older clients, the shares
    and the number of kept partitions are the same, but the other partitions may have different owners.
    """

    previous: tuple[TopicPartition, ...] | None = None
    generation: int = UNKNOWN_GENERATION
    equals_apart: bool = True

    name = "sticky"

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:  # noqa: ARG002
        if self.previous is None:
            return None
        return encode_sticky_user_data(StickyUserData(grouped_partitions(self.previous), self.generation))

    def on_assignment(self, assignment: Assignment, generation: int) -> Self:
        return replace(self, previous=assignment.partitions, generation=generation)

    def assign_partitions(self, partitions: PartitionsByTopic, subscriptions: Mapping[str, Subscription]) -> Ownership:
        claims = {member: _claim(subscription) for member, subscription in subscriptions.items()}
        owner = owners(claims, set(topic_partitions(partitions)))
        return sticky_ownership(partitions, subscriptions, claims, owner, self.equals_apart)


def sticky_ownership(
    partitions: PartitionsByTopic,
    subscriptions: Mapping[str, Subscription],
    claims: Mapping[str, Claim],
    owner: Mapping[TopicPartition, str],
    equals_apart: bool = True,
    far_may_stay: bool = False,
) -> Ownership:
    """Returns the sticky assignment (`AbstractStickyAssignor`); `owner` has the owners by the valid `claims`.

    If racks matter, a member does not keep partitions without a replica in its rack, unless `far_may_stay`.
    """
    if not subscriptions:
        return {}
    racks = rack_matching(partitions, subscriptions)
    topics = {member: frozenset(subscription.topics) for member, subscription in subscriptions.items()}
    owned: Ownership = {member: [] for member in subscriptions}
    revoking = False
    for partition, member in owner.items():
        if partition.topic in topics[member] and (far_may_stay or not racks.mismatch(member, partition)):
            owned[member].append(partition)
        else:
            revoking = True
    if equals_apart and len(set(topics.values())) == 1:
        return EqualSubscriptions(topic_partitions(partitions), owned, racks).assign()
    by_topic = {topic: [TopicPartition(topic, info.partition) for info in infos] for topic, infos in partitions.items()}
    subscribers = {topic: frozenset(member for member in topics if topic in topics[member]) for topic in partitions}
    return UnequalSubscriptions(by_topic, subscribers, owned, former_owners(claims), racks, revoking).assign()


def _claim(subscription: Subscription) -> Claim:
    """Returns the claim in the user data; undecodable user data counts as no claim."""
    user_data = decode_sticky_user_data(subscription.user_data) if subscription.user_data else StickyUserData()
    if isinstance(user_data, Malformed):
        return Claim()
    return Claim(flat_partitions(user_data.previous_assignment), user_data.generation)
