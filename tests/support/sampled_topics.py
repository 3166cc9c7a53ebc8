"""A cluster that answers samples of end offsets, and samples of it in tables without Spark."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pyarrow as pa

from coordinator_core.health import EndOffsetSample, samples_table
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter

START_MS = 1_795_000_000_000


class SampledTopics:
    """Stands for the cluster: ends of topics, and the time of the next request. A text instead of an end is a reason."""

    def __init__(self, **ends: int | str) -> None:
        self.ends: dict[str, int | str] = dict(ends)
        self.now_ms = START_MS
        self.requests: list[dict[str, list[int]]] = []

    def sample(self, wanted: Mapping[str, set[int]]) -> pa.Table:
        self.requests.append({topic: sorted(partitions) for topic, partitions in wanted.items()})
        samples = []
        for topic, partitions in sorted(wanted.items()):
            end = self.ends.get(topic, "unknown_topic_or_partition")
            for number in sorted(partitions):
                times = (topic, number, self.now_ms, self.now_ms + 10)
                if isinstance(end, str):
                    samples.append(EndOffsetSample(None, *times, None, None, reason=end))
                else:
                    samples.append(EndOffsetSample(None, *times, 0, end, end, 1))
        return samples_table(samples)

    def clock(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)


class TopicSampler:
    """A job that takes samples, and begins with a claim."""

    def __init__(self, root: str, topics: SampledTopics) -> None:
        self._sampling = LagSampling(topics.sample, topics.clock)
        self._writer = TablesWriter.claim(TableStore(root))

    def sample(self) -> Batch:
        """Write a batch with a sample of now, which must differ from the last one."""
        batch = self._sampling.sample(self._writer)
        assert batch is not None
        return batch


def sampled(root: str, topics: SampledTopics) -> Batch:
    """Sample in a new process."""
    return TopicSampler(root, topics).sample()
