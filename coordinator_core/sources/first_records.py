"""The first records of open transactions, read by Fetch at last stable offsets: producer and timestamp."""

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from coordinator_core.health.open_transactions import FirstRecord
from coordinator_core.log.errors import LogError
from coordinator_core.log.record_batch import HEADER_SIZE, NO_PRODUCER_ID, read_header
from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.kafka_requests import fetch_request
from coordinator_core.sources.kafka_topic import NO_ANSWER, BrokerError, Leader, Topic, reason_of
from coordinator_core.sources.topic_leaders import PartitionsByLeader, partitions_by_leader

#: Enough for a small batch. A broker returns a larger one only for the first partition of a request.
_PARTITION_BYTES = 16 * 1024
#: Most bytes of one response, unless the first batch is larger.
_RESPONSE_BYTES = 4 * 1024 * 1024
#: Transactional batches have this format at least (KIP-98).
_MAGIC_2 = 2

_Key = tuple[str, int]


class FirstRecordReader:
    """Reads one batch per partition from the cluster of a `kafka://` address. For one thread at a time."""

    def __init__(self, address: str, options: Mapping[str, str] | None) -> None:
        self._servers = parse_address(address).servers
        self._options = dict(options or {})

    def read(self, offsets: Mapping[_Key, int], seconds: float = 2.0) -> dict[_Key, FirstRecord | str]:
        """The record at each offset by (topic, partition), or the reason why it is unknown.

        The user needs the ACL Read on a topic. Partitions that are not reached in `seconds` have the reason `budget_exceeded`; a
        request that is under way is finished. Raises LogError if no broker answers.
        """
        with borrowed_connection(self._servers, self._options) as connection:
            wanted: dict[str, list[int]] = {}
            for topic, partition in offsets:
                wanted.setdefault(topic, []).append(partition)
            leaders = partitions_by_leader(connection, wanted)
            found: dict[_Key, FirstRecord | str] = {key: reason_of(code) for key, code in leaders.errors.items()}
            deadline = time.monotonic() + seconds
            while len(found) < len(offsets) and time.monotonic() < deadline:
                requested = _missing(leaders, found)
                requests = {node: _request(leaders.topics, partitions, offsets) for node, partitions in requested.items()}
                for node, response in connection.send_all(requests).items():
                    found |= _found(response, leaders.topics, requested[node], offsets)
            return {key: found.get(key, "budget_exceeded") for key in offsets}


def _missing(leaders: PartitionsByLeader, found: Mapping[_Key, FirstRecord | str]) -> dict[int, dict[_Key, Leader]]:
    """The partitions of each leader that have no result yet."""
    missing = {
        node: {
            (topic, number): leader
            for topic, numbers in partitions.items()
            for number, leader in numbers.items()
            if (topic, number) not in found
        }
        for node, partitions in leaders.by_node.items()
    }
    return {node: partitions for node, partitions in missing.items() if partitions}


def _request(topics: Mapping[str, Topic], partitions: Mapping[_Key, Leader], offsets: Mapping[_Key, int]) -> Any:
    wanted: dict[str, list[tuple[int, int, int, int]]] = {}
    for (topic, number), leader in partitions.items():
        wanted.setdefault(topic, []).append((number, leader.epoch, offsets[topic, number], _PARTITION_BYTES))
    return fetch_request([(topics[topic], each) for topic, each in wanted.items()], _RESPONSE_BYTES)


def _found(
    response: Any, topics: Mapping[str, Topic], requested: Mapping[_Key, Leader], offsets: Mapping[_Key, int]
) -> dict[_Key, FirstRecord | str]:
    """The results of a response; partitions without room in it are left out."""
    if isinstance(response, LogError) or response.error_code:
        reason = NO_ANSWER if isinstance(response, LogError) else reason_of(response.error_code)
        return dict.fromkeys(requested, reason)
    names: dict[Any, str] = {topic.topic_id: name for name, topic in topics.items() if topic.topic_id is not None}
    first = next(iter(requested))
    found: dict[_Key, FirstRecord | str] = {}
    for topic in response.responses or ():
        name = topic.topic or names.get(UUID(int=topic.topic_id.int), "")
        for part in topic.partitions or ():
            key = (name, part.partition_index)
            if key not in requested:
                continue
            records = bytes(part.records or b"")
            if part.error_code != BrokerError.NONE:
                found[key] = reason_of(part.error_code)
            elif len(records) >= HEADER_SIZE:
                found[key] = first_record(records, offsets[key])
            elif key == first:
                # compaction or deletion removed it
                found[key] = "no_record"
    # a leader that leaves out the first partition would do so again
    return found or {first: NO_ANSWER}


def first_record(records: bytes, offset: int) -> FirstRecord | str:
    """The record at `offset` from the header of the first batch, or the reason why that does not show it."""
    header = read_header(memoryview(records))
    if header.magic < _MAGIC_2 or not header.is_transactional or header.is_control or header.producer_id == NO_PRODUCER_ID:
        return "no_transaction"
    if not header.base_offset <= offset <= header.last_offset:
        return "no_record"
    if header.is_log_append_time:
        timestamp = header.max_timestamp
    else:
        # the base timestamp is that of the first record; the cleaner may replace it by its own time
        timestamp = -1 if header.delete_horizon is not None else header.base_timestamp
    return FirstRecord(header.producer_id, header.producer_epoch, timestamp if timestamp >= 0 else None)
