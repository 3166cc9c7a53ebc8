"""Real consumers and producers (librdkafka) on a live broker, polled together until their group has the wanted state."""

import time
from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pipelines.examples.private.kafka.distribution import PrivateKafkaError

#: Without this, librdkafka prints every lost connection to standard error.
_QUIET = {"log_level": 0}
_COORDINATOR_NOT_READY = frozenset(
    {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
#: Called with the error or None, and the offsets.
OnCommit = Callable[[KafkaError | None, list[TopicPartition]], None]
_POLL_SECONDS = 0.02
#: A busy machine takes long for a few heartbeats. What has not happened by then does not happen.
LIMIT_SECONDS = 120.0


class Clients:
    """Creates consumers and producers of one cluster, and closes them at the end.

    Every method raises PrivateKafkaError if the cluster refuses a request or does not reach the expected state in time.
    """

    def __init__(self, bootstrap: str, settings: dict[str, str | int | float | bool] | None = None) -> None:
        self._base: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, **_QUIET, **(settings or {})}
        self.admin = AdminClient(self._base)
        self._open: list[Consumer] = []
        self._transactions: list[Producer] = []

    def __enter__(self) -> "Clients":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_topics(self, names: Iterable[str], partitions: int) -> None:
        """Create topics, and wait until every partition has a leader."""
        names = list(names)
        for name, future in self.admin.create_topics([NewTopic(name, partitions, 1) for name in names]).items():
            try:
                future.result(LIMIT_SECONDS)
            except KafkaException as error:
                raise PrivateKafkaError(f"topic {name} cannot be created: {error}") from None
        _until(lambda: all(self._has_leaders(name) for name in names), "the new topics to have leaders")

    def produce(self, topic: str, partitions: int, count: int) -> None:
        """Write `count` records, round-robin over the partitions."""
        producer = Producer({**self._base, "linger.ms": 5})
        for number in range(count):
            producer.produce(topic, b"record %d" % number, partition=number % partitions)
        if producer.flush(LIMIT_SECONDS):
            raise PrivateKafkaError(f"records of topic {topic} were not acknowledged within {LIMIT_SECONDS:.0f} s")

    def consumer(
        self, group: str, topics: Sequence[str] = (), *, on_commit: OnCommit | None = None, **settings: object
    ) -> Consumer:
        """A consumer of `group`, subscribed to `topics` if given; underscores in `settings` stand for dots.

        `on_commit` is called during polls, with the result of each asynchronous commit.
        """
        given = {name.replace("_", "."): value for name, value in settings.items()}
        if on_commit is not None:
            given["on_commit"] = on_commit
        config = {**self._base, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        if given.get("group.protocol") != "consumer":
            config |= {"session.timeout.ms": 10000, "heartbeat.interval.ms": 100}
        consumer = Consumer({**config, "topic.metadata.refresh.interval.ms": 1000, **given})
        if topics:
            consumer.subscribe(list(topics))
        self._open.append(consumer)
        return consumer

    def settle(self, members: Sequence[Consumer], partitions: int) -> None:
        """Poll the members until together they own `partitions`, and each at least one."""

        def settled() -> bool:
            for member in members:
                member.poll(0)
            owned = [len(member.assignment()) for member in members]
            return all(owned) and sum(owned) == partitions

        _until(settled, f"{len(members)} members to share {partitions} partitions")

    def commit_everywhere(self, members: Sequence[Consumer], offset: int, metadata: str | None = None) -> None:
        """Let each member commit `offset` for every partition that it owns."""
        for member in members:
            self.commit(member, [(each.topic, each.partition, offset) for each in member.assignment()], metadata)

    def commit(self, member: Consumer, offsets: Iterable[tuple[str, int, int]], metadata: str | None = None) -> None:
        """Commit (topic, partition, offset), and wait for the response; again while the coordinator is not ready."""
        positions = [_position(*each, metadata) for each in offsets]

        def is_committed() -> bool:
            try:
                committed = member.commit(offsets=positions, asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() not in _COORDINATOR_NOT_READY:
                    raise
                return False
            if failed := [each for each in committed or () if each.error]:
                raise PrivateKafkaError(f"the broker rejected a commit: {failed[0]}")
            return True

        _until(is_committed, "a commit")

    def committed(self, group: str, topics: Iterable[str], partitions: int) -> list[tuple[str, int, int, str]]:
        """Committed offsets of a group from OffsetFetch: (topic, partition, offset, metadata), sorted. Waits for the load."""
        requested = [TopicPartition(topic, partition) for topic in topics for partition in range(partitions)]
        # with read_committed, a partition with a pending transaction has no offset in the response
        member = self.consumer(group, isolation_level="read_uncommitted")
        found: list[TopicPartition] = []

        def loaded() -> bool:
            try:
                found[:] = member.committed(requested, 10)
            except KafkaException as error:
                if error.args[0].code() not in _COORDINATOR_NOT_READY:
                    raise PrivateKafkaError(f"offsets of {group}: {error}") from None
                return False
            return True

        _until(loaded, f"the offsets of {group} to be loaded")
        self.leave(member)
        return sorted((each.topic, each.partition, each.offset, each.metadata or "") for each in found if each.offset >= 0)

    def leave(self, *members: Consumer) -> None:
        """Close members, which makes them leave their group."""
        for member in members:
            self._open.remove(member)
            member.close()

    def transaction(self, name: str, timeout_ms: int = 600_000) -> Producer:
        """A transactional producer, initialized."""
        producer = Producer({**self._base, "transactional.id": name, "transaction.timeout.ms": timeout_ms})
        producer.init_transactions(LIMIT_SECONDS)
        self._transactions.append(producer)
        return producer

    def send_offsets(self, producer: Producer, member: Consumer, offsets: Iterable[tuple[str, int, int]]) -> None:
        """Begin a transaction that commits offsets of the member's group. The caller ends it."""
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [_position(*each, None) for each in offsets], member.consumer_group_metadata(), LIMIT_SECONDS
        )

    def close(self) -> None:
        """Close every open member."""
        self.leave(*list(self._open))
        self._transactions.clear()

    def _has_leaders(self, topic: str) -> bool:
        found = self.admin.list_topics(topic, timeout=10).topics[topic]
        return found.error is None and bool(found.partitions) and all(each.leader >= 0 for each in found.partitions.values())


def _position(topic: str, partition: int, offset: int, metadata: str | None) -> TopicPartition:
    return TopicPartition(topic, partition, offset) if metadata is None else TopicPartition(topic, partition, offset, metadata)


def _until(reached: Callable[[], bool], goal: str) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not reached():
        if time.monotonic() > deadline:
            raise PrivateKafkaError(f"timed out after {LIMIT_SECONDS:.0f} s waiting for {goal}")
        time.sleep(_POLL_SECONDS)
