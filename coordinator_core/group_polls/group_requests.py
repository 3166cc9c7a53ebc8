"""Requests of a poll, as messages of the client library; each in the newest version that it and the broker have.

FindCoordinator and OffsetFetch are requested with several groups, so brokers must be of Kafka 3.0 or later.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coordinator_core.group_polls.group_poll import TopicPartitionKey
from coordinator_core.sources.kafka_connection import RequestFor
from coordinator_core.wire import library

_GROUP_KEY = 0
#: KIP-699: several keys in one request.
_FIND_COORDINATOR_OF_SEVERAL = 4
#: KIP-709: several groups in one request. Version 10 has topic ids instead of names, and none for deleted topics.
_OFFSETS_OF_SEVERAL, _OFFSETS_BY_NAME = 8, 9


def list_groups_request() -> RequestFor:
    """All groups of a coordinator that the user may describe."""
    return lambda _versions: library.ListGroupsRequest(states_filter=[], types_filter=[])


def find_coordinators_request(group_ids: Sequence[str]) -> RequestFor:
    """The coordinators of groups; any broker answers."""
    keys = list(group_ids)
    return lambda _versions: library.FindCoordinatorRequest(
        key_type=_GROUP_KEY, coordinator_keys=keys, min_version=_FIND_COORDINATOR_OF_SEVERAL
    )


def describe_classic_request(group_ids: Sequence[str]) -> RequestFor:
    """Descriptions of classic groups by their coordinator."""
    groups = list(group_ids)
    return lambda _versions: library.DescribeGroupsRequest(groups=groups, include_authorized_operations=False)


def describe_consumer_request(group_ids: Sequence[str]) -> RequestFor:
    """Descriptions of groups of KIP-848 by their coordinator."""
    groups = list(group_ids)
    request: Any = library.ConsumerGroupDescribeRequest
    return lambda _versions: request(group_ids=groups, include_authorized_operations=False)


def all_offsets_request(group_ids: Iterable[str]) -> RequestFor:
    """All committed offsets of groups, of the topics that the user may describe."""
    return _offsets_request(dict.fromkeys(group_ids))


def named_offsets_request(wanted: Mapping[str, Iterable[TopicPartitionKey]]) -> RequestFor:
    """Committed offsets of named partitions: a partition without a commit is answered, one that may not be read is an error."""
    return _offsets_request(wanted)


def _offsets_request(wanted: Mapping[str, Iterable[TopicPartitionKey] | None]) -> RequestFor:
    request = library.OffsetFetchRequest
    group = request.OffsetFetchRequestGroup
    groups = [
        group(
            group_id=group_id,
            member_id=None,
            member_epoch=-1,
            topics=None if keys is None else [_topic(group, name, numbers) for name, numbers in sorted(_by_topic(keys).items())],
        )
        for group_id, keys in wanted.items()
    ]
    return lambda _versions: request(
        groups=groups, require_stable=False, min_version=_OFFSETS_OF_SEVERAL, max_version=_OFFSETS_BY_NAME
    )


def _topic(group: Any, name: str, numbers: list[int]) -> Any:
    return group.OffsetFetchRequestTopics(name=name, partition_indexes=sorted(numbers))


def _by_topic(keys: Iterable[TopicPartitionKey]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for key in keys:
        found.setdefault(key.topic, []).append(key.partition)
    return found
