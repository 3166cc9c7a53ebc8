"""Committed partitions that no member can read: of topics without a subscription, and numbers that a topic does not have.

Offsets of a topic remain when the last member that subscribed to it leaves, or subscribes to other topics. The topic goes on, so
the lag of these offsets grows, and a rule would find that commits have stopped. Since KIP-496 (Kafka 2.4) brokers expire them
although the group has members. Times in ms.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.health.status import StatusSettings


class Unconsumed(StrEnum):
    """Why no member can read a partition."""

    NOT_SUBSCRIBED = "not_subscribed"
    #: The topic has partitions, but not this one.
    UNKNOWN_PARTITION = "unknown_partition"


class UnconsumedTopic(NamedTuple):
    """Partitions of a topic with committed offsets that no member of the group can read, for one reason.

    - `partitions`, `partition`: their number, and the least of them.
    - `since_ms`: end of the subscription; None if it is unknown.
    - `first_due_ms`, `last_due_ms`: expiry of the first and the last of the offsets; None if one of them does not expire, or if
      it is unknown.
    """

    topic: str
    reason: Unconsumed
    partitions: int
    partition: int
    since_ms: int | None = None
    first_due_ms: int | None = None
    last_due_ms: int | None = None


class GroupSubscription(NamedTuple):
    """The topics to which the members of a group subscribe, where all of them are known (`isSubscribedToTopic` of brokers).

    - `state`: as in `groups`.
    - `topics`: by name, and those that regular expressions resolved to. Empty if no member subscribes to a topic: such members
      may be assigned partitions by other means.
    - `owned`: topics of which a member has partitions.
    """

    state: str
    topics: Collection[str]
    owned: Collection[str] = ()

    def lacks(self, topic: str, since_ms: int | None, at_ms: int, settings: StatusSettings) -> bool:
        """True if no member reads the topic, which is known. `since_ms` is the end of its subscription, None if it is unknown.

        A subscription that ended less than `least_silence_ms` ago may be a part of a rebalance that is still in progress.
        """
        if not self.topics or topic in self.topics or topic in self.owned:
            return False
        return self.state == "Stable" or (since_ms is not None and at_ms - since_ms > settings.least_silence_ms)

    @property
    def is_known(self) -> bool:
        """True if a member subscribes to a topic."""
        return bool(self.topics)
