"""The member's reaction to each error, by request (`JoinGroupResponseHandler`, `SyncGroupResponseHandler`, …)."""

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

from coordinator_core.protocol.error_code import ErrorCode


class ErrorAction(Enum):
    """Reaction to an error; a member fails on an error without one."""

    RETRY_NOW = auto()
    RETRY_LATER = auto()
    FIND_COORDINATOR = auto()
    #: The group rebalances: join again, as the same member.
    REJOIN = auto()
    #: Join with the member id of the response (KIP-394).
    TAKE_ID = auto()
    #: The generation has ended, the id may still be valid: join with it; the owned partitions are lost.
    NEW_GENERATION = auto()
    #: The coordinator does not know the member: join as a new one; the owned partitions are lost.
    NEW_MEMBER = auto()


ErrorActions = Mapping[ErrorCode, ErrorAction]

_COORDINATOR_GONE = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorAction.FIND_COORDINATOR,
    ErrorCode.NOT_COORDINATOR: ErrorAction.FIND_COORDINATOR,
}

FIND: ErrorActions = MappingProxyType(
    dict.fromkeys((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), ErrorAction.RETRY_LATER)
)
JOIN: ErrorActions = MappingProxyType(
    _COORDINATOR_GONE
    | {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY_LATER,
        ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.RETRY_NOW,
        ErrorCode.MEMBER_ID_REQUIRED: ErrorAction.TAKE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.NEW_MEMBER,
    }
)
SYNC: ErrorActions = MappingProxyType(
    _COORDINATOR_GONE
    | {
        # during a load, coordinators of 2.0 to 3.9 return REBALANCE_IN_PROGRESS, those of 4 this; Kafka's consumer fails on it
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY_LATER,
        ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.RETRY_NOW,
        ErrorCode.ILLEGAL_GENERATION: ErrorAction.NEW_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.NEW_MEMBER,
    }
)
_NO_LONGER_MEMBER = {
    ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.REJOIN,
    ErrorCode.ILLEGAL_GENERATION: ErrorAction.NEW_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.NEW_MEMBER,
}
HEARTBEAT: ErrorActions = MappingProxyType(_COORDINATOR_GONE | _NO_LONGER_MEMBER)
#: Errors of a commit that concern the membership; the others concern only the offsets.
COMMIT: ErrorActions = MappingProxyType(
    _COORDINATOR_GONE | _NO_LONGER_MEMBER | {ErrorCode.REQUEST_TIMED_OUT: ErrorAction.FIND_COORDINATOR}
)
