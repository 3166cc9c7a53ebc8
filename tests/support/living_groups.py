"""Groups of every type that live: members join, leave and commit; groups without members are committed, reset and deleted."""

import random
from collections import Counter
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient
from eventually import equal_to, eventually
from group_offsets import commit_offsets, committed_at, once_coordinated
from live_kafka import QUIET
from patience import PATIENCE_SECONDS
from streams_member import StreamsMember

from pipelines.examples.private.kafka.clients import Clients

_MEMBERS = 3
_SHARE_GROUP, _STREAMS_GROUP = "share-0", "streams-0"


class LivingGroups:
    """Groups of one cluster that read one topic, and what happens to them, drawn with a seed. A context manager.

    `protocols` are group protocols of consumers, with the type of their groups. Groups can be deleted since 1.1, have offsets in
    transactions since 0.11, and the types "share" and "streams" since 4.1. The member of the streams group needs a coordinator
    that stays where it is.

    Attributes:
        events: how often each event happened
        kinds: the type of each group that may exist
        existing: groups that have offsets, and the share group
        aborted: groups that had an aborted transaction; coordinators may have them without offsets
        deleted: groups that a client has deleted at any time
    """

    def __init__(
        self,
        bootstrap: str,
        clients: Clients,
        topic: tuple[str, int],
        protocols: Mapping[str, str],
        seed: int,
        *,
        with_deletions: bool = True,
        with_transactions: bool = False,
        with_share_group: bool = False,
        with_streams_group: bool = False,
    ) -> None:
        self._bootstrap, self._clients, self._draw = bootstrap, clients, random.Random(seed)
        self._topic, self._partitions = topic
        self._protocols = {f"{protocol}-{number}": protocol for protocol in protocols for number in range(2)}
        self.simple = [f"simple-{number}" for number in range(4)]
        self._members: dict[str, list[Consumer]] = {group: [] for group in self._protocols}
        self._sharing: list[ShareConsumer] = []
        self._streams: StreamsMember | None = None
        self.kinds = {group: protocols[protocol] for group, protocol in self._protocols.items()}
        self.kinds |= dict.fromkeys(self.simple, "simple")
        self.existing: set[str] = set()
        self.aborted: set[str] = set()
        self.deleted: set[str] = set()
        self.events: Counter[str] = Counter()
        self._may: list[Callable[[], str]] = [self._join, self._leave, self._commit, self._commit, self._reset]
        if with_deletions:
            self._may.append(self._delete)
        if with_transactions:
            self._producer: Producer = clients.transaction("living-groups")
            self._may.append(self._transaction)
        if with_share_group:
            self.kinds[_SHARE_GROUP] = "share"
            self._may.append(self._share)
        if with_streams_group:
            self.kinds[_STREAMS_GROUP] = "streams"
            self._may.append(self._stream)

    def __enter__(self) -> "LivingGroups":
        # creates the topic of offsets
        self._commit_without_members(self.simple[0], 0)
        return self

    def __exit__(self, *_: object) -> None:
        """Let the members leave that are not closed with the clients."""
        while self._sharing:
            self._sharing.pop().close()
        if self._streams is not None:
            self._leave_streams(self._streams)

    def happen(self) -> str:
        """One event. Returns its name."""
        event = self._draw.choice(self._may)()
        self.events[event] += 1
        self.poll()
        return event

    def poll(self) -> None:
        """Keep all members alive, and let them take part in rebalances."""
        for members in self._members.values():
            for member in members:
                member.poll(0)
        for consumer in self._sharing:
            # what was read is acknowledged by the next poll
            consumer.poll(0)
        if self._streams is not None:
            assert self._streams.heartbeat() == 0

    def settle(self) -> None:
        """Wait until the members of each group share all partitions."""
        for group in self._members:
            self._settle(group)
        if (streams := self._streams) is not None:

            def tasks() -> list[int]:
                self.poll()
                return streams.tasks

            eventually("the streams member has all tasks", tasks, equal_to(list(range(self._partitions))))

    def _settle(self, group: str) -> None:
        def owned() -> list[int]:
            self.poll()
            return [len(member.assignment()) for member in self._members[group]]

        eventually(
            f"the members of {group} share the partitions",
            owned,
            lambda counts: all(counts) and (not counts or sum(counts) == self._partitions),
        )

    def _join(self) -> str:
        group = self._draw.choice(sorted(self._members))
        if len(self._members[group]) == _MEMBERS:
            return self._leave()
        member = self._clients.consumer(group, [self._topic], group_protocol=self._protocols[group])
        self._members[group].append(member)
        return "join"

    def _leave(self) -> str:
        group = self._draw.choice(sorted(self._members))
        if not self._members[group]:
            return self._commit()
        self._clients.leave(self._members[group].pop())
        return "leave"

    def _share(self) -> str:
        """A member of the share group joins or leaves."""
        if len(self._sharing) == _MEMBERS or (self._sharing and self._draw.random() < 0.5):
            self._sharing.pop().close()
            return "share leave"
        consumer = ShareConsumer({"bootstrap.servers": self._bootstrap, "group.id": _SHARE_GROUP, **QUIET})
        consumer.subscribe([self._topic])
        self._sharing.append(consumer)
        self.existing.add(_SHARE_GROUP)
        return "share join"

    def _stream(self) -> str:
        """The member of the streams group joins or leaves."""
        if self._streams is not None:
            self._leave_streams(self._streams)
            return "streams leave"
        self._streams = StreamsMember(self._bootstrap, _STREAMS_GROUP, self._topic)
        return "streams join"

    def _leave_streams(self, member: StreamsMember) -> None:
        with member:
            self._streams = None

    def _commit(self) -> str:
        """A commit of everything that the members own, or of a group without members."""
        self._clients.produce(self._topic, self._partitions, self._partitions)
        group = self._draw.choice(sorted(self._members))
        if not self._members[group]:
            self._commit_without_members(self._draw.choice(self.simple), self._draw.randrange(self._partitions))
            return "simple commit"
        self._settle(group)
        self._clients.commit_everywhere(self._members[group], self._draw.randrange(1_000))
        self.existing.add(group)
        return "commit"

    def _commit_without_members(self, name: str, partition: int) -> None:
        commit_offsets(self._bootstrap, name, {(self._topic, partition): self._draw.randrange(1_000)})
        self.existing.add(name)

    def _transaction(self) -> str:
        """A transaction with a commit of a group without members, which ends one way or the other."""
        name = self._draw.choice(self.simple)
        member = self._clients.consumer(name)
        at = (self._topic, self._draw.randrange(self._partitions), self._draw.randrange(1_000))
        self._clients.send_offsets(self._producer, member, [at])
        self._clients.leave(member)
        if self._draw.random() < 0.3:
            self._producer.abort_transaction(PATIENCE_SECONDS)
            self.aborted.add(name)
            return "aborted transaction"
        self._producer.commit_transaction(PATIENCE_SECONDS)
        # the answer comes before the markers: a deletion in between would leave the marker of a deleted group
        eventually("the offset is committed", lambda: self._committed(name).get(at[:2]), equal_to(at[2]))
        self.existing.add(name)
        return "transaction"

    def _administer(self, what: str, request: Callable[[AdminClient], object]) -> None:
        """Send a request of an administrator, again while its coordinator starts, loads or moves."""

        def once() -> object:
            # a new client each time, since an old one keeps asking the coordinator that it has found once; it has a name, since
            # a client that nothing holds ends before its answer
            admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
            return request(admin)

        once_coordinated(what, once)

    def _committed(self, group: str) -> dict[tuple[str, int], int]:
        return committed_at(self._bootstrap, group, [(self._topic, number) for number in range(self._partitions)])

    def _reset(self) -> str:
        name, at = self._draw.choice(self.simple), TopicPartition(self._topic, self._draw.randrange(self._partitions), 0)
        request = [ConsumerGroupTopicPartitions(name, [at])]
        self._administer("the reset", lambda admin: admin.alter_consumer_group_offsets(request)[name].result(PATIENCE_SECONDS))
        self.existing.add(name)
        return "reset"

    def _delete(self) -> str:
        name = self._draw.choice(self.simple)
        if not self._committed(name):
            return self._reset()
        self._administer("the deletion", lambda admin: admin.delete_consumer_groups([name])[name].result(PATIENCE_SECONDS))
        self.existing.discard(name)
        self.aborted.discard(name)
        self.deleted.add(name)
        return "deletion"
