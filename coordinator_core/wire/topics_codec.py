"""Codecs of CreateTopics, DeleteTopics and CreatePartitions."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import Parts, ServerCodec, id_of, require, require_one
from coordinator_core.wire.parts import Peer, WireRequest


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


def _read_delete_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    if apis.DELETE_TOPICS.has_field(header.version, "topic_id"):
        topics = tuple(DeletableTopic(topic.name, id_of(topic.topic_id)) for topic in require(body.topics, "topics"))
    else:
        topics = tuple(DeletableTopic(require(name, "topic name")) for name in require(body.topic_names, "topic_names"))
    return Parts((DeleteTopicsRequest(topics),))


def _write_delete_response(request: WireRequest, responses: Sequence[DeleteTopicsResponse]) -> Any:
    kind = library.DeleteTopicsResponse.DeletableTopicResult
    return library.DeleteTopicsResponse(
        throttle_time_ms=0,
        responses=[
            kind(name=topic.name, topic_id=topic.topic_id, error_code=topic.error, error_message=topic.error_message)
            for topic in require_one(responses, request.header.version).topics
        ],
    )


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


def _write_partitions_response(request: WireRequest, responses: Sequence[CreatePartitionsResponse]) -> Any:
    kind = library.CreatePartitionsResponse.CreatePartitionsTopicResult
    return library.CreatePartitionsResponse(
        throttle_time_ms=0,
        results=[
            kind(name=topic.name, error_code=topic.error, error_message=topic.error_message)
            for topic in require_one(responses, request.header.version).topics
        ],
    )


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.CREATE_TOPICS: ServerCodec(
        library.CreateTopicsRequest, library.CreateTopicsResponse, _read_create_request, _write_create_response
    ),
    apis.DELETE_TOPICS: ServerCodec(
        library.DeleteTopicsRequest, library.DeleteTopicsResponse, _read_delete_request, _write_delete_response
    ),
    apis.CREATE_PARTITIONS: ServerCodec(
        library.CreatePartitionsRequest, library.CreatePartitionsResponse, _read_partitions_request, _write_partitions_response
    ),
}
