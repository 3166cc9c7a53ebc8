"""Groups of classic consumers without a coordinator: members join, leave, subscribe and rebalance with bytes of the protocol."""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator_core.assignors import (
    Assignment,
    Assignor,
    Cluster,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
    assign_group,
    read_assignment,
    rebalance_protocol,
    subscription_bytes,
)


def partitions(text: str) -> tuple[TopicPartition, ...]:
    """Partitions written as "t0-0 t0-1 t1-0"."""
    return tuple(TopicPartition(topic, int(number)) for topic, _, number in (word.rpartition("-") for word in text.split()))


def text_of(owned: tuple[TopicPartition, ...]) -> str:
    return " ".join(f"{topic}-{partition}" for topic, partition in owned)


Topics = Cluster | Mapping[str, int]


def assigned(assignor: Assignor, topics: Topics, subscriptions: Mapping[str, Subscription]) -> dict[str, str]:
    """The partitions that an assignor gives to each member."""
    metadata = topics if isinstance(topics, Cluster) else Cluster.of_counts(topics)
    return {member: text_of(assignment.partitions) for member, assignment in assignor.assign(metadata, subscriptions).items()}


@dataclass
class Member:
    assignor: Assignor
    topics: tuple[str, ...]
    rack: str | None = None
    instance: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1


class ConsumerGroup:
    """A group whose members all use the same assignor; each member has its own instance."""

    def __init__(self, assignor: Assignor, topics: Topics) -> None:
        self.metadata = topics if isinstance(topics, Cluster) else Cluster.of_counts(topics)
        self.generation = 0
        self.members: dict[str, Member] = {}
        self._assignor = assignor
        self.protocol = rebalance_protocol([assignor])

    def join(
        self, member: str, *topics: str, rack: str | None = None, instance: str | None = None, assignor: Assignor | None = None
    ) -> None:
        self.members[member] = Member(assignor or self._assignor, topics, rack, instance)

    def leave(self, member: str) -> None:
        del self.members[member]

    def subscribe(self, member: str, *topics: str) -> None:
        self.members[member].topics = topics

    def rebalance(self) -> dict[str, str]:
        """Rebalance once; return the partitions that each member owns afterwards."""
        for member in self.members.values():
            member.owned = self._kept_while_joining(member)
        joined = [(name, member.instance, self._subscription(member)) for name, member in self.members.items()]
        assignments = assign_group(self._assignor.name, [self._assignor], self.metadata, joined)
        self.generation += 1
        for name, member in self.members.items():
            assignment = read_assignment(assignments[name])
            assert isinstance(assignment, Assignment)
            member.assignor = member.assignor.on_assignment(assignment, self.generation)
            member.owned = assignment.partitions
            member.generation = self.generation
        return self.owned()

    def settle(self) -> int:
        """Rebalance until no member has to give up a partition; return the number of rebalances.

        After giving up a partition, a cooperative member rejoins immediately.
        """
        for times in range(1, 10):
            before = self.owned_partitions()
            self.rebalance()
            after = self.owned_partitions()
            if self.protocol is RebalanceProtocol.EAGER or all(before[name] <= after[name] for name in before):
                return times
        raise AssertionError("the group does not stop rebalancing")

    def owned(self) -> dict[str, str]:
        return {name: text_of(member.owned) for name, member in self.members.items()}

    def owned_partitions(self) -> dict[str, frozenset[TopicPartition]]:
        return {name: frozenset(member.owned) for name, member in self.members.items()}

    def _kept_while_joining(self, member: Member) -> tuple[TopicPartition, ...]:
        if self.protocol is RebalanceProtocol.EAGER:
            return ()
        return tuple(partition for partition in member.owned if partition.topic in member.topics)

    def _subscription(self, member: Member) -> bytes:
        user_data = member.assignor.subscription_user_data(member.topics)
        return subscription_bytes(Subscription(member.topics, user_data, member.owned, member.generation, member.rack))
