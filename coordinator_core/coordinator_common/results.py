"""Statuses of a log partition, and responses with reply handles: for the coordinators of groups and of transactions."""

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import NamedTuple

from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode

#: The caller's handle of a request; its response is returned with the same handle. Never None.
ReplyHandle = Hashable


class Answer(NamedTuple):
    """A response, with the reply handle of its request."""

    reply: ReplyHandle
    response: Response


class ShardStatus(Enum):
    """Status of the log partition. UNLOADED: another coordinator leads it."""

    UNLOADED = "unloaded"
    LOADING = "loading"
    ACTIVE = "active"


#: Error of a request by status.
STATUS_ERRORS: Mapping[ShardStatus, ErrorCode] = {
    ShardStatus.UNLOADED: ErrorCode.NOT_COORDINATOR,
    ShardStatus.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ShardStatus.ACTIVE: ErrorCode.NONE,
}
