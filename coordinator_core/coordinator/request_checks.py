"""Checks made before the group is looked up: API, group id, and the coordinator's status (`validateGroupStatus`)."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from coordinator_core.coordinator.behaviour import BEHAVIOURS, Behaviour
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupRequest,
    DeleteGroupResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordinator_core.coordinator.messages.membership import (
    UNKNOWN_MEMBER_ID,
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
from coordinator_core.coordinator.messages.versions import BROKER_VERSIONS, ApiKey
from coordinator_core.coordinator.result import Response

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
    | ConsumerGroupDescribeRequest
    | ListGroupsRequest
    | DeleteGroupRequest
)

#: APIs that accept an empty group id, which clients before KIP-289 could have.
_EMPTY_GROUP_ID_ALLOWED = (OffsetCommitRequest, OffsetFetchRequest, DescribeGroupRequest, DeleteGroupRequest)
#: Requests without a group id.
_WITHOUT_GROUP = (ListGroupsRequest, TxnMarkerRequest)

_APIS: Mapping[type, ApiKey] = {
    JoinGroupRequest: ApiKey.JOIN_GROUP,
    SyncGroupRequest: ApiKey.SYNC_GROUP,
    HeartbeatRequest: ApiKey.HEARTBEAT,
    LeaveGroupRequest: ApiKey.LEAVE_GROUP,
    OffsetCommitRequest: ApiKey.OFFSET_COMMIT,
    TxnOffsetCommitRequest: ApiKey.TXN_OFFSET_COMMIT,
    TxnMarkerRequest: ApiKey.WRITE_TXN_MARKERS,
    OffsetFetchRequest: ApiKey.OFFSET_FETCH,
    OffsetDeleteRequest: ApiKey.OFFSET_DELETE,
    DescribeGroupRequest: ApiKey.DESCRIBE_GROUPS,
    ConsumerGroupDescribeRequest: ApiKey.CONSUMER_GROUP_DESCRIBE,
    ListGroupsRequest: ApiKey.LIST_GROUPS,
    DeleteGroupRequest: ApiKey.DELETE_GROUPS,
}
#: Requests of APIs that the brokers of an era do not have.
_UNKNOWN_REQUESTS: Mapping[str, frozenset[type]] = {
    era: frozenset(request for request, api in _APIS.items() if api not in versions) for era, versions in BROKER_VERSIONS.items()
}

_TODAY = BEHAVIOURS["4"]

Refused = TypeVar("Refused", bound=Request)


def _answer(kind: type[Refused], response: Callable[[Refused, ErrorCode], Response]) -> tuple[type, Callable[..., Response]]:
    """Returns an entry of the table; its function takes requests of its type."""
    return kind, response


_ERROR_RESPONSES = dict(
    (
        _answer(SyncGroupRequest, lambda _, error: SyncGroupResponse(error)),
        _answer(HeartbeatRequest, lambda _, error: HeartbeatResponse(error)),
        _answer(LeaveGroupRequest, lambda _, error: LeaveGroupResponse(error)),
        _answer(OffsetCommitRequest, lambda request, error: OffsetCommitResponse(dict.fromkeys(request.offsets, error))),
        _answer(TxnOffsetCommitRequest, lambda request, error: OffsetCommitResponse(dict.fromkeys(request.offsets, error))),
        _answer(TxnMarkerRequest, lambda _, error: TxnMarkerResponse(error)),
        _answer(OffsetFetchRequest, lambda _, error: OffsetFetchResponse(error, {})),
        _answer(OffsetDeleteRequest, lambda _, error: OffsetDeleteResponse(error, {})),
        _answer(DescribeGroupRequest, lambda request, error: DescribeGroupResponse(error, request.group_id)),
        _answer(ConsumerGroupDescribeRequest, lambda request, error: ConsumerGroupDescribeResponse(error, request.group_id)),
        _answer(ListGroupsRequest, lambda _, error: ListGroupsResponse(error)),
        _answer(DeleteGroupRequest, lambda request, error: DeleteGroupResponse(request.group_id, error)),
    )
)


def error_response(request: Request, error: ErrorCode, behaviour: Behaviour = _TODAY) -> Response:
    """Returns the error response of the request's API, in the form of this coordinator."""
    if isinstance(request, JoinGroupRequest):
        return join_error_response(behaviour, error, request.member_id)
    return _ERROR_RESPONSES[type(request)](request, error)


def join_error_response(behaviour: Behaviour, error: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> JoinGroupResponse:
    """Returns a JoinGroup response with only an error."""
    return JoinGroupResponse(error, member_id, behaviour.error_generation)


def refusal(request: Request, error: ErrorCode, config: CoordinatorConfig) -> Response | None:
    """Returns the response to a request that is rejected before its group is looked up; None if it passes.

    `error` is that of the coordinator's status. An API that the era does not have and an invalid group id are checked before it.
    While the group is being loaded, heartbeats get NONE since 0.11.
    """
    behaviour = config.behaviour
    if type(request) in _UNKNOWN_REQUESTS[config.era]:
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION, behaviour)
    if not isinstance(request, _WITHOUT_GROUP) and _is_bad_group_id(request, request.group_id, behaviour):
        return error_response(request, ErrorCode.INVALID_GROUP_ID, behaviour)
    if error is ErrorCode.NONE:
        return None
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and not isinstance(request, ListGroupsRequest):
        if isinstance(request, HeartbeatRequest):
            return HeartbeatResponse(behaviour.heartbeat_while_loading)
        if isinstance(request, SyncGroupRequest):
            return SyncGroupResponse(behaviour.sync_while_loading)
        error = behaviour.while_loading
    return error_response(request, error, behaviour)


def _is_bad_group_id(request: Request, group_id: str | None, behaviour: Behaviour) -> bool:
    if group_id:
        return False
    if group_id is None:
        return True
    if behaviour.only_joins_need_group_ids:
        return isinstance(request, JoinGroupRequest)
    return not isinstance(request, _EMPTY_GROUP_ID_ALLOWED)
