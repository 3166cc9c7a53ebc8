"""What a member does about an error, by the request that was answered with it (`JoinGroupResponseHandler` and its like)."""

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

from coordinator_core.coordinator.errors import ErrorCode


class ErrorAction(Enum):
    """What to do next; an error without a remedy is the end of the member."""

    RETRY_NOW = auto()
    RETRY_LATER = auto()
    FIND_COORDINATOR = auto()
    #: The group rebalances: join again, as the same member.
    REJOIN = auto()
    #: The id that the coordinator gave is to be used (KIP-394).
    TAKE_ID = auto()
    #: The generation is over, the id may still be good: join with it, what was owned is lost.
    NEW_GENERATION = auto()
    #: The coordinator does not know the member: join as a new one, what was owned is lost.
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
        # coordinators of 2.0 to 3.9 say REBALANCE_IN_PROGRESS while they load, those of 4 this, which ends Kafka's own consumer
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
#: Errors of a commit that say something about the membership; the others concern the offsets alone.
COMMIT: ErrorActions = MappingProxyType(
    _COORDINATOR_GONE | _NO_LONGER_MEMBER | {ErrorCode.REQUEST_TIMED_OUT: ErrorAction.FIND_COORDINATOR}
)
