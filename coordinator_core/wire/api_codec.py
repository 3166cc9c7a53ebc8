"""Codecs of one API: the library's request and response, and their conversion to and from dataclasses."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import RequestHeader, Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.wire.errors import Unwritable
from coordinator_core.wire.parts import Part, Peer, UnknownTopics, WireRequest

Value = TypeVar("Value")


class NamedTopic(Protocol):
    """A value of a topic, with its name and its id or ZERO_UUID."""

    @property
    def topic(self) -> str:
        """Topic name."""

    @property
    def topic_id(self) -> UUID:
        """Topic id."""


OfTopic = TypeVar("OfTopic", bound=NamedTopic)


class Parts(NamedTuple):
    """The parts of a request, and the unknown topics of each part (`WireRequest`)."""

    parts: tuple[Part, ...]
    unknown_topics: tuple[UnknownTopics, ...] = ()


class BadField(ValueError):
    """A field has an invalid value: null, or a number outside of its range."""


@dataclass(frozen=True, slots=True)
class ServerCodec:
    """The library's message bodies of one API, and their conversion on the side of brokers.

    `read_request` raises BadField, `write_response` Unwritable. `write_response` returns a body of `response`; if that is None,
    the frame (`direct_responses`).
    """

    request: Any
    response: Any
    read_request: Callable[[Any, RequestHeader, Peer], Parts]
    write_response: Callable[[WireRequest, Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class ClientCodec:
    """The same on the side of clients: `write_request` raises Unwritable, `read_response` BadField."""

    request: Any
    response: Any
    write_request: Callable[[Sequence[Any], int], Any]
    read_response: Callable[[Any, int, Mapping[UUID, str]], tuple[Response, ...]]


def require(value: Value | None, name: str) -> Value:
    """Return the value of a field that must not be null. Raises BadField."""
    if value is None:
        raise BadField(f"{name} is null, which is invalid")
    return value


def require_one(parts: Sequence[Value], version: int) -> Value:
    """Return the only part of a message. Raises Unwritable for another number of parts."""
    if len(parts) != 1:
        raise Unwritable(f"v{version} holds 1 part, not {len(parts)}: send one message per part")
    return parts[0]


def error_of(code: int) -> ErrorCode:
    """Return the error of this code, UNKNOWN_SERVER_ERROR for unknown codes (`Errors.forCode`)."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def id_of(topic_id: UUID | None) -> UUID:
    """Return the topic id, with ZERO_UUID for the library's None."""
    return topic_id or ZERO_UUID


def by_topic(values: Iterable[tuple[TopicPartition, Value]]) -> dict[str, list[tuple[int, Value]]]:
    """Group values of partitions by topic name, in input order."""
    topics: dict[str, list[tuple[int, Value]]] = {}
    for (topic, partition), value in values:
        topics.setdefault(topic, []).append((partition, value))
    return topics


def by_topic_id(partitions: Iterable[OfTopic]) -> dict[tuple[str, UUID], list[OfTopic]]:
    """Group partitions by topic name and topic id, in input order."""
    topics: dict[tuple[str, UUID], list[OfTopic]] = {}
    last, values = None, []
    for each in partitions:
        topic = (each.topic, each.topic_id)
        # the partitions of a topic are mostly consecutive, and the hash of an id is slow
        if topic != last:
            last, values = topic, topics.setdefault(topic, [])
        values.append(each)
    return topics


def topic_name(topic: Any, names: Mapping[UUID, str] | None) -> str:
    """Return the name of a topic in a response; with `names`, looked up by its id. Raises BadField."""
    if names is None:
        name: str | None = topic.name
        return require(name, "topic name")
    topic_id = id_of(topic.topic_id)
    if topic_id not in names:
        raise BadField(f"topic id {topic_id} was not requested")
    return names[topic_id]


def topic_name_or_empty(name: str | None, topic_id: UUID | None, names: Mapping[UUID, str] | None) -> str:
    """Return the name of a topic; with `names`, looked up by its id, and empty for an unknown id. Raises BadField."""
    return require(name, "topic name") if names is None else names.get(id_of(topic_id), "")


def write_operations(operations: frozenset[int] | None) -> set[int] | None:
    """Return authorized operations for the library, None for those that were not requested."""
    return None if operations is None else set(operations)


def read_operations(operations: set[int] | None) -> frozenset[int] | None:
    """Return authorized operations of a message, None for those that were not requested."""
    return None if operations is None else frozenset(operations)
