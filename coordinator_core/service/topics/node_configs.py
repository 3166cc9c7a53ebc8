"""Configs of the node in DescribeConfigs, as far as consoles show them; they change in the configuration file only."""

from collections.abc import Callable, Mapping

from coordinator_core.protocol.configs import (
    ConfigEntry,
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.service.settings import ServiceSettings

_ENTRIES: Mapping[str, tuple[Callable[[ServiceSettings], object], ConfigType]] = {
    "auto.create.topics.enable": (lambda _: "false", ConfigType.BOOLEAN),
    "broker.id": (lambda settings: settings.node_id, ConfigType.INT),
    "connections.max.idle.ms": (lambda settings: settings.connections_max_idle_ms, ConfigType.LONG),
    "default.replication.factor": (lambda _: 1, ConfigType.INT),
    "log.retention.check.interval.ms": (lambda settings: settings.log_retention_check_interval_ms, ConfigType.LONG),
    "max.connections": (lambda settings: settings.max_connections, ConfigType.INT),
    "num.partitions": (lambda settings: settings.num_partitions, ConfigType.INT),
    "producer.id.expiration.ms": (lambda settings: settings.producer_id_expiration_ms, ConfigType.INT),
    "socket.request.max.bytes": (lambda settings: settings.socket_request_max_bytes, ConfigType.INT),
    "transaction.partition.verification.enable": (
        lambda settings: str(settings.transaction_partition_verification_enable).lower(),
        ConfigType.BOOLEAN,
    ),
}


def describe_node(settings: ServiceSettings, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return the settings of this node; INVALID_REQUEST for another one. An empty name stands for all nodes."""
    kind, name = request.resource_type, request.resource_name
    if name not in ("", str(settings.node_id)):
        message = f"node {name!r} does not exist: use {settings.node_id}"
        return DescribeConfigsResponse(ErrorCode.INVALID_REQUEST, kind, name, error_message=message)
    entries = tuple(
        ConfigEntry(key, str(value(settings)), ConfigSource.STATIC_BROKER_CONFIG, config_type)
        for key, (value, config_type) in _ENTRIES.items()
        if request.keys is None or key in request.keys
    )
    return DescribeConfigsResponse(ErrorCode.NONE, kind, name, entries)
