"""Codecs of DescribeGroups, ConsumerGroupDescribe, ListGroups, DeleteGroups and FindCoordinator."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    CoordinatorType,
    DeleteGroupRequest,
    DeleteGroupResponse,
    DescribedMember,
    DescribeGroupRequest,
    DescribeGroupResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    Node,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ApiCodec, BadField, Parts, error_of, require, require_one
from coordinator_core.wire.errors import Unwritable
from coordinator_core.wire.parts import Peer, WireRequest

#: Value for authorized operations that the client did not request (`MessageUtil`).
_NOT_REQUESTED = -(1 << 31)


def _read_describe_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    missing_is_error = apis.DESCRIBE_GROUPS.has_field(header.version, "missing_is_error")
    groups = require(body.groups, "groups")
    return Parts(tuple(DescribeGroupRequest(require(group_id, "group_id"), missing_is_error) for group_id in groups))


def _write_describe_request(parts: Sequence[DescribeGroupRequest], _version: int) -> Any:
    return library.DescribeGroupsRequest(groups=[part.group_id for part in parts], include_authorized_operations=False)


def _write_describe_response(_request: WireRequest, responses: Sequence[DescribeGroupResponse]) -> Any:
    kind = library.DescribeGroupsResponse.DescribedGroup
    return library.DescribeGroupsResponse(
        throttle_time_ms=0,
        groups=[
            kind(
                error_code=response.error,
                error_message=response.error_message,
                group_id=response.group_id,
                group_state=response.state,
                protocol_type=response.protocol_type,
                protocol_data=response.protocol,
                members=[
                    kind.DescribedGroupMember(
                        member_id=member.member_id,
                        group_instance_id=member.group_instance_id,
                        client_id=member.client_id,
                        client_host=member.client_host,
                        member_metadata=member.metadata,
                        member_assignment=member.assignment,
                    )
                    for member in response.members
                ],
                authorized_operations=None,
            )
            for response in responses
        ],
    )


def _read_describe_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[DescribeGroupResponse, ...]:
    return tuple(
        DescribeGroupResponse(
            error=error_of(group.error_code),
            group_id=require(group.group_id, "group_id"),
            state=require(group.group_state, "group_state"),
            protocol_type=require(group.protocol_type, "protocol_type"),
            protocol=require(group.protocol_data, "protocol_data"),
            members=tuple(
                DescribedMember(
                    member_id=require(member.member_id, "member_id"),
                    group_instance_id=member.group_instance_id,
                    client_id=require(member.client_id, "client_id"),
                    client_host=require(member.client_host, "client_host"),
                    metadata=require(member.member_metadata, "member_metadata"),
                    assignment=require(member.member_assignment, "member_assignment"),
                )
                for member in require(group.members, "members")
            ),
            error_message=group.error_message,
        )
        for group in require(body.groups, "groups")
    )


def _read_consumer_describe_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    group_ids = require(body.group_ids, "group_ids")
    return Parts(tuple(ConsumerGroupDescribeRequest(require(group_id, "group_id")) for group_id in group_ids))


def _write_consumer_describe_request(parts: Sequence[ConsumerGroupDescribeRequest], _version: int) -> Any:
    return library.ConsumerGroupDescribeRequest(group_ids=[part.group_id for part in parts], include_authorized_operations=False)


def _write_consumer_describe_response(_request: WireRequest, responses: Sequence[ConsumerGroupDescribeResponse]) -> Any:
    return library.ConsumerGroupDescribeResponse(
        throttle_time_ms=0,
        groups=[
            library.ConsumerGroupDescribeResponse.DescribedGroup(
                error_code=response.error,
                error_message=response.error_message,
                group_id=response.group_id,
                group_state="",
                group_epoch=0,
                assignment_epoch=0,
                assignor_name="",
                members=[],
                authorized_operations=_NOT_REQUESTED,
            )
            for response in responses
        ],
    )


def _read_consumer_describe_response(
    body: Any, _version: int, _names: Mapping[UUID, str]
) -> tuple[ConsumerGroupDescribeResponse, ...]:
    return tuple(
        ConsumerGroupDescribeResponse(error_of(group.error_code), require(group.group_id, "group_id"), group.error_message)
        for group in require(body.groups, "groups")
    )


def _read_list_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    states = (require(each, "state") for each in require(body.states_filter, "states_filter"))
    types = (require(each, "type") for each in require(body.types_filter, "types_filter"))
    return Parts((ListGroupsRequest(frozenset(states), frozenset(types)),))


def _write_list_request(parts: Sequence[ListGroupsRequest], version: int) -> Any:
    request = require_one(parts, version)
    unheard = (request.states and not apis.LIST_GROUPS.has_field(version, "states")) or (
        request.types and not apis.LIST_GROUPS.has_field(version, "types")
    )
    if unheard:
        raise Unwritable(f"ListGroups v{version} has no such filters: {sorted(request.states | request.types)}")
    return library.ListGroupsRequest(states_filter=sorted(request.states), types_filter=sorted(request.types))


def _write_list_response(request: WireRequest, responses: Sequence[ListGroupsResponse]) -> Any:
    response = require_one(responses, request.header.version)
    return library.ListGroupsResponse(
        throttle_time_ms=0,
        error_code=response.error,
        groups=[
            library.ListGroupsResponse.ListedGroup(
                group_id=group.group_id, protocol_type=group.protocol_type, group_state=group.state, group_type=group.group_type
            )
            for group in response.groups
        ],
    )


def _read_list_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[ListGroupsResponse]:
    groups = tuple(
        ListedGroup(
            require(group.group_id, "group_id"),
            require(group.protocol_type, "protocol_type"),
            require(group.group_state, "group_state"),
            require(group.group_type, "group_type"),
        )
        for group in require(body.groups, "groups")
    )
    return (ListGroupsResponse(error_of(body.error_code), groups),)


def _read_delete_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    return Parts(tuple(DeleteGroupRequest(require(name, "group name")) for name in require(body.groups_names, "groups_names")))


def _write_delete_request(parts: Sequence[DeleteGroupRequest], _version: int) -> Any:
    return library.DeleteGroupsRequest(groups_names=[part.group_id for part in parts])


def _write_delete_response(_request: WireRequest, responses: Sequence[DeleteGroupResponse]) -> Any:
    return library.DeleteGroupsResponse(
        throttle_time_ms=0,
        results=[
            library.DeleteGroupsResponse.DeletableGroupResult(group_id=response.group_id, error_code=response.error)
            for response in responses
        ],
    )


def _read_delete_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[DeleteGroupResponse, ...]:
    return tuple(
        DeleteGroupResponse(require(each.group_id, "group_id"), error_of(each.error_code))
        for each in require(body.results, "results")
    )


def _read_find_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    many = apis.FIND_COORDINATOR.has_field(header.version, "keys")
    keys = require(body.coordinator_keys, "coordinator_keys") if many else [body.key]
    try:
        kind = CoordinatorType(body.key_type)
    except ValueError:
        raise BadField(f"key_type {body.key_type} is not in 0–2") from None
    return Parts((FindCoordinatorRequest(tuple(require(key, "key") for key in keys), kind),))


def _write_find_request(parts: Sequence[FindCoordinatorRequest], version: int) -> Any:
    request = require_one(parts, version)
    if apis.FIND_COORDINATOR.has_field(version, "keys"):
        return library.FindCoordinatorRequest(key_type=request.key_type, coordinator_keys=list(request.keys))
    if request.key_type is not CoordinatorType.GROUP and not apis.FIND_COORDINATOR.has_field(version, "key_type"):
        raise Unwritable(f"FindCoordinator v{version} finds only coordinators of groups, not of type {request.key_type.name}")
    return library.FindCoordinatorRequest(key=require_one(request.keys, version), key_type=request.key_type)


def _write_find_response(request: WireRequest, responses: Sequence[FindCoordinatorResponse]) -> Any:
    version = request.header.version
    coordinators = require_one(responses, version).coordinators
    if apis.FIND_COORDINATOR.has_field(version, "keys"):
        return library.FindCoordinatorResponse(
            throttle_time_ms=0,
            coordinators=[
                library.FindCoordinatorResponse.Coordinator(
                    key=found.key,
                    node_id=found.node.node_id,
                    host=found.node.host,
                    port=found.node.port,
                    error_code=found.error,
                    error_message=_message(found.error),
                )
                for found in coordinators
            ],
        )
    found = require_one(coordinators, version)
    return library.FindCoordinatorResponse(
        throttle_time_ms=0,
        error_code=found.error,
        error_message=_message(found.error),
        node_id=found.node.node_id,
        host=found.node.host,
        port=found.node.port,
    )


def _message(error: ErrorCode) -> str | None:
    return None if error is ErrorCode.NONE else error.name


def _read_find_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[FindCoordinatorResponse]:
    if apis.FIND_COORDINATOR.has_field(version, "keys"):
        found = tuple(_found(each, require(each.key, "key")) for each in require(body.coordinators, "coordinators"))
    else:
        found = (_found(body, ""),)
    return (FindCoordinatorResponse(found),)


def _found(body: Any, key: str) -> FoundCoordinator:
    return FoundCoordinator(key, error_of(body.error_code), Node(body.node_id, require(body.host, "host"), body.port))


CODECS: Mapping[AnyApi, ApiCodec] = {
    apis.DESCRIBE_GROUPS: ApiCodec(
        library.DescribeGroupsRequest,
        library.DescribeGroupsResponse,
        _read_describe_request,
        _write_describe_response,
        _write_describe_request,
        _read_describe_response,
    ),
    apis.CONSUMER_GROUP_DESCRIBE: ApiCodec(
        library.ConsumerGroupDescribeRequest,
        library.ConsumerGroupDescribeResponse,
        _read_consumer_describe_request,
        _write_consumer_describe_response,
        _write_consumer_describe_request,
        _read_consumer_describe_response,
    ),
    apis.LIST_GROUPS: ApiCodec(
        library.ListGroupsRequest,
        library.ListGroupsResponse,
        _read_list_request,
        _write_list_response,
        _write_list_request,
        _read_list_response,
    ),
    apis.DELETE_GROUPS: ApiCodec(
        library.DeleteGroupsRequest,
        library.DeleteGroupsResponse,
        _read_delete_request,
        _write_delete_response,
        _write_delete_request,
        _read_delete_response,
    ),
    apis.FIND_COORDINATOR: ApiCodec(
        library.FindCoordinatorRequest,
        library.FindCoordinatorResponse,
        _read_find_request,
        _write_find_response,
        _write_find_request,
        _read_find_response,
    ),
}
