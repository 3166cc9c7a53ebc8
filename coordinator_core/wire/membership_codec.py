"""Codecs of JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import Parts, ServerCodec, require, require_one
from coordinator_core.wire.direct_responses import write_heartbeat_response
from coordinator_core.wire.parts import Peer, WireRequest


def _read_join_request(body: Any, header: RequestHeader, peer: Peer) -> Parts:
    version = header.version
    with_timeout = apis.JOIN_GROUP.has_field(version, "rebalance_timeout_ms")
    request = JoinGroupRequest(
        group_id=require(body.group_id, "group_id"),
        member_id=require(body.member_id, "member_id"),
        protocol_type=require(body.protocol_type, "protocol_type"),
        protocols=tuple(
            Protocol(require(each.name, "protocol name"), require(each.metadata, "metadata"))
            for each in require(body.protocols, "protocols")
        ),
        session_timeout_ms=body.session_timeout_ms,
        rebalance_timeout_ms=body.rebalance_timeout_ms if with_timeout else body.session_timeout_ms,
        group_instance_id=body.group_instance_id,
        client_id=header.client_id or "",
        client_host=peer.client_host,
        reason=body.reason,
        require_known_member_id=apis.JOIN_GROUP.has_field(version, "require_known_member_id"),
        supports_skipping_assignment=apis.JOIN_GROUP.has_field(version, "supports_skipping_assignment"),
    )
    return Parts((request,))


def _write_join_response(request: WireRequest, responses: Sequence[JoinGroupResponse]) -> Any:
    version = request.header.version
    response = require_one(responses, version)
    nullable = apis.JOIN_GROUP.has_field(version, "protocol_type_in_response")
    return library.JoinGroupResponse(
        throttle_time_ms=0,
        error_code=response.error,
        generation_id=response.generation,
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name if nullable else response.protocol_name or "",
        leader=response.leader,
        skip_assignment=response.skip_assignment,
        member_id=response.member_id,
        members=[
            library.JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=member.metadata
            )
            for member in response.members
        ],
    )


def _read_sync_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    request = SyncGroupRequest(
        group_id=require(body.group_id, "group_id"),
        generation=body.generation_id,
        member_id=require(body.member_id, "member_id"),
        group_instance_id=body.group_instance_id,
        protocol_type=body.protocol_type,
        protocol_name=body.protocol_name,
        assignments={
            require(each.member_id, "member_id"): require(each.assignment, "assignment")
            for each in require(body.assignments, "assignments")
        },
        needs_protocol=apis.SYNC_GROUP.has_field(header.version, "protocol_name"),
    )
    return Parts((request,))


def _write_sync_response(request: WireRequest, responses: Sequence[SyncGroupResponse]) -> Any:
    response = require_one(responses, request.header.version)
    return library.SyncGroupResponse(
        throttle_time_ms=0,
        error_code=response.error,
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        assignment=response.assignment,
    )


def _read_heartbeat_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    group_id, member_id = require(body.group_id, "group_id"), require(body.member_id, "member_id")
    return Parts((HeartbeatRequest(group_id, body.generation_id, member_id, body.group_instance_id),))


def _read_leave_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    members = (
        tuple(
            LeavingMember(require(each.member_id, "member_id"), each.group_instance_id, each.reason)
            for each in require(body.members, "members")
        )
        if apis.LEAVE_GROUP.has_field(header.version, "members")
        else (LeavingMember(require(body.member_id, "member_id")),)
    )
    return Parts((LeaveGroupRequest(require(body.group_id, "group_id"), members),))


def _write_leave_response(request: WireRequest, responses: Sequence[LeaveGroupResponse]) -> Any:
    version = request.header.version
    response = require_one(responses, version)
    if not apis.LEAVE_GROUP.has_field(version, "members"):
        return library.LeaveGroupResponse(throttle_time_ms=0, error_code=response.error_of_single)
    return library.LeaveGroupResponse(
        throttle_time_ms=0,
        error_code=response.error,
        members=[
            library.LeaveGroupResponse.MemberResponse(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=member.error
            )
            for member in response.members
        ],
    )


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.JOIN_GROUP: ServerCodec(library.JoinGroupRequest, library.JoinGroupResponse, _read_join_request, _write_join_response),
    apis.SYNC_GROUP: ServerCodec(library.SyncGroupRequest, library.SyncGroupResponse, _read_sync_request, _write_sync_response),
    apis.HEARTBEAT: ServerCodec(library.HeartbeatRequest, None, _read_heartbeat_request, write_heartbeat_response),
    apis.LEAVE_GROUP: ServerCodec(
        library.LeaveGroupRequest, library.LeaveGroupResponse, _read_leave_request, _write_leave_response
    ),
}
