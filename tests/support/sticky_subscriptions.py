"""Subscriptions that carry owned partitions, each in its assignor's format, and a check of balanced assignments."""

from collections.abc import Iterable, Mapping

from consumer_groups import partitions

from coordinator_core.assignors import Assignment, Assignor, Cluster, StickyAssignor, Subscription, TopicPartition

LATEST = 1


def sticky_member(
    assignor: Assignor, topics: Iterable[str], owned: str = "", generation: int = LATEST, rack: str | None = None
) -> Subscription:
    """A member that owns the partitions written as "t-0 t-1" since a generation."""
    wanted = tuple(topics)
    if isinstance(assignor, StickyAssignor):
        before = assignor.on_assignment(Assignment(partitions(owned)), generation)
        return Subscription(wanted, before.subscription_user_data(wanted), (), generation, rack)
    return Subscription(wanted, None, partitions(owned), generation, rack)


def improvement(
    metadata: Cluster, subscriptions: Mapping[str, Subscription], ownership: Mapping[str, Iterable[TopicPartition]]
) -> str | None:
    """An assignment error, or None: a partition whose move would make shares more equal, or that is assigned twice, to no member,
    or to a member that is not subscribed to it."""
    owner: dict[TopicPartition, str] = {}
    for member, owned in ownership.items():
        for partition in owned:
            if partition in owner:
                return f"{partition} belongs to {owner[partition]} and {member}"
            if partition.topic not in subscriptions[member].topics:
                return f"{member} doesn't want {partition}"
            owner[partition] = member
    size = {member: len(tuple(owned)) for member, owned in ownership.items()}
    for topic in metadata.topics:
        wanting = [member for member in size if topic in subscriptions[member].topics]
        for info in metadata.topics[topic] if wanting else ():
            partition = TopicPartition(topic, info.partition)
            if partition not in owner:
                return f"{partition} has no owner"
            poorest = min(wanting, key=size.__getitem__)
            if size[poorest] + 1 < size[owner[partition]]:
                return f"{partition} of {owner[partition]} would better belong to {poorest}"
    return None
