"""Codecs of ApiVersions, Metadata and DescribeCluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.cluster import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    FinalizedFeature,
    MetadataRequest,
    MetadataResponse,
    RequestedTopic,
)
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import (
    Parts,
    ServerCodec,
    id_of,
    require,
    require_one,
    write_operations,
)
from coordinator_core.wire.parts import Peer, WireRequest


def _read_versions_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    if not apis.API_VERSIONS.has_field(header.version, "software_name"):
        return Parts((ApiVersionsRequest(),))
    name = require(body.client_software_name, "client_software_name")
    return Parts((ApiVersionsRequest(name, require(body.client_software_version, "client_software_version")),))


def _write_versions_response(request: WireRequest, responses: Sequence[ApiVersionsResponse]) -> Any:
    return versions_body(require_one(responses, request.header.version))


def versions_body(response: ApiVersionsResponse) -> Any:
    """Return the body of an ApiVersions response, also of the response to an unsupported version."""
    of = library.ApiVersionsResponse
    return of(
        error_code=response.error,
        api_keys=[
            of.ApiVersion(api_key=each.api_key, min_version=each.lowest, max_version=each.highest) for each in response.apis
        ],
        throttle_time_ms=0,
        **_features(response.features),
    )


def _features(features: Sequence[FinalizedFeature]) -> dict[str, Any]:
    """Return the tagged fields of features; without any, these are left out.

    The lowest supported level is 1: clients cannot read 0 before v4 (KAFKA-17011).
    """
    if not features:
        return {}
    of = library.ApiVersionsResponse
    return {
        "supported_features": [
            of.SupportedFeatureKey(name=each.name, min_version=1, max_version=each.level) for each in features
        ],
        "finalized_features_epoch": 0,
        "finalized_features": [
            of.FinalizedFeatureKey(name=each.name, min_version_level=each.level, max_version_level=each.level)
            for each in features
        ],
    }


def _read_metadata_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    nullable = apis.METADATA.has_field(header.version, "null_for_all_topics")
    topics = body.topics if nullable else require(body.topics, "topics") or None
    if topics is not None:
        by_id = apis.METADATA.has_field(header.version, "topic_id")
        topics = tuple(
            RequestedTopic(topic.name if by_id else require(topic.name, "topic name"), id_of(topic.topic_id)) for topic in topics
        )
    has_operations = apis.METADATA.has_field(header.version, "authorized_operations")
    operations = bool(body.include_topic_authorized_operations) if has_operations else False
    return Parts((MetadataRequest(topics, body.allow_auto_topic_creation, operations),))


def _write_metadata_response(request: WireRequest, responses: Sequence[MetadataResponse]) -> Any:
    version = request.header.version
    response = require_one(responses, version)
    kind = library.MetadataResponse.MetadataResponseTopic
    return library.MetadataResponse(
        throttle_time_ms=0,
        brokers=[
            library.MetadataResponse.MetadataResponseBroker(
                node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in response.brokers
        ],
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        topics=[
            kind(
                error_code=topic.error,
                name=topic.name if apis.METADATA.has_field(version, "topic_id") else topic.name or "",
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partitions=[
                    kind.MetadataResponsePartition(
                        error_code=each.error,
                        partition_index=each.partition,
                        leader_id=each.leader,
                        leader_epoch=each.leader_epoch,
                        replica_nodes=each.replicas,
                        isr_nodes=each.in_sync,
                        offline_replicas=(),
                    )
                    for each in topic.partitions
                ],
                authorized_operations=write_operations(topic.authorized_operations),
            )
            for topic in response.topics
        ],
        authorized_operations=None,
        error_code=response.error,
    )


def _read_cluster_request(body: Any, header: RequestHeader, _peer: Peer) -> Parts:
    return Parts(
        (
            DescribeClusterRequest(
                body.endpoint_type if apis.DESCRIBE_CLUSTER.has_field(header.version, "endpoint_type") else 1,
                body.include_cluster_authorized_operations,
            ),
        )
    )


def _write_cluster_response(request: WireRequest, responses: Sequence[DescribeClusterResponse]) -> Any:
    response = require_one(responses, request.header.version)
    return library.DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=response.error,
        error_message=response.error_message,
        endpoint_type=response.endpoint_type,
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers=[
            library.DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack, is_fenced=False
            )
            for broker in response.brokers
        ],
        authorized_operations=write_operations(response.authorized_operations),
    )


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.API_VERSIONS: ServerCodec(
        library.ApiVersionsRequest, library.ApiVersionsResponse, _read_versions_request, _write_versions_response
    ),
    apis.METADATA: ServerCodec(
        library.MetadataRequest, library.MetadataResponse, _read_metadata_request, _write_metadata_response
    ),
    apis.DESCRIBE_CLUSTER: ServerCodec(
        library.DescribeClusterRequest, library.DescribeClusterResponse, _read_cluster_request, _write_cluster_response
    ),
}
