"""Errors in responses, for the metrics."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import FindCoordinatorResponse
from coordinator_core.coordinator.messages.membership import LeaveGroupResponse
from coordinator_core.coordinator.messages.offsets import OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse
from coordinator_core.wire import PartResponse
from coordinator_core.wire.cluster_messages import FetchResponse, ListOffsetsResponse, MetadataResponse, ProduceResponse

Answer = TypeVar("Answer", bound=PartResponse)


def response_errors(responses: Sequence[PartResponse]) -> list[str]:
    """Return Kafka's names of all errors in the parts of a response, at every depth."""
    return [
        error.name
        for response in responses
        for error in _ERRORS.get(type(response), _error)(response)
        if error is not ErrorCode.NONE
    ]


class _HasError(Protocol):
    @property
    def error(self) -> ErrorCode: ...


def _error(response: _HasError) -> Iterable[ErrorCode]:
    return (response.error,)


def _of(kind: type[Answer], errors: Callable[[Answer], Iterable[ErrorCode]]) -> tuple[type, Callable[..., Iterable[ErrorCode]]]:
    """Return an entry of the table; the signature checks that the function fits the type."""
    return kind, errors


_ERRORS = dict(
    (
        _of(OffsetCommitResponse, lambda response: response.errors.values()),
        _of(OffsetDeleteResponse, lambda response: (response.error, *response.errors.values())),
        _of(OffsetFetchResponse, lambda response: (response.error, *(offset.error for offset in response.offsets.values()))),
        _of(LeaveGroupResponse, lambda response: (response.error, *(member.error for member in response.members))),
        _of(FindCoordinatorResponse, lambda response: (found.error for found in response.coordinators)),
        _of(MetadataResponse, lambda response: (response.error, *(topic.error for topic in response.topics))),
        _of(ListOffsetsResponse, lambda response: (offset.error for offset in response.offsets.values())),
        _of(ProduceResponse, lambda response: (partition.error for partition in response.partitions)),
        _of(FetchResponse, lambda response: (response.error, *(partition.error for partition in response.partitions))),
    )
)
