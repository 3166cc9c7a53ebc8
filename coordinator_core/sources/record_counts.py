"""Data records at the ends of partitions, read by Fetch, for the number of records that a group has still to read."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health.record_counts import RecordCount
from coordinator_core.log.columns import parse_columns
from coordinator_core.log.data_records import data_offsets
from coordinator_core.log.errors import LogError
from coordinator_core.sources.kafka_connection import KafkaConnection, borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.kafka_requests import READ_COMMITTED, fetch_request
from coordinator_core.sources.kafka_topic import NO_ANSWER, BrokerError, Leader, Topic, reason_of
from coordinator_core.sources.topic_leaders import partitions_by_leader

_PARTITION_BYTES = 64 * 1024
#: A partition whose next batch is larger gets this much.
_LARGEST_BATCH_BYTES = 1024 * 1024

_Key = tuple[str, int]


class FetchBudget(NamedTuple):
    """Most bytes of records and most seconds of one call; a request that is under way is finished."""

    record_bytes: int = 8 * 1024 * 1024
    seconds: float = 2.0


DEFAULT_BUDGET = FetchBudget()


@dataclass(frozen=True, slots=True)
class DataRecords:
    """Offsets of the data records from `start` up to `until`, which is lower than requested before an open transaction."""

    start: int
    until: int
    offsets: Int64s

    def left_to(self, group_offset: int) -> RecordCount:
        """The records that are left to a group at this committed offset."""
        left = self.offsets[self.offsets >= group_offset]
        return RecordCount(group_offset, max(group_offset, self.until), len(left), int(left[0]) if len(left) else None)


@dataclass(slots=True)
class _PartitionCount:
    position: int
    end: int
    offsets: list[Int64s]
    max_bytes: int = _PARTITION_BYTES
    start: int = 0

    def __post_init__(self) -> None:
        self.start = self.position


class DataRecordReader:
    """Reads ranges at the ends of partitions of the cluster of a `kafka://` address. For one thread at a time."""

    def __init__(self, address: str, options: Mapping[str, str] | None) -> None:
        self._servers = parse_address(address).servers
        self._options = dict(options or {})

    def read(self, ranges: Mapping[_Key, tuple[int, int]], budget: FetchBudget = DEFAULT_BUDGET) -> dict[_Key, DataRecords | str]:
        """The data records of each range, or the reason why it cannot be read.

        `ranges`: (topic, partition) → start offset and high watermark. One Fetch per leader and round has all its partitions. The
        user needs the ACL Read on a topic. Ranges that the budget does not allow have the reason `budget_exceeded`. Raises
        LogError if no broker answers.
        """
        with borrowed_connection(self._servers, self._options) as connection:
            return _Call(connection, ranges, budget).run()


class _Call:
    def __init__(self, connection: KafkaConnection, ranges: Mapping[_Key, tuple[int, int]], budget: FetchBudget) -> None:
        self._connection = connection
        self._readings = {key: _PartitionCount(start, end, []) for key, (start, end) in ranges.items()}
        self._bytes_left = budget.record_bytes
        self._deadline = time.monotonic() + budget.seconds
        self._results: dict[_Key, DataRecords | str] = {}

    def run(self) -> dict[_Key, DataRecords | str]:
        wanted: dict[str, list[int]] = {}
        for topic, partition in self._readings:
            wanted.setdefault(topic, []).append(partition)
        leaders = partitions_by_leader(self._connection, wanted)
        for key, error in leaders.errors.items():
            self._fail(key, reason_of(error))
        while self._readings and self._bytes_left > 0 and time.monotonic() < self._deadline:
            requested = {node: self._open(partitions) for node, partitions in leaders.by_node.items()}
            requests = {
                node: partial(self._request, leaders.topics, partitions)() for node, partitions in requested.items() if partitions
            }
            for node, response in self._connection.send_all(requests).items():
                self._take(response, leaders.topics, requested[node])
        for key in list(self._readings):
            self._fail(key, "budget_exceeded")
        return self._results

    def _open(self, partitions: Mapping[str, Mapping[int, Leader]]) -> dict[_Key, Leader]:
        """Partitions of a leader that are not read to their end, those that have waited longest first."""
        led = {(topic, number): leader for topic, numbers in partitions.items() for number, leader in numbers.items()}
        return {key: led[key] for key in self._readings if key in led}

    def _request(self, topics: Mapping[str, Topic], partitions: Mapping[_Key, Leader]) -> Any:
        wanted: dict[str, list[tuple[int, int, int, int]]] = {}
        for (topic, number), leader in partitions.items():
            reading = self._readings[topic, number]
            wanted.setdefault(topic, []).append((number, leader.epoch, reading.position, reading.max_bytes))
        return fetch_request(
            [(topics[topic], each) for topic, each in wanted.items()], max(self._bytes_left, _PARTITION_BYTES), READ_COMMITTED
        )

    def _take(self, response: Any, topics: Mapping[str, Topic], requested: Mapping[_Key, Leader]) -> None:
        if isinstance(response, LogError) or response.error_code:
            reason = NO_ANSWER if isinstance(response, LogError) else reason_of(response.error_code)
            for key in requested:
                self._fail(key, reason)
            return
        names: dict[Any, str] = {topic.topic_id: name for name, topic in topics.items() if topic.topic_id is not None}
        first_requested = next(iter(requested))
        for topic in response.responses or ():
            name = topic.topic or names.get(UUID(int=topic.topic_id.int), "")
            for part in topic.partitions or ():
                found = (name, part.partition_index)
                if found in requested:
                    self._take_part(found, part, is_first=found == first_requested)

    def _take_part(self, key: _Key, part: Any, *, is_first: bool) -> None:
        if part.error_code != BrokerError.NONE:
            self._fail(key, reason_of(part.error_code))
            return
        reading = self._readings[key]
        records = bytes(part.records or b"")
        self._bytes_left -= len(records)
        until = min(reading.end, max(reading.position, part.last_stable_offset))
        columns = parse_columns(records, reading.position, until)
        if columns.next_offset > reading.position:
            aborted = [(each.producer_id, each.first_offset) for each in part.aborted_transactions or ()]
            reading.offsets.append(data_offsets(columns, aborted))
            reading.position = columns.next_offset
        elif records:
            reading.max_bytes = _LARGEST_BATCH_BYTES
            if is_first:
                self._fail(key, "batch_too_large" if len(records) >= _LARGEST_BATCH_BYTES else "unreadable_batch")
                return
        elif is_first or reading.position >= until:
            # compaction removed the rest, or it belongs to an open transaction
            reading.position = until
        if reading.position >= until:
            found = np.concatenate([np.zeros(0, np.int64), *reading.offsets])
            self._results[key] = DataRecords(reading.start, until, found)
            del self._readings[key]
        elif not records:
            # the response had no room for it: first in the next request
            self._readings = {key: reading, **self._readings}

    def _fail(self, key: _Key, reason: str) -> None:
        if self._readings.pop(key, None) is not None:
            self._results[key] = reason
