"""Error codes of the Kafka protocol, and the mapping of append errors to response errors."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class ErrorCode(IntEnum):
    """The part of Kafka's `Errors` that the coordinator and its service return, logs raise, or members receive from brokers."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    UNKNOWN_TOPIC_ID = 100
    FENCED_MEMBER_EPOCH = 110
    STALE_MEMBER_EPOCH = 113
    TRANSACTION_ABORTABLE = 120


AppendErrors = Mapping[ErrorCode, ErrorCode]

_LOST = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
_SINCE_0_10 = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
_SINCE_1 = {ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR}
#: Transactions verified by the broker (KIP-890).
_SINCE_3 = {ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)

#: `GroupMetadataManager.prepareStoreGroup` and `storeGroup` of Scala brokers, by the first era of the mapping.
SCALA_0_9_GROUP_ERRORS: AppendErrors = MappingProxyType(
    _LOST
    | {ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS}
    | dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR)
)
SCALA_0_10_GROUP_ERRORS: AppendErrors = MappingProxyType({**SCALA_0_9_GROUP_ERRORS, **_SINCE_0_10})
SCALA_1_GROUP_ERRORS: AppendErrors = MappingProxyType({**SCALA_0_10_GROUP_ERRORS, **_SINCE_1})
#: `prepareStoreOffsets`, `storeOffsets` and `maybeConvertOffsetCommitError` of Scala brokers.
SCALA_0_9_OFFSET_ERRORS: AppendErrors = MappingProxyType(_LOST | dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE))
SCALA_0_10_OFFSET_ERRORS: AppendErrors = MappingProxyType({**SCALA_0_9_OFFSET_ERRORS, **_SINCE_0_10})
SCALA_1_OFFSET_ERRORS: AppendErrors = MappingProxyType({**SCALA_0_10_OFFSET_ERRORS, **_SINCE_1})
SCALA_3_OFFSET_ERRORS: AppendErrors = MappingProxyType({**SCALA_1_OFFSET_ERRORS, **_SINCE_3})

_JAVA = (
    _LOST
    | {ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    | _SINCE_1
    | _SINCE_3
    | dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR)
)
#: `appendGroupMetadataErrorToResponseError` and `handleOperationException` of the Java coordinator. Used for deletions in all
#: eras, since Scala coordinators did not wait for the log there.
JAVA_ERRORS: AppendErrors = MappingProxyType(_JAVA | {ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE})
#: `handleOffsetFetchException` of the Java coordinator: COORDINATOR_NOT_AVAILABLE is not among the errors of OffsetFetch.
JAVA_FETCH_ERRORS: AppendErrors = MappingProxyType(
    _JAVA
    | dict.fromkeys(
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT),
        ErrorCode.NOT_COORDINATOR,
    )
)
