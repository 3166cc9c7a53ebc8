"""Topics of the shop: records appended by a daily rhythm, and the broker's answers about their ends."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.health import EndOffsetSample
from pipelines.examples.history.log import random_id

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000

#: Waves of the traffic of a day: (per day, share of the mean, distance of a peak from the end of the history).
_WAVES = ((1, 0.55, 2 * HOUR), (2, 0.18, -5 * HOUR), (5, 0.05, HOUR))
#: The default of `lag.interval_seconds`.
SAMPLE_INTERVAL_MS = 30 * SECOND
_ANSWERED_AFTER_MS = 12
_LEADER_EPOCH = 7


@dataclass(frozen=True)
class ShopTopic:
    """A topic with a mean rate (records per second) for each partition. Times are in ms relative to the end of the history.

    Attributes:
        retention_ms: age at which records are deleted
        created_at: time of the first record
        active: (start, end) of the times in which records are appended; None for always
        open_transactions: for a partition, the time since which an open transaction holds back its last stable offset
    """

    name: str
    rates: tuple[float, ...]
    retention_ms: int = 7 * DAY
    created_at: int = -40 * DAY
    active: Sequence[tuple[int, int]] | None = None
    open_transactions: Mapping[int, int] | None = None

    @property
    def topic_id(self) -> UUID:
        return random_id(self.name, 1)

    def end(self, partition: int, at: float) -> int:
        """The log end at a time; it never falls."""
        if self.active is None:
            flow = max(0.0, _flow(at) - _flow(self.created_at))
        else:
            flow = sum(_flow(min(at, end)) - _flow(start) for start, end in self.active if at > start)
        return math.floor(self.rates[partition] * flow / SECOND)

    def start(self, partition: int, at: int) -> int:
        """The log start at a time: retention deletes whole segments, which have an hour of records."""
        return self.end(partition, (at - self.retention_ms) // HOUR * HOUR)

    def stable(self, partition: int, at: int) -> int:
        """The last stable offset at a time."""
        since = (self.open_transactions or {}).get(partition)
        return self.end(partition, at if since is None else min(at, since))

    def sample(self, partition: int, at: int, until: int) -> EndOffsetSample:
        """The answer of the leader at a time relative to `until`."""
        asked_at = until + at
        return EndOffsetSample(
            uuid_text(self.topic_id),
            self.name,
            partition,
            asked_at,
            asked_at + _ANSWERED_AFTER_MS,
            self.start(partition, at),
            self.end(partition, at),
            self.stable(partition, at),
            _LEADER_EPOCH,
        )


@lru_cache(maxsize=65_536)
def _flow(at: float) -> float:
    """The integral of the rhythm, whose mean is 1, in ms."""
    return at + sum(
        share * DAY / (2 * math.pi * per_day) * math.sin(2 * math.pi * per_day * (at + peak) / DAY)
        for per_day, share, peak in _WAVES
    )


class ShopTopics:
    """All topics of the shop, as a broker at `until` and before."""

    def __init__(self, topics: Iterable[ShopTopic], until: int) -> None:
        self._topics = {topic.name: topic for topic in topics}
        self._until = until

    def __getitem__(self, name: str) -> ShopTopic:
        return self._topics[name]

    def ids(self) -> dict[str, UUID]:
        """The id of each topic."""
        return {name: topic.topic_id for name, topic in self._topics.items()}

    def samples(self, topic: str, partitions: Iterable[int], at: int) -> Iterator[EndOffsetSample]:
        """Answers about the partitions of a topic. If the topic grows all the time, there are two, as in a run of samples.

        `maintain` thins samples, and keeps neighbours. Two equal samples would be a run, which has one row.
        """
        found = self._topics[topic]
        distances = (SAMPLE_INTERVAL_MS, 0) if found.active is None else (0,)
        for partition in partitions:
            for before in distances:
                yield found.sample(partition, at - before - self._until, self._until)
