"""Codecs of DescribeConfigs and IncrementalAlterConfigs; each resource of a request is a part."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.configs import ConfigSource, DescribeConfigsRequest, DescribeConfigsResponse
from coordinator_core.protocol.topics import AlterConfigsRequest, AlterConfigsResponse, ConfigChange
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import Parts, ServerCodec, require
from coordinator_core.wire.parts import Peer, WireRequest


def _read_describe_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    return Parts(
        tuple(
            DescribeConfigsRequest(
                each.resource_type,
                require(each.resource_name, "resource_name"),
                None if each.configuration_keys is None else tuple(require(key, "key") for key in each.configuration_keys),
            )
            for each in require(body.resources, "resources")
        )
    )


def _write_describe_response(_request: WireRequest, responses: Sequence[DescribeConfigsResponse]) -> Any:
    kind = library.DescribeConfigsResponse.DescribeConfigsResult
    return library.DescribeConfigsResponse(
        throttle_time_ms=0,
        results=[
            kind(
                error_code=response.error,
                error_message=response.error_message,
                resource_type=response.resource_type,
                resource_name=response.resource_name,
                configs=[
                    kind.DescribeConfigsResourceResult(
                        name=entry.name,
                        value=entry.value,
                        read_only=entry.read_only,
                        config_source=entry.source,
                        is_default=entry.source is ConfigSource.DEFAULT_CONFIG,
                        is_sensitive=False,
                        synonyms=[],
                        config_type=entry.config_type,
                        documentation=None,
                    )
                    for entry in response.entries
                ],
            )
            for response in responses
        ],
    )


def _read_alter_request(body: Any, _header: RequestHeader, _peer: Peer) -> Parts:
    return Parts(
        tuple(
            AlterConfigsRequest(
                each.resource_type,
                require(each.resource_name, "resource_name"),
                tuple(
                    ConfigChange(require(change.name, "name"), change.config_operation, change.value)
                    for change in require(each.configs, "configs")
                ),
                bool(body.validate_only),
            )
            for each in require(body.resources, "resources")
        )
    )


def _write_alter_response(_request: WireRequest, responses: Sequence[AlterConfigsResponse]) -> Any:
    kind = library.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return library.IncrementalAlterConfigsResponse(
        throttle_time_ms=0,
        responses=[
            kind(
                error_code=each.error,
                error_message=each.error_message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in responses
        ],
    )


CODECS: Mapping[AnyApi, ServerCodec] = {
    apis.DESCRIBE_CONFIGS: ServerCodec(
        library.DescribeConfigsRequest, library.DescribeConfigsResponse, _read_describe_request, _write_describe_response
    ),
    apis.INCREMENTAL_ALTER_CONFIGS: ServerCodec(
        library.IncrementalAlterConfigsRequest,
        library.IncrementalAlterConfigsResponse,
        _read_alter_request,
        _write_alter_response,
    ),
}
