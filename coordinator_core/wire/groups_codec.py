"""Codecs of DescribeGroups, ConsumerGroupDescribe, ListGroups, DeleteGroups and FindCoordinator."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    CoordinatorType,
    DeleteGroupRequest,
    DeleteGroupResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import Parts, ServerCodec, require, require_one, write_operations
from coordinator_core.wire.parts import Peer, WireRequest

#: Value for authorized operations that the client did not request (`MessageUtil`).
_NOT_REQUESTED = -(1 << 31)


def _read_describe_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    missing_is_error = apis.DESCRIBE_GROUPS.has_field(header.version, "missing_is_error")
    has_operations = apis.DESCRIBE_GROUPS.has_field(header.version, "authorized_operations")
    operations = has_operations and body.include_authorized_operations
    groups = require(body.groups, "groups")
    return Parts(tuple(DescribeGroupRequest(require(group_id, "group_id"), missing_is_error, operations) for group_id in groups))


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
                authorized_operations=write_operations(response.authorized_operations),
            )
            for response in responses
        ],
    )


def _read_consumer_describe_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    group_ids = require(body.group_ids, "group_ids")
    return Parts(tuple(ConsumerGroupDescribeRequest(require(group_id, "group_id")) for group_id in group_ids))


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


def _read_list_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    states = (require(each, "state") for each in require(body.states_filter, "states_filter"))
    types = (require(each, "type") for each in require(body.types_filter, "types_filter"))
    return Parts((ListGroupsRequest(frozenset(states), frozenset(types)),))


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


def _read_delete_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    return Parts(tuple(DeleteGroupRequest(require(name, "group name")) for name in require(body.groups_names, "groups_names")))


def _write_delete_response(_request: WireRequest, responses: Sequence[DeleteGroupResponse]) -> Any:
    return library.DeleteGroupsResponse(
        throttle_time_ms=0,
        results=[
            library.DeleteGroupsResponse.DeletableGroupResult(group_id=response.group_id, error_code=response.error)
            for response in responses
        ],
    )


def _read_find_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    many = apis.FIND_COORDINATOR.has_field(header.version, "keys")
    keys = require(body.coordinator_keys, "coordinator_keys") if many else [body.key]
    kind = CoordinatorType(body.key_type) if body.key_type in tuple(CoordinatorType) else None
    return Parts((FindCoordinatorRequest(tuple(require(key, "key") for key in keys), kind),))


def _write_find_response(request: WireRequest, responses: Sequence[FindCoordinatorResponse]) -> Any:
    version = request.header.version
    part = request.parts[0]
    assert isinstance(part, FindCoordinatorRequest)
    key_type = part.key_type
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
                    error_message=_message(found.error, of_key=True, key_type=key_type),
                )
                for found in coordinators
            ],
        )
    found = require_one(coordinators, version)
    return library.FindCoordinatorResponse(
        throttle_time_ms=0,
        error_code=found.error,
        error_message=_message(found.error, of_key=False),
        node_id=found.node.node_id,
        host=found.node.host,
        port=found.node.port,
    )


#: Brokers send the text of the error (`Errors.INVALID_REQUEST`), Java clients show it.
_INVALID_REQUEST = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)


def _message(error: ErrorCode, *, of_key: bool, key_type: CoordinatorType | None = None) -> str:
    if error is ErrorCode.NONE:
        return "" if of_key else error.name
    if of_key and key_type is CoordinatorType.SHARE:
        # brokers take it for the key of a share group that is malformed
        return ""
    return _INVALID_REQUEST if error is ErrorCode.INVALID_REQUEST else error.name


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.DESCRIBE_GROUPS: ServerCodec(
        library.DescribeGroupsRequest, library.DescribeGroupsResponse, _read_describe_request, _write_describe_response
    ),
    apis.CONSUMER_GROUP_DESCRIBE: ServerCodec(
        library.ConsumerGroupDescribeRequest,
        library.ConsumerGroupDescribeResponse,
        _read_consumer_describe_request,
        _write_consumer_describe_response,
    ),
    apis.LIST_GROUPS: ServerCodec(
        library.ListGroupsRequest, library.ListGroupsResponse, _read_list_request, _write_list_response
    ),
    apis.DELETE_GROUPS: ServerCodec(
        library.DeleteGroupsRequest, library.DeleteGroupsResponse, _read_delete_request, _write_delete_response
    ),
    apis.FIND_COORDINATOR: ServerCodec(
        library.FindCoordinatorRequest, library.FindCoordinatorResponse, _read_find_request, _write_find_response
    ),
}
