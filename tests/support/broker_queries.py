"""Requests to a broker about its groups over a plain socket, with the answers as values; no product code is involved.

kafka-python encodes what it knows; the describe requests of the new group types, which it lacks, are in `describe_layouts`.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from describe_layouts import DESCRIBE, Reader, array
from generations import Generation
from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse
from protocol_connection import ProtocolConnection

UNSTABLE_OFFSET_COMMIT = 88
#: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
NOT_LOADED = frozenset({14, 15, 16})
_GROUPS_PER_REQUEST = 200
_FIRST_WITH_SEVERAL_GROUPS = 8
_FIRST_WITH_STABLE = 7

Offset = tuple[int, int, str]
#: (topic, partition) → (offset, leader epoch, metadata)
Offsets = dict[tuple[str, int], Offset]


class NotLoaded(Exception):
    """The coordinator has not loaded the group's log partition, or has given it up."""


@dataclass(frozen=True)
class ListedGroup:
    """A group as ListGroups returns it; None where the version of the response lacks the field."""

    protocol_type: str
    state: str | None
    group_type: str | None


@dataclass(frozen=True)
class Member:
    """A described member. `assigned` and `subscribed` are bytes for classic groups, names for the others."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    subscribed: Any
    assigned: Any
    target: Any = None
    epoch: int | None = None
    regex: str | None = None
    rack: str | None = None


@dataclass(frozen=True)
class DescribedGroup:
    state: str
    protocol_type: str | None
    protocol: str | None
    members: tuple[Member, ...]
    epoch: int | None = None
    assignment_epoch: int | None = None


class BrokerQueries:
    """One connection to a broker of a generation; for one thread. Close it, or use it in a `with`."""

    def __init__(self, bootstrap: str, generation: Generation) -> None:
        self._generation = generation
        self._connection = ProtocolConnection(bootstrap, "oracle")

    def __enter__(self) -> "BrokerQueries":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def offsets(self, groups: Iterable[str]) -> dict[str, Offsets]:
        """OffsetFetch for every topic of every group; groups without offsets have an empty entry. Raises NotLoaded."""
        return {
            group: {(topic, p.partition_index): (p.committed_offset, _epoch(p), p.metadata or "") for topic, p in found}
            for group, found in self._offset_fetch({group: None for group in groups}, stable=False)
        }

    def unstable(self, partitions: Mapping[str, Iterable[tuple[str, int]]]) -> set[tuple[str, str, int]]:
        """Those of these partitions that OffsetFetch with `requireStable` (2.5) rejects: an open transaction commits to them."""
        if self._generation.offset_fetch < _FIRST_WITH_STABLE:
            return set()
        return {
            (group, topic, p.partition_index)
            for group, found in self._offset_fetch(partitions, stable=True)
            for topic, p in found
            if p.error_code == UNSTABLE_OFFSET_COMMIT
        }

    def listed(self) -> dict[str, ListedGroup]:
        """ListGroups for all states and types."""
        version = self._generation.list_groups
        response = self._connection.request(ListGroupsRequest(states_filter=[], types_filter=[]), ListGroupsResponse, version)
        if response.error_code:
            raise NotLoaded(f"ListGroups: error {response.error_code}")
        return {
            group.group_id: ListedGroup(
                group.protocol_type,
                group.group_state if version >= 4 else None,
                group.group_type.lower() if version >= 5 else None,
            )
            for group in response.groups
        }

    def classic(self, groups: Sequence[str]) -> dict[str, DescribedGroup]:
        """DescribeGroups; the state of a group that does not exist is Dead."""
        version = self._generation.describe_groups
        described = {}
        for some in _portions(groups):
            request = DescribeGroupsRequest(groups=list(some), include_authorized_operations=False)
            for group in self._connection.request(request, DescribeGroupsResponse, version).groups:
                members = tuple(
                    Member(
                        m.member_id,
                        m.group_instance_id if version >= 4 else None,
                        m.client_id,
                        m.client_host,
                        bytes(m.member_metadata),
                        bytes(m.member_assignment),
                    )
                    for m in group.members
                )
                described[group.group_id] = DescribedGroup(group.group_state, group.protocol_type, group.protocol_data, members)
        return described

    def modern(self, kind: str, groups: Sequence[str]) -> dict[str, DescribedGroup]:
        """ConsumerGroupDescribe, ShareGroupDescribe or StreamsGroupDescribe."""
        key, version, layout = DESCRIBE[kind]
        described = {}
        for some in _portions(groups):
            body = array(some) + b"\0\0"
            self._connection.send_bytes(struct.pack(">hhihB", key, version, 0, -1, 0) + body)
            reader = Reader(self._connection.receive_bytes(), 5)
            reader.int32()
            for group in reader.structs(layout):
                described[group["group_id"]] = _described(kind, group)
        return described

    def _offset_fetch(
        self, partitions: Mapping[str, Iterable[tuple[str, int]] | None], *, stable: bool
    ) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
        version = self._generation.offset_fetch
        if version < _FIRST_WITH_SEVERAL_GROUPS:
            for group, wanted in partitions.items():
                topics = _topics(OffsetFetchRequest.OffsetFetchRequestTopic, wanted)
                request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
                yield group, _fetched(self._connection.request(request, OffsetFetchResponse, version), group)
            return
        Group = OffsetFetchRequest.OffsetFetchRequestGroup  # noqa: N806 - the classes are made from Kafka's schemas
        for some in _portions(list(partitions)):
            groups = []
            for group in some:
                topics = _topics(Group.OffsetFetchRequestTopics, partitions[group])
                groups.append(Group(group_id=group, member_id=None, member_epoch=-1, topics=topics))
            response = self._connection.request(
                OffsetFetchRequest(groups=groups, require_stable=stable), OffsetFetchResponse, version
            )
            for found in response.groups:
                yield found.group_id, _fetched(found, found.group_id)


@dataclass(frozen=True)
class BrokerAnswers:
    """All answers of a broker about some groups."""

    offsets: Mapping[str, Offsets]
    unstable: frozenset[tuple[str, str, int]]
    listed: Mapping[str, ListedGroup]
    classic: Mapping[str, DescribedGroup]
    modern: Mapping[str, DescribedGroup]

    @classmethod
    def collect(cls, queries: BrokerQueries, groups: Sequence[str], partitions: Sequence[tuple[str, int]]) -> "BrokerAnswers":
        """Send every query; look for open transactions in these topics and partitions of every group."""
        listed = queries.listed()
        of_kind = {kind: [g for g in groups if g in listed and listed[g].group_type == kind] for kind in DESCRIBE}
        modern = {group: found for kind, some in of_kind.items() if some for group, found in queries.modern(kind, some).items()}
        return cls(
            queries.offsets(groups),
            frozenset(queries.unstable(dict.fromkeys(groups, partitions))),
            listed,
            queries.classic([group for group in groups if group not in modern]),
            modern,
        )


def _portions(groups: Sequence[str]) -> Iterator[Sequence[str]]:
    return (groups[start : start + _GROUPS_PER_REQUEST] for start in range(0, len(groups), _GROUPS_PER_REQUEST))


def _topics(topic_class: Any, wanted: Iterable[tuple[str, int]] | None) -> list[Any] | None:
    if wanted is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, partition in wanted:
        by_topic.setdefault(topic, []).append(partition)
    return [topic_class(name=topic, partition_indexes=partitions) for topic, partitions in by_topic.items()]


def _fetched(answer: Any, group: str) -> list[tuple[str, Any]]:
    if answer.error_code in NOT_LOADED:
        raise NotLoaded(f"OffsetFetch of {group}: error {answer.error_code}")
    return [
        (topic.name, partition)
        for topic in answer.topics
        for partition in topic.partitions
        if partition.committed_offset != -1 or partition.error_code
    ]


def _epoch(partition: Any) -> int:
    return -1 if partition.committed_leader_epoch is None else partition.committed_leader_epoch


def _described(kind: str, group: Mapping[str, Any]) -> DescribedGroup:
    if group["error_code"]:
        return DescribedGroup(f"error {group['error_code']}: {group['error_message']}", None, None, ())
    sources = {s["subtopology"]: s for s in ((group.get("topology") or {}).get("subtopologies") or [])}
    members = tuple(
        Member(
            m["member_id"],
            m.get("instance_id"),
            m["client_id"],
            m["client_host"],
            None if kind == "streams" else tuple(sorted(m["subscribed"])),
            _partitions(m["assigned"], sources),
            _partitions(m["target"], sources) if "target" in m else None,
            m["epoch"],
            m.get("regex"),
            m["rack"],
        )
        for m in group["members"]
    )
    return DescribedGroup(group["state"], None, group.get("assignor"), members, group["epoch"], group["assignment_epoch"])


def _partitions(assignment: Mapping[str, Any], sources: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Topic and partition of an assignment; for active tasks, the partitions of the source topics."""
    if "topics" in assignment:
        return tuple(sorted((topic["topic"], p) for topic in assignment["topics"] for p in topic["partitions"]))
    found = {
        (topic, p)
        for tasks in assignment["active"]
        for topic in sources.get(tasks["subtopology"], {"source_topics": []})["source_topics"]
        for p in tasks["partitions"]
    }
    return tuple(sorted(found))
