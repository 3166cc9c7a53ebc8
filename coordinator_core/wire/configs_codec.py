"""Codecs of DescribeConfigs and IncrementalAlterConfigs; each resource of a request is a part."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi, RequestHeader
from coordinator_core.protocol.configs import (
    ConfigEntry,
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from coordinator_core.protocol.topics import AlterConfigsRequest, AlterConfigsResponse, ConfigChange
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import ApiCodec, BadField, Parts, error_of, require
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


def _write_describe_request(parts: Sequence[DescribeConfigsRequest], _version: int) -> Any:
    return library.DescribeConfigsRequest(
        resources=[
            library.DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=part.resource_type,
                resource_name=part.resource_name,
                configuration_keys=None if part.keys is None else list(part.keys),
            )
            for part in parts
        ],
        include_synonyms=False,
        include_documentation=False,
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


def _read_describe_response(body: Any, version: int, _names: Mapping[UUID, str]) -> tuple[DescribeConfigsResponse, ...]:
    return tuple(
        DescribeConfigsResponse(
            error_of(each.error_code),
            each.resource_type,
            require(each.resource_name, "resource_name"),
            tuple(_read_entry(entry, version) for entry in require(each.configs, "configs")),
            each.error_message,
        )
        for each in require(body.results, "results")
    )


def _read_entry(entry: Any, version: int) -> ConfigEntry:
    typed = apis.DESCRIBE_CONFIGS.has_field(version, "config_type")
    try:
        source = ConfigSource(entry.config_source)
        config_type = ConfigType(entry.config_type) if typed else ConfigType.UNKNOWN
    except ValueError as error:
        raise BadField(f"config {entry.name!r}: {error}") from None
    return ConfigEntry(require(entry.name, "name"), entry.value, source, config_type, bool(entry.read_only))


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


def _write_alter_request(parts: Sequence[AlterConfigsRequest], _version: int) -> Any:
    kind = library.IncrementalAlterConfigsRequest.AlterConfigsResource
    return library.IncrementalAlterConfigsRequest(
        resources=[
            kind(
                resource_type=part.resource_type,
                resource_name=part.resource_name,
                configs=[
                    kind.AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
                    for change in part.changes
                ],
            )
            for part in parts
        ],
        validate_only=any(part.validate_only for part in parts),
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


def _read_alter_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[AlterConfigsResponse, ...]:
    return tuple(
        AlterConfigsResponse(
            error_of(each.error_code), each.resource_type, require(each.resource_name, "resource_name"), each.error_message
        )
        for each in require(body.responses, "responses")
    )


CODECS: Mapping[AnyApi, ApiCodec] = {
    apis.DESCRIBE_CONFIGS: ApiCodec(
        library.DescribeConfigsRequest,
        library.DescribeConfigsResponse,
        _read_describe_request,
        _write_describe_response,
        _write_describe_request,
        _read_describe_response,
    ),
    apis.INCREMENTAL_ALTER_CONFIGS: ApiCodec(
        library.IncrementalAlterConfigsRequest,
        library.IncrementalAlterConfigsResponse,
        _read_alter_request,
        _write_alter_response,
        _write_alter_request,
        _read_alter_response,
    ),
}
