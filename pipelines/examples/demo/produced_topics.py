"""Data topics of the demo: segments beside those of the coordinator, which the job samples as the ends of the topics."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.partition_log import PartitionLog
from coordinator_core.segment_log.settings import SegmentLogSettings

_EVERY_SECONDS = 0.5
#: Records per append in partition 0; partition N has N + 1 times as many. Members read a little more in the same time.
_RECORDS = 4
#: Every minute records arrive faster for some seconds than members read.
_BURST_EVERY, _BURST_LENGTH, _BURST_FACTOR = 120, 16, 4


class ProducedTopics:
    """Appends records to all partitions, with bursts that let groups fall behind."""

    def __init__(self, folder: Path, topics: Mapping[str, int]) -> None:
        self._logs = {
            TopicPartition(topic, number): _opened(folder / f"{topic}-{number}")
            for topic, count in topics.items()
            for number in range(count)
        }

    def end(self, partition: TopicPartition) -> int:
        """The log end of a partition."""
        return self._logs[partition].end_offset

    async def produce(self, clock_ms: Callable[[], int]) -> None:
        """Append until the task is cancelled."""
        number = 0
        try:
            while True:
                factor = _BURST_FACTOR if number % _BURST_EVERY >= _BURST_EVERY - _BURST_LENGTH else 1
                for partition, log in self._logs.items():
                    records = [(b"key", b"value")] * (_RECORDS * factor * (1 + partition.partition))
                    log.append([AppendBatch(records)], clock_ms())
                number += 1
                await asyncio.sleep(_EVERY_SECONDS)
        finally:
            for log in self._logs.values():
                log.close()


def _opened(folder: Path) -> PartitionLog:
    folder.mkdir(parents=True)
    return PartitionLog(folder, SegmentLogSettings())
