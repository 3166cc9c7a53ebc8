"""The offsets that a group commits: the ends of its topics some time ago, at an interval, while it runs."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.examples.history.assignment import TopicPartition
from pipelines.examples.history.log import ExampleLog
from pipelines.examples.history.topics import MINUTE, SECOND, ShopTopics

#: Time from an offset in a transaction to the marker of its end.
_TRANSACTION_MS = 250

#: (time, age of the group's position): straight lines between the points, level before the first and after the last one.
Ages = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Reader:
    """A group that reads all partitions of topics. Times are in ms relative to the end of the history.

    Attributes:
        running: (start, end) of the times in which the group commits
        ages: how far the group is behind
        stopped: partitions that are not committed from a time on
        producer: id of the producer for partition 0 if offsets are committed in transactions, the next one for partition 1
        every_ms: interval of the commits
    """

    group: str
    partitions: Mapping[str, int]
    running: Sequence[tuple[int, int]]
    ages: Ages = ((0, 3 * SECOND),)
    stopped: Mapping[TopicPartition, int] = field(default_factory=dict)
    producer: int | None = None
    every_ms: int = MINUTE

    def age(self, at: int) -> float:
        """How far the group is behind at a time."""
        index = bisect_right(self.ages, at, key=lambda point: point[0])
        if index in (0, len(self.ages)):
            return self.ages[min(index, len(self.ages) - 1)][1]
        (since, from_age), (until, to_age) = self.ages[index - 1], self.ages[index]
        return from_age + (to_age - from_age) * (at - since) / (until - since)

    def _jitter(self, at: int) -> int:
        """The work on the records at hand, up to three seconds."""
        return (at // SECOND * 2_654_435_761 + len(self.group) * 7_919) // 1_000 % 30 * 100

    def offset(self, topics: ShopTopics, topic: str, partition: int, at: int) -> int:
        """The position of the group at a time: consumers read committed records only."""
        found = topics[topic]
        return min(found.end(partition, at - self.age(at) - self._jitter(at)), found.stable(partition, at))

    def write(self, log: ExampleLog, topics: ShopTopics, until: int) -> None:
        """Write the commits of all times up to `until`."""
        phase = sum(self.group.encode()) * 7 % (self.every_ms // SECOND) * SECOND
        for begin, end in self.running:
            first = begin + (phase - begin) % self.every_ms
            for at in range(first, end, self.every_ms):
                self.commit(log, topics, at, until)

    def commit(self, log: ExampleLog, topics: ShopTopics, at: int, until: int) -> None:
        """Write the commits of one time."""
        for topic, count in self.partitions.items():
            for partition in range(count):
                if at >= self.stopped.get((topic, partition), at + 1):
                    continue
                offset = self.offset(topics, topic, partition, at)
                if self.producer is None:
                    log.commit(self.group, topic, partition, offset, until + at)
                else:
                    log.commit(self.group, topic, partition, offset, until + at, producer=self.producer + partition)
                    log.commit_marker(self.group, until + at + _TRANSACTION_MS, self.producer + partition)
