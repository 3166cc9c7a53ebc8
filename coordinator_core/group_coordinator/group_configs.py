"""Configs of groups in DescribeConfigs (`ConfigHelper.describeConfigs`).

Brokers since 4.0 have configs for groups of the consumer, share and streams protocols only (KIP-848). Classic groups have the
coordinator's settings, with the names that they have as broker configs.
"""

from coordinator_core.group_coordinator.behaviour import SizeRule
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.protocol.configs import (
    ConfigEntry,
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ResourceType,
)
from coordinator_core.protocol.error_code import ErrorCode

#: Settings that apply to every group.
_OF_GROUPS = (
    "group_initial_rebalance_delay_ms",
    "group_max_session_timeout_ms",
    "group_max_size",
    "group_min_session_timeout_ms",
    "offset_metadata_max_bytes",
    "offsets_retention_minutes",
)


def describe_configs(config: CoordinatorConfig, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Returns the settings that apply to a group, whether it exists or not; INVALID_REQUEST for any other resource."""
    kind, name = request.resource_type, request.resource_name
    if kind != ResourceType.GROUP:
        message = f"resource type {kind} has no configs here: use {ResourceType.GROUP.value} (group)"
        return DescribeConfigsResponse(ErrorCode.INVALID_REQUEST, kind, name, error_message=message)
    if not name:
        message = "the group id is empty: name a group"
        return DescribeConfigsResponse(ErrorCode.INVALID_REQUEST, kind, name, error_message=message)
    defaults = CoordinatorConfig(era=config.era)
    entries = []
    for setting in _OF_GROUPS:
        key, value = setting.replace("_", "."), getattr(config, setting)
        exists = setting != "group_max_size" or config.behaviour.size_rule is not SizeRule.NONE
        if exists and (request.keys is None or key in request.keys):
            is_default = value == getattr(defaults, setting)
            source = ConfigSource.DEFAULT_CONFIG if is_default else ConfigSource.STATIC_BROKER_CONFIG
            entries.append(ConfigEntry(key, str(value), source, ConfigType.INT))
    return DescribeConfigsResponse(ErrorCode.NONE, kind, name, tuple(entries))
