"""Client side of the APIs of members: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.cluster import (
    ApiVersionRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
    Broker,
    FinalizedFeature,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    PartitionMetadata,
)
from coordinator_core.protocol.groups import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    Node,
)
from coordinator_core.protocol.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeftMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.protocol.offsets import (
    FetchedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetToCommit,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    ClientCodec,
    by_topic,
    error_of,
    id_of,
    read_operations,
    require,
    require_one,
    topic_name,
)
from coordinator_core.wire.errors import Unwritable

_Names = Mapping[UUID, str]


def _write_versions_request(parts: Sequence[ApiVersionsRequest], version: int) -> Any:
    request = require_one(parts, version)
    return library.ApiVersionsRequest(
        client_software_name=request.software_name or "", client_software_version=request.software_version or ""
    )


def _read_versions_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[ApiVersionsResponse]:
    apis = tuple(ApiVersionRange(each.api_key, each.min_version, each.max_version) for each in require(body.api_keys, "api_keys"))
    finalized = tuple(
        FinalizedFeature(require(each.name, "feature"), each.max_version_level) for each in body.finalized_features or ()
    )
    return (ApiVersionsResponse(error_of(body.error_code), apis, finalized),)


def _write_metadata_request(parts: Sequence[MetadataRequest], version: int) -> Any:
    request = require_one(parts, version)
    creation_is_optional = apis.METADATA.has_field(version, "allow_auto_topic_creation")
    if request.topics and not request.allow_auto_topic_creation and not creation_is_optional:
        first = apis.METADATA.first_versions["allow_auto_topic_creation"]
        raise Unwritable(f"Metadata v{version} always creates missing topics: use v{first} or later")
    topics = None
    if request.topics is not None:
        if not request.topics and not apis.METADATA.has_field(version, "null_for_all_topics"):
            raise Unwritable(f"Metadata v{version} cannot request an empty list of topics: name a topic")
        kind = library.MetadataRequest.MetadataRequestTopic
        topics = [kind(name=topic.name, topic_id=topic.topic_id) for topic in request.topics]
    elif not apis.METADATA.has_field(version, "null_for_all_topics"):
        topics = []
    return library.MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=request.allow_auto_topic_creation,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=request.include_topic_operations,
    )


def _read_metadata_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[MetadataResponse]:
    has_operations = apis.METADATA.has_field(version, "authorized_operations")
    return (
        MetadataResponse(
            brokers=tuple(
                Broker(each.node_id, require(each.host, "host"), each.port, each.rack)
                for each in require(body.brokers, "brokers")
            ),
            topics=tuple(
                MetadataResponseTopic(
                    name=topic.name,
                    partitions=tuple(_read_partition(each) for each in require(topic.partitions, "partitions")),
                    error=error_of(topic.error_code),
                    topic_id=id_of(topic.topic_id),
                    is_internal=topic.is_internal,
                    authorized_operations=read_operations(topic.authorized_operations) if has_operations else None,
                )
                for topic in require(body.topics, "topics")
            ),
            cluster_id=body.cluster_id,
            controller_id=body.controller_id,
            error=error_of(body.error_code or 0),
        ),
    )


def _read_partition(body: Any) -> PartitionMetadata:
    return PartitionMetadata(
        partition=body.partition_index,
        leader=body.leader_id,
        leader_epoch=body.leader_epoch,
        replicas=tuple(require(body.replica_nodes, "replica_nodes")),
        in_sync=tuple(require(body.isr_nodes, "isr_nodes")),
        error=error_of(body.error_code),
    )


def _write_commit_request(parts: Sequence[OffsetCommitRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind = library.OffsetCommitRequest.OffsetCommitRequestTopic
    return library.OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_ms,
        topics=[
            kind(
                name=name,
                topic_id=_commit_id(name, offsets, version),
                partitions=[
                    kind.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        commit_timestamp=offset.commit_timestamp,
                        committed_metadata=offset.metadata,
                    )
                    for partition, offset in offsets
                ],
            )
            for name, offsets in by_topic(request.offsets.items()).items()
        ],
    )


def _commit_id(name: str, offsets: Sequence[tuple[int, OffsetToCommit]], version: int) -> UUID:
    topic_id = offsets[0][1].topic_id
    if topic_id == ZERO_UUID and apis.OFFSET_COMMIT.has_field(version, "topic_id"):
        raise Unwritable(f"OffsetCommit v{version} needs the id of topic {name!r}")
    return topic_id


def _read_commit_response(body: Any, version: int, names: Mapping[UUID, str]) -> tuple[OffsetCommitResponse]:
    by_id = apis.OFFSET_COMMIT.has_field(version, "topic_id")
    return (read_commit_errors(body, names if by_id else None),)


def read_commit_errors(body: Any, names: Mapping[UUID, str] | None) -> OffsetCommitResponse:
    """Read the errors of partitions, with the names of topics from `names` if the response has ids. Raises BadField."""
    return OffsetCommitResponse(
        {
            TopicPartition(topic_name(topic, names), each.partition_index): error_of(each.error_code)
            for topic in require(body.topics, "topics")
            for each in require(topic.partitions, "partitions")
        }
    )


def _write_find_request(parts: Sequence[FindCoordinatorRequest], version: int) -> Any:
    request = require_one(parts, version)
    if request.key_type is None:
        raise Unwritable("FindCoordinator needs a key type")
    if apis.FIND_COORDINATOR.has_field(version, "keys"):
        return library.FindCoordinatorRequest(key_type=request.key_type, coordinator_keys=list(request.keys))
    if request.key_type is not CoordinatorType.GROUP and not apis.FIND_COORDINATOR.has_field(version, "key_type"):
        raise Unwritable(f"FindCoordinator v{version} finds only coordinators of groups, not of type {request.key_type.name}")
    return library.FindCoordinatorRequest(key=require_one(request.keys, version), key_type=request.key_type)


def _read_find_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[FindCoordinatorResponse]:
    if apis.FIND_COORDINATOR.has_field(version, "keys"):
        found = tuple(_found(each, require(each.key, "key")) for each in require(body.coordinators, "coordinators"))
    else:
        found = (_found(body, ""),)
    return (FindCoordinatorResponse(found),)


def _found(body: Any, key: str) -> FoundCoordinator:
    return FoundCoordinator(key, error_of(body.error_code), Node(body.node_id, require(body.host, "host"), body.port))


def _write_join_request(parts: Sequence[JoinGroupRequest], version: int) -> Any:
    request = require_one(parts, version)
    return library.JoinGroupRequest(
        group_id=request.group_id,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocols=[
            library.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in request.protocols
        ],
        reason=request.reason,
    )


def _read_join_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[JoinGroupResponse]:
    nullable = apis.JOIN_GROUP.has_field(version, "protocol_type_in_response")
    return (
        JoinGroupResponse(
            error=error_of(body.error_code),
            member_id=require(body.member_id, "member_id"),
            generation=body.generation_id,
            protocol_type=body.protocol_type if nullable else None,
            protocol_name=body.protocol_name if nullable else body.protocol_name or None,
            leader=require(body.leader, "leader"),
            skip_assignment=body.skip_assignment,
            members=tuple(
                JoinGroupMember(require(each.member_id, "member_id"), each.group_instance_id, require(each.metadata, "metadata"))
                for each in require(body.members, "members")
            ),
        ),
    )


def _write_sync_request(parts: Sequence[SyncGroupRequest], version: int) -> Any:
    request = require_one(parts, version)
    return library.SyncGroupRequest(
        group_id=request.group_id,
        generation_id=request.generation,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=[
            library.SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in request.assignments.items()
        ],
    )


def _read_sync_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[SyncGroupResponse]:
    assignment = require(body.assignment, "assignment")
    return (SyncGroupResponse(error_of(body.error_code), body.protocol_type, body.protocol_name, assignment),)


def _write_heartbeat_request(parts: Sequence[HeartbeatRequest], version: int) -> Any:
    request = require_one(parts, version)
    return library.HeartbeatRequest(
        group_id=request.group_id,
        generation_id=request.generation,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
    )


def _read_heartbeat_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[HeartbeatResponse]:
    return (HeartbeatResponse(error_of(body.error_code)),)


def _write_leave_request(parts: Sequence[LeaveGroupRequest], version: int) -> Any:
    request = require_one(parts, version)
    if not apis.LEAVE_GROUP.has_field(version, "members"):
        return library.LeaveGroupRequest(group_id=request.group_id, member_id=require_one(request.members, version).member_id)
    return library.LeaveGroupRequest(
        group_id=request.group_id,
        members=[
            library.LeaveGroupRequest.MemberIdentity(
                member_id=member.member_id, group_instance_id=member.group_instance_id, reason=member.reason
            )
            for member in request.members
        ],
    )


def _read_leave_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[LeaveGroupResponse]:
    error = error_of(body.error_code)
    if not apis.LEAVE_GROUP.has_field(version, "members"):
        return (LeaveGroupResponse(error),)
    members = tuple(
        LeftMember(require(each.member_id, "member_id"), each.group_instance_id, error_of(each.error_code))
        for each in require(body.members, "members")
    )
    return (LeaveGroupResponse(error, members),)


def _write_fetch_request(parts: Sequence[OffsetFetchRequest], version: int) -> Any:
    stable = {part.require_stable for part in parts}
    if len(stable) > 1 or (True in stable and not apis.OFFSET_FETCH.has_field(version, "require_stable")):
        raise Unwritable(
            f"OffsetFetch v{version} cannot express require_stable {sorted(stable)}: use one value, or a later version"
        )
    if not apis.OFFSET_FETCH.has_field(version, "groups"):
        request = require_one(parts, version)
        if request.partitions is None and not apis.OFFSET_FETCH.has_field(version, "all_partitions"):
            raise Unwritable(f"OffsetFetch v{version} cannot request all partitions: name them")
        kind = library.OffsetFetchRequest.OffsetFetchRequestTopic
        return library.OffsetFetchRequest(
            group_id=request.group_id, topics=_requested_topics(request, kind, version), require_stable=request.require_stable
        )
    kind = library.OffsetFetchRequest.OffsetFetchRequestGroup
    groups = [
        kind(group_id=each.group_id, topics=_requested_topics(each, kind.OffsetFetchRequestTopics, version)) for each in parts
    ]
    return library.OffsetFetchRequest(groups=groups, require_stable=True in stable)


def _requested_topics(request: OffsetFetchRequest, kind: Any, version: int) -> list[Any] | None:
    if request.partitions is None:
        return None
    topics = by_topic((partition, None) for partition in request.partitions)
    ids = request.topic_ids or {}
    if apis.OFFSET_FETCH.has_field(version, "topic_ids"):
        unnamed = topics.keys() - ids.keys()
        if unnamed:
            raise Unwritable(f"OffsetFetch v{version} needs the ids of topics {sorted(unnamed)}")
        return [kind(topic_id=ids[name], partition_indexes=[number for number, _ in each]) for name, each in topics.items()]
    return [kind(name=name, partition_indexes=[number for number, _ in each]) for name, each in topics.items()]


def _read_fetch_response(body: Any, version: int, names: Mapping[UUID, str]) -> tuple[OffsetFetchResponse, ...]:
    if not apis.OFFSET_FETCH.has_field(version, "groups"):
        return (_fetched(body, None),)
    by_id = names if apis.OFFSET_FETCH.has_field(version, "topic_ids") else None
    return tuple(_fetched(group, by_id) for group in require(body.groups, "groups"))


def _fetched(body: Any, names: Mapping[UUID, str] | None) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_of(body.error_code),
        {
            TopicPartition(topic_name(topic, names), each.partition_index): FetchedOffset(
                each.committed_offset, each.committed_leader_epoch, each.metadata or "", error_of(each.error_code)
            )
            for topic in require(body.topics, "topics")
            for each in require(topic.partitions, "partitions")
        },
    )


CLIENT_CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.API_VERSIONS: ClientCodec(
        library.ApiVersionsRequest, library.ApiVersionsResponse, _write_versions_request, _read_versions_response
    ),
    apis.METADATA: ClientCodec(
        library.MetadataRequest, library.MetadataResponse, _write_metadata_request, _read_metadata_response
    ),
    apis.OFFSET_COMMIT: ClientCodec(
        library.OffsetCommitRequest, library.OffsetCommitResponse, _write_commit_request, _read_commit_response
    ),
    apis.FIND_COORDINATOR: ClientCodec(
        library.FindCoordinatorRequest, library.FindCoordinatorResponse, _write_find_request, _read_find_response
    ),
    apis.JOIN_GROUP: ClientCodec(library.JoinGroupRequest, library.JoinGroupResponse, _write_join_request, _read_join_response),
    apis.SYNC_GROUP: ClientCodec(library.SyncGroupRequest, library.SyncGroupResponse, _write_sync_request, _read_sync_response),
    apis.HEARTBEAT: ClientCodec(
        library.HeartbeatRequest, library.HeartbeatResponse, _write_heartbeat_request, _read_heartbeat_response
    ),
    apis.LEAVE_GROUP: ClientCodec(
        library.LeaveGroupRequest, library.LeaveGroupResponse, _write_leave_request, _read_leave_response
    ),
    apis.OFFSET_FETCH: ClientCodec(
        library.OffsetFetchRequest, library.OffsetFetchResponse, _write_fetch_request, _read_fetch_response
    ),
}
