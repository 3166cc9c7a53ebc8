"""DescribeGroups, ConsumerGroupDescribe and ListGroups (`handleDescribeGroup`, `consumerGroupDescribe`, `handleListGroups`)."""

from collections.abc import Iterable
from dataclasses import replace

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.group_coordinator.behaviour import Behaviour
from coordinator_core.group_coordinator.context import CoordinatorContext
from coordinator_core.group_coordinator.group.classic_group import ClassicGroup
from coordinator_core.group_coordinator.group.states import DEAD, STABLE
from coordinator_core.group_coordinator.result import ResultBuilder
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedMember,
    DescribeGroupRequest,
    DescribeGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def describe_group(result: ResultBuilder, request: DescribeGroupRequest, reply: ReplyHandle) -> None:
    """Describes a group; a missing group is Dead. Only Stable groups have subscriptions in the response."""
    context = result.context
    group = context.find_visible(request.group_id)
    if group is None and request.missing_is_error:
        message = f"Group {request.group_id} not found."
        response = DescribeGroupResponse(ErrorCode.GROUP_ID_NOT_FOUND, request.group_id, DEAD, error_message=message)
    elif group is None:
        response = DescribeGroupResponse(ErrorCode.NONE, request.group_id, DEAD)
    else:
        response = _described(context.behaviour, group)
    if request.include_operations and response.error is ErrorCode.NONE:
        response = replace(response, authorized_operations=context.behaviour.group_operations)
    result.answer(reply, response)


def _described(behaviour: Behaviour, group: ClassicGroup) -> DescribeGroupResponse:
    protocol = (group.protocol_name or "") if group.is_in(STABLE) else None
    members = tuple(
        DescribedMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            metadata=b"" if protocol is None else member.metadata(protocol),
            assignment=b"" if protocol is None and not behaviour.describes_old_assignments else member.assignment,
        )
        for member in group.members
    )
    return DescribeGroupResponse(
        ErrorCode.NONE,
        group.group_id,
        behaviour.state_names.get(group.state, group.state),
        group.protocol_type or "",
        protocol or "",
        members,
    )


def describe_consumer_group(result: ResultBuilder, request: ConsumerGroupDescribeRequest, reply: ReplyHandle) -> None:
    """Returns GROUP_ID_NOT_FOUND with the messages of `GroupMetadataManager.consumerGroup`; clients then use DescribeGroups.

    Groups of the consumer protocol that another broker wrote to the log are not found either, since they are not served here.
    """
    context = result.context
    group_id = request.group_id
    found = context.find_visible(group_id) is not None
    message = f"Group {group_id} is not a consumer group." if found else f"Group {group_id} not found."
    result.answer(reply, ConsumerGroupDescribeResponse(ErrorCode.GROUP_ID_NOT_FOUND, group_id, message))


def list_groups(result: ResultBuilder, request: ListGroupsRequest, reply: ReplyHandle) -> None:
    """Lists the groups of the log partition that pass the filters, sorted by id."""
    context = result.context
    states, types = _lower(request.states), _lower(request.types)
    groups = tuple(
        group
        for group in _listed(context)
        if (not states or group.state.lower() in states) and (not types or group.group_type in types)
    )
    result.answer(reply, ListGroupsResponse(ErrorCode.NONE, groups))


def _listed(context: CoordinatorContext) -> Iterable[ListedGroup]:
    loaded = context.state.groups()
    for group_id in sorted((loaded.keys() | context.groups.keys()) - context.unlogged):
        group = context.groups.get(group_id)
        if group is not None:
            state = context.behaviour.state_names.get(group.state, group.state)
            yield ListedGroup(group_id, group.protocol_type or "", state, "classic")
            continue
        view = loaded[group_id]
        group_type = "classic" if view.group_type == "simple" else view.group_type
        yield ListedGroup(group_id, view.protocol_type or "", view.state, group_type)


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def merge_lists(responses: Iterable[ListGroupsResponse], *, lists_while_loading: bool) -> ListGroupsResponse:
    """Merges the responses of the log partitions. Partitions of another coordinator are skipped; if one is still being loaded,
    the error is COORDINATOR_LOAD_IN_PROGRESS, with the groups of the other partitions if `lists_while_loading`."""
    groups: list[ListedGroup] = []
    error = ErrorCode.NONE
    for response in responses:
        groups += response.groups
        if response.error not in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
            error = response.error
    kept = tuple(groups) if error is ErrorCode.NONE or lists_while_loading else ()
    return ListGroupsResponse(error, kept)
