"""Order of the members of a group, and subscribers by topic."""

from collections.abc import Mapping

from coordinator_core.assignors.model import Subscription


def members_in_order(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Sorts static members by their instance ids, then dynamic ones by their member ids (`MemberInfo`). Member ids change with
    every start, so instance ids keep the position of a static member."""
    return sorted(subscriptions, key=lambda member: _sort_key(member, subscriptions[member].group_instance_id))


def subscribers_by_topic(subscriptions: Mapping[str, Subscription]) -> dict[str, list[str]]:
    """Returns the members that subscribe to each topic, in order."""
    subscribers: dict[str, list[str]] = {}
    for member in members_in_order(subscriptions):
        for topic in dict.fromkeys(subscriptions[member].topics):
            subscribers.setdefault(topic, []).append(member)
    return subscribers


def _sort_key(member: str, instance: str | None) -> tuple[bool, str]:
    return (True, member) if instance is None else (False, instance)
