"""Append times of records of many partitions, by ListOffsets with timestamps (`TimestampSearch`)."""

from collections.abc import Mapping

from coordinator_core.health.timestamp_search import TimestampSearch
from coordinator_core.log.errors import LogError
from coordinator_core.sources.kafka_connection import KafkaConnection, borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.kafka_requests import offsets_request
from coordinator_core.sources.kafka_topic import BrokerError
from coordinator_core.sources.topic_leaders import Leaders, partitions_by_leader

_NO_RECORD = -1
#: Enough for an interval of 12 days at a resolution of one second.
_MOST_ROUNDS = 20

_Key = tuple[str, int]


class AppendTimeReader:
    """Searches in partitions of the cluster of a `kafka://` address. For one thread at a time."""

    def __init__(self, address: str, options: Mapping[str, str] | None) -> None:
        self._servers = parse_address(address).servers
        self._options = dict(options or {})

    def search(self, searches: Mapping[_Key, TimestampSearch]) -> dict[_Key, TimestampSearch]:
        """Take all steps of each search, one request per leader and step. Searches that fail are left out.

        The user needs the ACL Describe on the topics. Raises LogError if no broker answers.
        """
        with borrowed_connection(self._servers, self._options) as connection:
            wanted: dict[str, list[int]] = {}
            for topic, partition in searches:
                wanted.setdefault(topic, []).append(partition)
            leaders = partitions_by_leader(connection, wanted).by_node
            found = dict(searches)
            for _ in range(_MOST_ROUNDS):
                steps = {key: step for key, each in found.items() if (step := each.next_timestamp_ms) is not None}
                if not steps:
                    break
                offsets = _first_offsets(connection, leaders, steps)
                found = {
                    key: each.narrowed(steps[key], offsets[key]) if key in steps else each
                    for key, each in found.items()
                    if key not in steps or key in offsets
                }
            return {key: each for key, each in found.items() if each.next_timestamp_ms is None}


def _first_offsets(connection: KafkaConnection, leaders: Leaders, timestamps: Mapping[_Key, int]) -> dict[_Key, int | None]:
    """The first offset with at least the timestamp; None if no record has one. Without the partitions that have errors."""
    requests = {}
    for node, topics in leaders.items():
        asked = {name: {p: leader for p, leader in each.items() if (name, p) in timestamps} for name, each in topics.items()}
        if asked := {name: each for name, each in asked.items() if each}:
            requests[node] = offsets_request(asked, timestamps)
    found: dict[_Key, int | None] = {}
    for response in connection.send_all(requests).values():
        if isinstance(response, LogError):
            continue
        for topic in response.topics or ():
            for part in topic.partitions or ():
                if part.error_code == BrokerError.NONE:
                    found[topic.name, part.partition_index] = None if part.offset == _NO_RECORD else part.offset
    return found
