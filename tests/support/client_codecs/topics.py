"""Client side of the APIs of `topics_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.configs import ConfigEntry, ConfigSource
from coordinator_core.protocol.topics import (
    CreatedPartitions,
    CreatedTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import BadField, ClientCodec, error_of, id_of, require, require_one
from coordinator_core.wire.errors import Unwritable

_TIMEOUT_MS = 60_000


def _write_create_request(parts: Sequence[CreateTopicsRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind = library.CreateTopicsRequest.CreatableTopic
    return library.CreateTopicsRequest(
        topics=[
            kind(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                assignments=[
                    kind.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(nodes))
                    for partition, nodes in topic.assignments
                ],
                configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
            )
            for topic in request.topics
        ],
        timeout_ms=_TIMEOUT_MS,
        validate_only=request.validate_only,
    )


def _read_create_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[CreateTopicsResponse]:
    has_configs = apis.CREATE_TOPICS.has_field(version, "configs")
    return (
        CreateTopicsResponse(
            tuple(
                CreatedTopic(
                    require(topic.name, "topic name"),
                    error_of(topic.error_code),
                    topic.error_message if apis.CREATE_TOPICS.has_field(version, "error_message") else None,
                    id_of(topic.topic_id),
                    topic.num_partitions if has_configs else -1,
                    topic.replication_factor if has_configs else -1,
                    tuple(_read_config(entry) for entry in topic.configs or ()) if has_configs else (),
                )
                for topic in require(body.topics, "topics")
            )
        ),
    )


def _read_config(entry: Any) -> ConfigEntry:
    try:
        source = ConfigSource(entry.config_source)
    except ValueError as error:
        raise BadField(f"config {entry.name!r}: {error}") from None
    return ConfigEntry(require(entry.name, "name"), entry.value, source, read_only=bool(entry.read_only))


def _write_delete_request(parts: Sequence[DeleteTopicsRequest], version: int) -> Any:
    topics = require_one(parts, version).topics
    if apis.DELETE_TOPICS.has_field(version, "topic_id"):
        kind = library.DeleteTopicsRequest.DeleteTopicState
        states = [kind(name=topic.name, topic_id=topic.topic_id) for topic in topics]
        return library.DeleteTopicsRequest(topics=states, topic_names=[], timeout_ms=_TIMEOUT_MS)
    if any(topic.topic_id != ZERO_UUID for topic in topics):
        raise Unwritable(f"DeleteTopics v{version} names no topic ids: use v6 or later")
    return library.DeleteTopicsRequest(topics=[], topic_names=[topic.name for topic in topics], timeout_ms=_TIMEOUT_MS)


def _read_delete_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[DeleteTopicsResponse]:
    has_message = apis.DELETE_TOPICS.has_field(version, "error_message")
    topics = tuple(
        DeletedTopic(topic.name, id_of(topic.topic_id), error_of(topic.error_code), topic.error_message if has_message else None)
        for topic in require(body.responses, "responses")
    )
    return (DeleteTopicsResponse(topics),)


def _write_partitions_request(parts: Sequence[CreatePartitionsRequest], version: int) -> Any:
    request = require_one(parts, version)
    kind = library.CreatePartitionsRequest.CreatePartitionsTopic
    return library.CreatePartitionsRequest(
        topics=[
            kind(
                name=topic.name,
                count=topic.total,
                assignments=None
                if topic.assignments is None
                else [kind.CreatePartitionsAssignment(broker_ids=list(nodes)) for nodes in topic.assignments],
            )
            for topic in request.topics
        ],
        timeout_ms=_TIMEOUT_MS,
        validate_only=request.validate_only,
    )


def _read_partitions_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[CreatePartitionsResponse]:
    topics = tuple(
        CreatedPartitions(require(topic.name, "topic name"), error_of(topic.error_code), topic.error_message)
        for topic in require(body.results, "results")
    )
    return (CreatePartitionsResponse(topics),)


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.CREATE_TOPICS: ClientCodec(
        library.CreateTopicsRequest, library.CreateTopicsResponse, _write_create_request, _read_create_response
    ),
    apis.DELETE_TOPICS: ClientCodec(
        library.DeleteTopicsRequest, library.DeleteTopicsResponse, _write_delete_request, _read_delete_response
    ),
    apis.CREATE_PARTITIONS: ClientCodec(
        library.CreatePartitionsRequest, library.CreatePartitionsResponse, _write_partitions_request, _read_partitions_response
    ),
}
