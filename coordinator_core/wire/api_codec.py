"""What it takes to read and write one API: the library's two messages, and the way between them and dataclasses."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.state.offsets import TopicPartition
from coordinator_core.wire.errors import Unwritable
from coordinator_core.wire.header import RequestHeader
from coordinator_core.wire.parts import Part, PartResponse, Peer, UnknownTopics, WireRequest

Value = TypeVar("Value")


class NamedTopic(Protocol):
    """What belongs to a topic: the name, and the id or ZERO_UUID."""

    @property
    def topic(self) -> str:
        """Name of the topic."""

    @property
    def topic_id(self) -> UUID:
        """Id of the topic."""


OfTopic = TypeVar("OfTopic", bound=NamedTopic)


class Parts(NamedTuple):
    """See WireRequest."""

    parts: tuple[Part, ...]
    unknown_topics: tuple[UnknownTopics, ...] = ()


class BadField(ValueError):
    """A field has a value that it cannot have: null, or a number outside of its range."""


@dataclass(frozen=True, slots=True)
class ApiCodec:
    """Bodies of the library to dataclasses and back. The readers raise BadField, the writers Unwritable."""

    request: Any
    response: Any
    read_request: Callable[[Any, RequestHeader, Peer], Parts]
    write_response: Callable[[WireRequest, Sequence[Any]], Any]
    write_request: Callable[[Sequence[Any], int], Any]
    read_response: Callable[[Any, int, Mapping[UUID, str]], tuple[PartResponse, ...]]


def given(value: Value | None, name: str) -> Value:
    """The value of a field that cannot be null."""
    if value is None:
        raise BadField(f"{name} is null")
    return value


def only(parts: Sequence[Value], version: int) -> Value:
    """The part of a message that has room for one."""
    if len(parts) != 1:
        raise Unwritable(f"v{version} has room for 1 part, not {len(parts)}")
    return parts[0]


def error_of(code: int) -> ErrorCode:
    """UNKNOWN_SERVER_ERROR for codes that nobody here knows (`Errors.forCode`)."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def id_of(topic_id: UUID | None) -> UUID:
    """The library has None for the zero id."""
    return topic_id or ZERO_UUID


def by_topic(values: Iterable[tuple[TopicPartition, Value]]) -> dict[str, list[tuple[int, Value]]]:
    """Values of partitions under their topics, in the order in which they come."""
    topics: dict[str, list[tuple[int, Value]]] = {}
    for (topic, partition), value in values:
        topics.setdefault(topic, []).append((partition, value))
    return topics


def by_topic_id(partitions: Iterable[OfTopic]) -> dict[tuple[str, UUID], list[OfTopic]]:
    """Partitions under the names and ids of their topics, in the order in which they come."""
    topics: dict[tuple[str, UUID], list[OfTopic]] = {}
    for each in partitions:
        topics.setdefault((each.topic, each.topic_id), []).append(each)
    return topics


def topic_name(topic: Any, names: Mapping[UUID, str] | None) -> str:
    """The name of a topic of a response: as it stands there, or by its id. Raises BadField."""
    if names is None:
        name: str | None = topic.name
        return given(name, "topic name")
    topic_id = id_of(topic.topic_id)
    if topic_id not in names:
        raise BadField(f"nobody asked for topic id {topic_id}")
    return names[topic_id]
