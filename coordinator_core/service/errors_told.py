"""Which errors an answer tells of, for the metrics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import FindCoordinatorResponse
from coordinator_core.coordinator.messages.membership import LeaveGroupResponse
from coordinator_core.coordinator.messages.offsets import OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse
from coordinator_core.wire.cluster_messages import FetchResponse, ListOffsetsResponse, MetadataResponse, ProduceResponse


def errors_told(responses: Sequence[Any]) -> list[str]:
    """Kafka's names of all errors in the parts of an answer, at every depth."""
    return [
        error.name
        for response in responses
        for error in _ERRORS.get(type(response), _error)(response)
        if error is not ErrorCode.NONE
    ]


def _error(response: Any) -> Iterable[ErrorCode]:
    return (response.error,)


_ERRORS: Mapping[type, Callable[[Any], Iterable[ErrorCode]]] = {
    OffsetCommitResponse: lambda response: response.errors.values(),
    OffsetDeleteResponse: lambda response: (response.error, *response.errors.values()),
    OffsetFetchResponse: lambda response: (response.error, *(offset.error for offset in response.offsets.values())),
    LeaveGroupResponse: lambda response: (response.error, *(member.error for member in response.members)),
    FindCoordinatorResponse: lambda response: (found.error for found in response.coordinators),
    MetadataResponse: lambda response: (response.error, *(topic.error for topic in response.topics)),
    ListOffsetsResponse: lambda response: (offset.error for offset in response.offsets.values()),
    ProduceResponse: lambda response: (partition.error for partition in response.partitions),
    FetchResponse: lambda response: (response.error, *(partition.error for partition in response.partitions)),
}
