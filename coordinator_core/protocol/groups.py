"""DescribeGroups, ConsumerGroupDescribe, ListGroups, DeleteGroups, FindCoordinator: each for one group or one log partition."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from coordinator_core.protocol.api import CoordinatorRequest, GroupRequest, NodeRequest, Response
from coordinator_core.protocol.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class DescribeGroupRequest(GroupRequest):
    """`missing_is_error`: GROUP_ID_NOT_FOUND for a missing group, as in v6+ (KIP-1043); older versions return "Dead".

    `include_operations`: the response has the authorized operations (v3+, KIP-430).
    """

    group_id: str
    missing_is_error: bool = False
    include_operations: bool = False


class DescribedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribeGroupResponse(Response):
    """`authorized_operations` has numbers of `AclOperation`, None unless requested."""

    error: ErrorCode
    group_id: str
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()
    error_message: str | None = None
    authorized_operations: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeRequest(GroupRequest):
    """Describes a group of the consumer protocol (KIP-848)."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeResponse(Response):
    """Always an error: this coordinator has no groups of the consumer protocol."""

    error: ErrorCode
    group_id: str
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class ListGroupsRequest(CoordinatorRequest):
    """Case-insensitive filters, empty for all: states since v4 (KIP-518), types since v5 (KIP-848)."""

    states: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True)
class ListGroupsResponse(Response):
    error: ErrorCode
    groups: tuple[ListedGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteGroupRequest(GroupRequest):
    group_id: str


@dataclass(frozen=True, slots=True)
class DeleteGroupResponse(Response):
    group_id: str
    error: ErrorCode


class CoordinatorType(IntEnum):
    """Key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest(NodeRequest):
    """One key up to v3, any number since v4 (KIP-699). `key_type` is None for a number that no broker knows."""

    keys: tuple[str, ...]
    key_type: CoordinatorType | None = CoordinatorType.GROUP


class Node(NamedTuple):
    node_id: int
    host: str
    port: int


class FoundCoordinator(NamedTuple):
    key: str
    error: ErrorCode
    node: Node


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse(Response):
    coordinators: tuple[FoundCoordinator, ...]
