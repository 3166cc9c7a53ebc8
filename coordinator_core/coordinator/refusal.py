"""What a request is told that no group is asked about: the coordinator is not there, not ready, or not the one (4 checks that all
APIs share: `validateGroupStatus`)."""

from collections.abc import Callable, Mapping
from typing import Any

from coordinator_core.coordinator.behaviour import Behaviour
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import (
    DeleteGroupRequest,
    DeleteGroupResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordinator_core.coordinator.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.coordinator.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnMarkerRequest,
    TxnMarkerResponse,
    TxnOffsetCommitRequest,
)
from coordinator_core.coordinator.turn import Response

Request = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | TxnOffsetCommitRequest
    | TxnMarkerRequest
    | OffsetFetchRequest
    | OffsetDeleteRequest
    | DescribeGroupRequest
    | ListGroupsRequest
    | DeleteGroupRequest
)

#: APIs that take an empty group id: clients before KIP-289 could have one.
_EMPTY_GROUP_ID_ALLOWED = (OffsetCommitRequest, OffsetFetchRequest, DescribeGroupRequest, DeleteGroupRequest)
#: Requests that are about no group.
_WITHOUT_GROUP = (ListGroupsRequest, TxnMarkerRequest)

_ERROR_RESPONSES: Mapping[type, Callable[[Any, ErrorCode], Response]] = {
    JoinGroupRequest: lambda request, error: JoinGroupResponse(error, request.member_id),
    SyncGroupRequest: lambda _, error: SyncGroupResponse(error),
    HeartbeatRequest: lambda _, error: HeartbeatResponse(error),
    LeaveGroupRequest: lambda _, error: LeaveGroupResponse(error),
    OffsetCommitRequest: lambda request, error: OffsetCommitResponse(dict.fromkeys(request.offsets, error)),
    TxnOffsetCommitRequest: lambda request, error: OffsetCommitResponse(dict.fromkeys(request.offsets, error)),
    TxnMarkerRequest: lambda _, error: TxnMarkerResponse(error),
    OffsetFetchRequest: lambda _, error: OffsetFetchResponse(error, {}),
    OffsetDeleteRequest: lambda _, error: OffsetDeleteResponse(error, {}),
    DescribeGroupRequest: lambda request, error: DescribeGroupResponse(error, request.group_id),
    ListGroupsRequest: lambda _, error: ListGroupsResponse(error),
    DeleteGroupRequest: lambda request, error: DeleteGroupResponse(request.group_id, error),
}


def error_response(request: Request, error: ErrorCode) -> Response:
    """The response of the request's API that says nothing but the error."""
    return _ERROR_RESPONSES[type(request)](request, error)


def refusal(request: Request, error: ErrorCode, behaviour: Behaviour) -> Response | None:
    """The response to a request that the coordinator does not look into, None if it does.

    `error` says what the coordinator as such has against it. A bad group id comes first; who sends heartbeats while the group is
    being loaded is told that all is well.
    """
    if not isinstance(request, _WITHOUT_GROUP):
        group_id: str | None = request.group_id
        if group_id is None or (not group_id and not isinstance(request, _EMPTY_GROUP_ID_ALLOWED)):
            return error_response(request, ErrorCode.INVALID_GROUP_ID)
    if error is ErrorCode.NONE:
        return None
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        if isinstance(request, HeartbeatRequest):
            return HeartbeatResponse(ErrorCode.NONE)
        if isinstance(request, SyncGroupRequest):
            return SyncGroupResponse(behaviour.sync_while_loading)
    return error_response(request, error)
