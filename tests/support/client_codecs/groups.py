"""Client side of the APIs of `groups_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupRequest,
    DeleteGroupResponse,
    DescribedMember,
    DescribeGroupRequest,
    DescribeGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ClientCodec, error_of, read_operations, require, require_one
from coordinator_core.wire.errors import Unwritable


def _write_describe_request(parts: Sequence[DescribeGroupRequest], _version: int) -> Any:
    operations = any(part.include_operations for part in parts)
    return library.DescribeGroupsRequest(groups=[part.group_id for part in parts], include_authorized_operations=operations)


def _read_describe_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[DescribeGroupResponse, ...]:
    has_operations = apis.DESCRIBE_GROUPS.has_field(version, "authorized_operations")
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
            authorized_operations=read_operations(group.authorized_operations) if has_operations else None,
        )
        for group in require(body.groups, "groups")
    )


def _write_consumer_describe_request(parts: Sequence[ConsumerGroupDescribeRequest], _version: int) -> Any:
    return library.ConsumerGroupDescribeRequest(group_ids=[part.group_id for part in parts], include_authorized_operations=False)


def _read_consumer_describe_response(
    body: Any, _version: int, _names: Mapping[UUID, str]
) -> tuple[ConsumerGroupDescribeResponse, ...]:
    return tuple(
        ConsumerGroupDescribeResponse(error_of(group.error_code), require(group.group_id, "group_id"), group.error_message)
        for group in require(body.groups, "groups")
    )


def _write_list_request(parts: Sequence[ListGroupsRequest], version: int) -> Any:
    request = require_one(parts, version)
    unheard = (request.states and not apis.LIST_GROUPS.has_field(version, "states")) or (
        request.types and not apis.LIST_GROUPS.has_field(version, "types")
    )
    if unheard:
        raise Unwritable(f"ListGroups v{version} has no such filters: {sorted(request.states | request.types)}")
    return library.ListGroupsRequest(states_filter=sorted(request.states), types_filter=sorted(request.types))


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


def _write_delete_request(parts: Sequence[DeleteGroupRequest], _version: int) -> Any:
    return library.DeleteGroupsRequest(groups_names=[part.group_id for part in parts])


def _read_delete_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[DeleteGroupResponse, ...]:
    return tuple(
        DeleteGroupResponse(require(each.group_id, "group_id"), error_of(each.error_code))
        for each in require(body.results, "results")
    )


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.DESCRIBE_GROUPS: ClientCodec(
        library.DescribeGroupsRequest, library.DescribeGroupsResponse, _write_describe_request, _read_describe_response
    ),
    apis.CONSUMER_GROUP_DESCRIBE: ClientCodec(
        library.ConsumerGroupDescribeRequest,
        library.ConsumerGroupDescribeResponse,
        _write_consumer_describe_request,
        _read_consumer_describe_response,
    ),
    apis.LIST_GROUPS: ClientCodec(
        library.ListGroupsRequest, library.ListGroupsResponse, _write_list_request, _read_list_response
    ),
    apis.DELETE_GROUPS: ClientCodec(
        library.DeleteGroupsRequest, library.DeleteGroupsResponse, _write_delete_request, _read_delete_response
    ),
}
