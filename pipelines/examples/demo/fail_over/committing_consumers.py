"""Consumers (librdkafka) that commit all the time, and what was acknowledged to them."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

#: Between two commits of a consumer; between two polls of all consumers.
_COMMIT_SECONDS, _POLL_SECONDS = 0.25, 0.02
#: A commit without an outcome is given up after this time, and the next one is sent.
_FORGOTTEN_SECONDS = 30.0


class CommittedPartition(NamedTuple):
    """A partition of the topic, as a group consumes it."""

    group: str
    partition: int


class AcknowledgedCommit(NamedTuple):
    """A commit that the coordinator has answered without an error. Times are those of `time.monotonic()`."""

    place: CommittedPartition
    offset: int
    sent_at: float
    answered_at: float


class CommittingConsumers:
    """`size` consumers of each group. The n-th commit of a partition by a group is the offset n.

    `run` drives them in one thread until `stop`. They do not leave their groups: a consumer would wait for its coordinator, and
    after Ctrl-C there is none.
    """

    def __init__(self, bootstrap: str, topic: str, groups: Sequence[str], size: int) -> None:
        self._topic = topic
        #: Appended to by the thread of `run`.
        self.acknowledged: list[AcknowledgedCommit] = []
        self._sent: Counter[CommittedPartition] = Counter()
        self._stopping = threading.Event()
        self._running = [
            _CommittingConsumer(self, bootstrap, topic, group, f"{group}-{n}") for group in groups for n in range(1, size + 1)
        ]

    def run(self) -> None:
        """Poll and commit until `stop`."""
        while not self._stopping.wait(_POLL_SECONDS):
            for member in self._running:
                member.poll(time.monotonic())

    def stop(self) -> None:
        """End `run`."""
        self._stopping.set()

    def next_offset(self, place: CommittedPartition) -> int:
        """Return the offset of the next commit."""
        self._sent[place] += 1
        return self._sent[place]


class _CommittingConsumer:
    def __init__(self, consumers: CommittingConsumers, bootstrap: str, topic: str, group: str, name: str) -> None:
        self._consumers, self._topic, self._group = consumers, topic, group
        #: When the commit without an outcome was sent, 0 without one.
        self._sent_at = 0.0
        self._due = 0.0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": name,
                "enable.auto.commit": False,
                "on_commit": self._on_commit,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])

    def poll(self, now: float) -> None:
        self._consumer.poll(0)
        if now < self._due or (self._sent_at and now - self._sent_at < _FORGOTTEN_SECONDS):
            return
        owned = [CommittedPartition(self._group, each.partition) for each in self._consumer.assignment()]
        if owned:
            offsets = [TopicPartition(self._topic, at.partition, self._consumers.next_offset(at)) for at in owned]
            self._sent_at, self._due = now, now + _COMMIT_SECONDS
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def _on_commit(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        sent_at, self._sent_at = self._sent_at, 0.0
        now = time.monotonic()
        if error is None:
            self._consumers.acknowledged += [
                AcknowledgedCommit(CommittedPartition(self._group, each.partition), each.offset, sent_at, now)
                for each in offsets
                if each.error is None
            ]
