"""DescribeConfigs, for one resource."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from coordinator_core.protocol.api import NodeRequest, Response
from coordinator_core.protocol.error_code import ErrorCode


class ResourceType(IntEnum):
    """Types of resources that have configs (`ConfigResource.Type`)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value is from (`DescribeConfigsResponse.ConfigSource`)."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigType(IntEnum):
    """Type of a value (`DescribeConfigsResponse.ConfigType`)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class DescribeConfigsRequest(NodeRequest):
    """`keys` is None for all configs of the resource. `resource_type` is Kafka's number, known here or not."""

    resource_type: int
    resource_name: str
    keys: tuple[str, ...] | None = None


class ConfigEntry(NamedTuple):
    """A config; the type is sent since v3."""

    name: str
    value: str | None
    source: ConfigSource
    config_type: ConfigType = ConfigType.UNKNOWN
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class DescribeConfigsResponse(Response):
    error: ErrorCode
    resource_type: int
    resource_name: str
    entries: tuple[ConfigEntry, ...] = ()
    error_message: str | None = None
