"""Checks made before the group is looked up: API, group id, and the coordinator's status (`validateGroupStatus`)."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from coordinator_core.group_coordinator.behaviour import BEHAVIOURS, Behaviour
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, CoordinatorRequest, GroupRequest, Response
from coordinator_core.protocol.apis import COORDINATOR_APIS
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import UNKNOWN_MEMBER_ID, JoinGroupResponse, SyncGroupRequest

#: Errors while the group is being loaded, of the APIs that do not return `Behaviour.while_loading`.
_WHILE_LOADING: Mapping[AnyApi, Callable[[Behaviour], ErrorCode]] = {
    apis.HEARTBEAT: lambda behaviour: behaviour.heartbeat_while_loading,
    apis.SYNC_GROUP: lambda behaviour: behaviour.sync_while_loading,
    apis.LIST_GROUPS: lambda _: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}

_TODAY = BEHAVIOURS["4"]


def error_response(request: CoordinatorRequest, error: ErrorCode, behaviour: Behaviour = _TODAY) -> Response:
    """Returns the error response of the request's API, in the form of this coordinator."""
    response: Response = COORDINATOR_APIS[type(request)].error_response(request, error)
    if isinstance(response, JoinGroupResponse):
        return replace(response, generation=behaviour.error_generation)
    return response


def join_error_response(behaviour: Behaviour, error: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> JoinGroupResponse:
    """Returns a JoinGroup response with only an error."""
    return JoinGroupResponse(error, member_id, behaviour.error_generation)


def check_protocol(request: GroupRequest, config: CoordinatorConfig) -> Response | None:
    """Returns the error response to a SyncGroup that lacks a mandatory protocol; None for any other request."""
    if not isinstance(request, SyncGroupRequest) or not request.needs_protocol:
        return None
    if request.protocol_type is not None and request.protocol_name is not None:
        return None
    return error_response(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, config.behaviour)


def check_group_id(request: GroupRequest, config: CoordinatorConfig) -> Response | None:
    """Returns the error response to a request with an invalid group id; None if it is valid."""
    if request.group_id or (request.group_id == "" and _may_be_empty(request, config.behaviour)):
        return None
    return error_response(request, ErrorCode.INVALID_GROUP_ID, config.behaviour)


def check_status(request: CoordinatorRequest, status: ErrorCode, config: CoordinatorConfig) -> Response | None:
    """Returns the error response to a request that a log partition cannot serve; None if it can.

    `status` is the error of the partition's status. An API that the era does not have is checked before it. While the group is
    being loaded, heartbeats get NONE since 0.11.
    """
    api, behaviour = COORDINATOR_APIS[type(request)], config.behaviour
    if config.era not in api.versions.brokers:
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION, behaviour)
    if status is ErrorCode.NONE:
        return None
    if status is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        status = _WHILE_LOADING.get(api, _while_loading)(behaviour)
    return error_response(request, status, behaviour)


def _may_be_empty(request: GroupRequest, behaviour: Behaviour) -> bool:
    api = COORDINATOR_APIS[type(request)]
    return api is not apis.JOIN_GROUP if behaviour.only_joins_need_group_ids else api.empty_group_id


def _while_loading(behaviour: Behaviour) -> ErrorCode:
    return behaviour.while_loading
