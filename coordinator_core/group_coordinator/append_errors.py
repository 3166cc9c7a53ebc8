"""Errors of the log, and the response errors that they become, by era."""

from collections.abc import Mapping
from types import MappingProxyType

from coordinator_core.protocol.error_code import ErrorCode

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
