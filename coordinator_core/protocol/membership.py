"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup. Times in ms.

Fields stand for the version of the API: the wire codec sets them by `versions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.protocol.api import GroupRequest, Response
from coordinator_core.protocol.error_code import ErrorCode

#: `JoinGroupRequest.UNKNOWN_MEMBER_ID`: a member without an id.
UNKNOWN_MEMBER_ID = ""
#: Generation of an error response, and of a commit without a generation.
NO_GENERATION = -1


class Protocol(NamedTuple):
    """An assignor that a member supports, with its subscription bytes."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupRequest(GroupRequest):
    """`require_known_member_id`: a dynamic member must have an id to join (v4+, KIP-394). `supports_skipping_assignment`: the
    response may have `skip_assignment` (v9+, KIP-814). In v0 the rebalance timeout is the session timeout."""

    group_id: str
    member_id: str
    protocol_type: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    reason: str | None = None
    require_known_member_id: bool = True
    supports_skipping_assignment: bool = True


class JoinGroupMember(NamedTuple):
    """A member in the leader's JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupResponse(Response):
    """`members` is empty except in the leader's response."""

    error: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinGroupMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncGroupRequest(GroupRequest):
    """`assignments` is empty except in the leader's request.

    `protocol_type` and `protocol_name` are None before v5; `needs_protocol`: from then on, both are mandatory (KIP-559).
    """

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    needs_protocol: bool = False


@dataclass(frozen=True, slots=True)
class SyncGroupResponse(Response):
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatRequest(GroupRequest):
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatResponse(Response):
    error: ErrorCode


class LeavingMember(NamedTuple):
    """A member that leaves: by member id, or by instance id with an empty member id (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroupRequest(GroupRequest):
    """One member up to v2, any number since v3."""

    group_id: str
    members: tuple[LeavingMember, ...]


class LeftMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse(Response):
    """Up to v2 the response has one error: `error_of_single`."""

    error: ErrorCode
    members: tuple[LeftMember, ...] = ()

    @property
    def error_of_single(self) -> ErrorCode:
        """Error of the response in versions 0–2, which have one member."""
        return self.members[0].error if self.error is ErrorCode.NONE and self.members else self.error
