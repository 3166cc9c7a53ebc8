"""Who comes first among the members of a group, and who subscribes to a topic."""

from collections.abc import Mapping

from coordinator_core.assignors.model import Subscription


def members_in_order(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Static members by their instance ids, then dynamic ones by their member ids (`MemberInfo`): ids of members are new with
    every start, and a static member is to find its old place."""
    return sorted(subscriptions, key=lambda member: _place(member, subscriptions[member].group_instance_id))


def subscribers_by_topic(subscriptions: Mapping[str, Subscription]) -> dict[str, list[str]]:
    """Members that subscribe to a topic, in order."""
    subscribers: dict[str, list[str]] = {}
    for member in members_in_order(subscriptions):
        for topic in dict.fromkeys(subscriptions[member].topics):
            subscribers.setdefault(topic, []).append(member)
    return subscribers


def _place(member: str, instance: str | None) -> tuple[bool, str]:
    return (True, member) if instance is None else (False, instance)
