"""Client side of the APIs of `configs_codec`: requests to brokers, and their responses."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.configs import (
    ConfigEntry,
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from coordinator_core.protocol.topics import AlterConfigsRequest, AlterConfigsResponse
from coordinator_core.wire import library
from coordinator_core.wire.api_codec import BadField, ClientCodec, error_of, require


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
    source = ConfigSource.DEFAULT_CONFIG if entry.is_default else ConfigSource.TOPIC_CONFIG
    try:
        if apis.DESCRIBE_CONFIGS.has_field(version, "config_source"):
            source = ConfigSource(entry.config_source)
        config_type = ConfigType(entry.config_type) if typed else ConfigType.UNKNOWN
    except ValueError as error:
        raise BadField(f"config {entry.name!r}: {error}") from None
    return ConfigEntry(require(entry.name, "name"), entry.value, source, config_type, bool(entry.read_only))


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


def _read_alter_response(body: Any, _version: int, _names: Mapping[UUID, str]) -> tuple[AlterConfigsResponse, ...]:
    return tuple(
        AlterConfigsResponse(
            error_of(each.error_code), each.resource_type, require(each.resource_name, "resource_name"), each.error_message
        )
        for each in require(body.responses, "responses")
    )


CODECS: Mapping[AnyApi, ClientCodec] = {
    apis.DESCRIBE_CONFIGS: ClientCodec(
        library.DescribeConfigsRequest, library.DescribeConfigsResponse, _write_describe_request, _read_describe_response
    ),
    apis.INCREMENTAL_ALTER_CONFIGS: ClientCodec(
        library.IncrementalAlterConfigsRequest,
        library.IncrementalAlterConfigsResponse,
        _write_alter_request,
        _read_alter_response,
    ),
}
