"""Requests of a poll, as messages of the client library; each in the newest version that it and the broker have.

FindCoordinator and OffsetFetch are about several groups since Kafka 3.0 (KIP-699, KIP-709), and about one group before. The
oldest brokers are those of 0.10.2, the first whose OffsetFetch reports all offsets of a group.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from coordinator_core.group_polls.group_poll import TopicPartitionKey
from coordinator_core.sources.kafka_connection import RequestFor
from coordinator_core.wire import library

_GROUP_KEY = 0
#: KIP-699: several keys in one request.
_FIND_COORDINATOR_OF_ONE, _FIND_COORDINATOR_OF_SEVERAL = 3, 4
#: KIP-709: several groups in one request. Version 10 has topic ids instead of names, and none for deleted topics.
_OFFSETS_OF_SEVERAL, _OFFSETS_BY_NAME = 8, 9
#: Version 2 is the first with a null array for all topics, and with an error of the group (KIP-88).
_ALL_OFFSETS, _OFFSETS_OF_ONE = 2, 7


def takes_several(versions: Any) -> bool:
    """True if a broker with these API versions answers FindCoordinator and OffsetFetch about several groups."""
    return bool(
        versions.api_version(library.FindCoordinatorRequest) >= _FIND_COORDINATOR_OF_SEVERAL
        and versions.api_version(library.OffsetFetchRequest) >= _OFFSETS_OF_SEVERAL
    )


def list_groups_request(connected: Callable[[Any], object]) -> RequestFor:
    """All groups of a coordinator that the user may describe. `connected` is called with the API versions of the broker."""

    def request_for(versions: Any) -> Any:
        connected(versions)
        return library.ListGroupsRequest(states_filter=[], types_filter=[])

    return request_for


def find_coordinators_request(group_ids: Sequence[str]) -> RequestFor:
    """The coordinators of groups; any broker answers. Brokers before 3.0 are asked about one group."""
    keys = list(group_ids)
    request = library.FindCoordinatorRequest

    def request_for(versions: Any) -> Any:
        if len(keys) == 1 and not takes_several(versions):
            return request(key=keys[0], key_type=_GROUP_KEY, max_version=_FIND_COORDINATOR_OF_ONE)
        return request(key_type=_GROUP_KEY, coordinator_keys=keys, min_version=_FIND_COORDINATOR_OF_SEVERAL)

    return request_for


def found_coordinators(answer: Any, group_ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The groups that were asked about, with the parts of the answer about them: error code and node id."""
    if answer.API_VERSION < _FIND_COORDINATOR_OF_SEVERAL:
        yield group_ids[0], answer
    else:
        yield from ((found.key, found) for found in answer.coordinators or ())


def describe_classic_request(group_ids: Sequence[str]) -> RequestFor:
    """Descriptions of classic groups by their coordinator."""
    groups = list(group_ids)
    return lambda _versions: library.DescribeGroupsRequest(groups=groups, include_authorized_operations=False)


def describe_request(request: Any) -> Callable[[Sequence[str]], RequestFor]:
    """Descriptions of groups of KIP-848, KIP-932 or KIP-1071 by their coordinator; `request` is the class of the message."""

    def of_groups(group_ids: Sequence[str]) -> RequestFor:
        groups = list(group_ids)
        return lambda _versions: request(group_ids=groups, include_authorized_operations=False)

    return of_groups


def all_offsets_request(group_ids: Iterable[str]) -> RequestFor:
    """All committed offsets of groups, of the topics that the user may describe. Brokers before 3.0 are asked about one group."""
    return _offsets_request(dict.fromkeys(group_ids))


def named_offsets_request(wanted: Mapping[str, Iterable[TopicPartitionKey]]) -> RequestFor:
    """Committed offsets of named partitions: a partition without a commit is answered, one that may not be read is an error."""
    return _offsets_request(wanted)


def offsets_of_groups(answer: Any, group_ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The groups that were asked about, with the parts of the answer about them: error code and topics."""
    if answer.API_VERSION < _OFFSETS_OF_SEVERAL:
        yield group_ids[0], answer
    else:
        yield from ((group.group_id, group) for group in answer.groups or ())


def _offsets_request(wanted: Mapping[str, Iterable[TopicPartitionKey] | None]) -> RequestFor:
    topics = {group_id: None if keys is None else sorted(_by_topic(keys).items()) for group_id, keys in wanted.items()}

    def request_for(versions: Any) -> Any:
        return _of_one(*next(iter(topics.items()))) if len(topics) == 1 and not takes_several(versions) else _of_several(topics)

    return request_for


#: Partitions by topic; None for all topics.
_Topics = list[tuple[str, list[int]]] | None


def _of_one(group_id: str, topics: _Topics) -> Any:
    request = library.OffsetFetchRequest
    parts = (
        None
        if topics is None
        else [request.OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in topics]
    )
    return request(group_id=group_id, topics=parts, require_stable=False, min_version=_ALL_OFFSETS, max_version=_OFFSETS_OF_ONE)


def _of_several(wanted: Mapping[str, _Topics]) -> Any:
    request = library.OffsetFetchRequest
    group = request.OffsetFetchRequestGroup
    groups = [
        group(
            group_id=group_id,
            member_id=None,
            member_epoch=-1,
            topics=None
            if topics is None
            else [group.OffsetFetchRequestTopics(name=name, partition_indexes=numbers) for name, numbers in topics],
        )
        for group_id, topics in wanted.items()
    ]
    return request(groups=groups, require_stable=False, min_version=_OFFSETS_OF_SEVERAL, max_version=_OFFSETS_BY_NAME)


def _by_topic(keys: Iterable[TopicPartitionKey]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for key in sorted(keys):
        found.setdefault(key.topic, []).append(key.partition)
    return found
