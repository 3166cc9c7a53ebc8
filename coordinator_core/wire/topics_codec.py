"""Codecs of CreateTopics, DeleteTopics and CreatePartitions."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.configs import ConfigEntry, ConfigSource
from coordinator_core.protocol.topics import (
    CreatedPartitions,
    CreatedTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopic,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ApiCodec, BadField, Parts, error_of, id_of, require, require_one
from coordinator_core.wire.errors import Unwritable
from coordinator_core.wire.parts import Peer, WireRequest

_TIMEOUT_MS = 60_000


def _read_create_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    topics = tuple(
        NewTopic(
            require(topic.name, "topic name"),
            topic.num_partitions,
            topic.replication_factor,
            tuple(
                (each.partition_index, tuple(require(each.broker_ids, "broker_ids")))
                for each in require(topic.assignments, "assignments")
            ),
            tuple((require(each.name, "config name"), each.value) for each in require(topic.configs, "configs")),
        )
        for topic in require(body.topics, "topics")
    )
    return Parts((CreateTopicsRequest(topics, bool(body.validate_only)),))


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


def _write_create_response(request: WireRequest, responses: Sequence[CreateTopicsResponse]) -> Any:
    kind = library.CreateTopicsResponse.CreatableTopicResult
    return library.CreateTopicsResponse(
        throttle_time_ms=0,
        topics=[
            kind(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=topic.error,
                error_message=topic.error_message,
                topic_config_error_code=0,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=[
                    kind.CreatableTopicConfigs(
                        name=entry.name,
                        value=entry.value,
                        read_only=entry.read_only,
                        config_source=entry.source,
                        is_sensitive=False,
                    )
                    for entry in topic.configs
                ],
            )
            for topic in require_one(responses, request.header.version).topics
        ],
    )


def _read_create_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[CreateTopicsResponse]:
    has_configs = apis.CREATE_TOPICS.has_field(version, "configs")
    return (
        CreateTopicsResponse(
            tuple(
                CreatedTopic(
                    require(topic.name, "topic name"),
                    error_of(topic.error_code),
                    topic.error_message,
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


def _read_delete_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    if apis.DELETE_TOPICS.has_field(header.version, "topic_id"):
        topics = tuple(DeletableTopic(topic.name, id_of(topic.topic_id)) for topic in require(body.topics, "topics"))
    else:
        topics = tuple(DeletableTopic(require(name, "topic name")) for name in require(body.topic_names, "topic_names"))
    return Parts((DeleteTopicsRequest(topics),))


def _write_delete_request(parts: Sequence[DeleteTopicsRequest], version: int) -> Any:
    topics = require_one(parts, version).topics
    if apis.DELETE_TOPICS.has_field(version, "topic_id"):
        kind = library.DeleteTopicsRequest.DeleteTopicState
        states = [kind(name=topic.name, topic_id=topic.topic_id) for topic in topics]
        return library.DeleteTopicsRequest(topics=states, topic_names=[], timeout_ms=_TIMEOUT_MS)
    if any(topic.topic_id != ZERO_UUID for topic in topics):
        raise Unwritable(f"DeleteTopics v{version} names no topic ids: use v6 or later")
    return library.DeleteTopicsRequest(topics=[], topic_names=[topic.name for topic in topics], timeout_ms=_TIMEOUT_MS)


def _write_delete_response(request: WireRequest, responses: Sequence[DeleteTopicsResponse]) -> Any:
    kind = library.DeleteTopicsResponse.DeletableTopicResult
    return library.DeleteTopicsResponse(
        throttle_time_ms=0,
        responses=[
            kind(name=topic.name, topic_id=topic.topic_id, error_code=topic.error, error_message=topic.error_message)
            for topic in require_one(responses, request.header.version).topics
        ],
    )


def _read_delete_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[DeleteTopicsResponse]:
    has_message = apis.DELETE_TOPICS.has_field(version, "error_message")
    topics = tuple(
        DeletedTopic(topic.name, id_of(topic.topic_id), error_of(topic.error_code), topic.error_message if has_message else None)
        for topic in require(body.responses, "responses")
    )
    return (DeleteTopicsResponse(topics),)


def _read_partitions_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    topics = tuple(
        NewPartitions(
            require(topic.name, "topic name"),
            topic.count,
            None
            if topic.assignments is None
            else tuple(tuple(require(each.broker_ids, "broker_ids")) for each in topic.assignments),
        )
        for topic in require(body.topics, "topics")
    )
    return Parts((CreatePartitionsRequest(topics, bool(body.validate_only)),))


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


def _write_partitions_response(request: WireRequest, responses: Sequence[CreatePartitionsResponse]) -> Any:
    kind = library.CreatePartitionsResponse.CreatePartitionsTopicResult
    return library.CreatePartitionsResponse(
        throttle_time_ms=0,
        results=[
            kind(name=topic.name, error_code=topic.error, error_message=topic.error_message)
            for topic in require_one(responses, request.header.version).topics
        ],
    )


def _read_partitions_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[CreatePartitionsResponse]:
    topics = tuple(
        CreatedPartitions(require(topic.name, "topic name"), error_of(topic.error_code), topic.error_message)
        for topic in require(body.results, "results")
    )
    return (CreatePartitionsResponse(topics),)


CODECS: Mapping[AnyApi, ApiCodec] = {
    apis.CREATE_TOPICS: ApiCodec(
        library.CreateTopicsRequest,
        library.CreateTopicsResponse,
        _read_create_request,
        _write_create_response,
        _write_create_request,
        _read_create_response,
    ),
    apis.DELETE_TOPICS: ApiCodec(
        library.DeleteTopicsRequest,
        library.DeleteTopicsResponse,
        _read_delete_request,
        _write_delete_response,
        _write_delete_request,
        _read_delete_response,
    ),
    apis.CREATE_PARTITIONS: ApiCodec(
        library.CreatePartitionsRequest,
        library.CreatePartitionsResponse,
        _read_partitions_request,
        _write_partitions_response,
        _write_partitions_request,
        _read_partitions_response,
    ),
}
