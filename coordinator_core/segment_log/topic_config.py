"""Configs of topics with data, with Kafka's names, defaults and bounds (`TopicConfig`, `LogConfig`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.segment_log.settings import SegmentLogSettings

_INT32_MAX = (1 << 31) - 1
_INT64_MAX = (1 << 63) - 1
_DAY_MS = 24 * 60 * 60 * 1000
_HOUR_MS = 60 * 60 * 1000
_DELETE, _COMPACT = "delete", "compact"


class InvalidConfig(ValueError):
    """A config has an unknown name or an invalid value."""


class ConfigKind(Enum):
    """Type of a config; the values are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class ConfigDefinition(NamedTuple):
    """A config: its default, type, and the check of a value, which returns what is wrong or None."""

    default: str
    kind: ConfigKind
    problem: Callable[[str], str | None]


def _number(convert: Callable[[str], float], lowest: float, highest: float) -> Callable[[str], str | None]:
    def problem(text: str) -> str | None:
        try:
            value = convert(text)
        except ValueError:
            return "is not a number"
        return None if lowest <= value <= highest else f"must be {lowest}–{highest}"

    return problem


def _among(*allowed: str) -> Callable[[str], str | None]:
    return lambda text: None if text in allowed else f"must be one of {', '.join(allowed)}"


def _policies(text: str) -> str | None:
    names = [name.strip() for name in text.split(",")]
    return None if names and set(names) <= {_DELETE, _COMPACT} else f"must be {_DELETE}, {_COMPACT} or both"


def _int(default: int, lowest: int, highest: int = _INT32_MAX) -> ConfigDefinition:
    return ConfigDefinition(str(default), ConfigKind.INT, _number(int, lowest, highest))


def _long(default: int, lowest: int, highest: int = _INT64_MAX) -> ConfigDefinition:
    return ConfigDefinition(str(default), ConfigKind.LONG, _number(int, lowest, highest))


def _boolean(default: str) -> ConfigDefinition:
    return ConfigDefinition(default, ConfigKind.BOOLEAN, _among("true", "false"))


#: Name → definition. Configs of replicas, indexes and flushes, which these topics do not have, are kept without effect.
DEFINITIONS: Mapping[str, ConfigDefinition] = MappingProxyType(
    {
        "cleanup.policy": ConfigDefinition(_DELETE, ConfigKind.LIST, _policies),
        "compression.type": ConfigDefinition("producer", ConfigKind.STRING, _among("producer")),
        "delete.retention.ms": _long(_DAY_MS, 0),
        "file.delete.delay.ms": _long(60_000, 0),
        "flush.messages": _long(_INT64_MAX, 1),
        "flush.ms": _long(_INT64_MAX, 0),
        "index.interval.bytes": _int(4096, 0),
        "max.compaction.lag.ms": _long(_INT64_MAX, 1),
        "max.message.bytes": _int(1024 * 1024 + 12, 0),
        "message.timestamp.after.max.ms": _long(_HOUR_MS, 0),
        "message.timestamp.before.max.ms": _long(_INT64_MAX, 0),
        "message.timestamp.type": ConfigDefinition("CreateTime", ConfigKind.STRING, _among("CreateTime")),
        "min.cleanable.dirty.ratio": ConfigDefinition("0.5", ConfigKind.DOUBLE, _number(float, 0, 1)),
        "min.compaction.lag.ms": _long(0, 0),
        "min.insync.replicas": _int(1, 1),
        "preallocate": _boolean("false"),
        "retention.bytes": _long(-1, -1),
        "retention.ms": _long(7 * _DAY_MS, -1),
        "segment.bytes": _int(1024 * 1024 * 1024, 14),
        "segment.index.bytes": _int(10 * 1024 * 1024, 4),
        "segment.jitter.ms": _long(0, 0),
        "segment.ms": _long(7 * _DAY_MS, 1),
        "unclean.leader.election.enable": _boolean("false"),
    }
)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The configs that were set for a topic, name → text; the others have their defaults. Raises InvalidConfig."""

    values: Mapping[str, str]

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            definition = DEFINITIONS.get(name)
            if definition is None:
                raise InvalidConfig(f"unknown topic config {name}")
            problem = definition.problem(value)
            if problem is not None:
                raise InvalidConfig(f"invalid value {value} for configuration {name}: {problem}")

    def __hash__(self) -> int:
        return hash(frozenset(self.values.items()))

    def text(self, name: str) -> str:
        """Return the value of a config."""
        return self.values.get(name, DEFINITIONS[name].default)

    def number(self, name: str) -> int:
        """Return the value of a config that is a whole number."""
        return int(self.text(name))

    @property
    def is_compacted(self) -> bool:
        """Whether the log cleaner compacts the topic."""
        return _COMPACT in self._policies

    @property
    def is_deleted(self) -> bool:
        """Whether retention deletes old segments of the topic."""
        return _DELETE in self._policies

    @property
    def _policies(self) -> set[str]:
        return {name.strip() for name in self.text("cleanup.policy").split(",")}

    def log_settings(self, producer_id_expiration_ms: int) -> SegmentLogSettings:
        """Return the settings of the topic's partition logs."""
        return SegmentLogSettings(
            segment_bytes=self.number("segment.bytes"),
            segment_ms=self.number("segment.ms"),
            min_cleanable_dirty_ratio=float(self.text("min.cleanable.dirty.ratio")),
            min_compaction_lag_ms=self.number("min.compaction.lag.ms"),
            delete_retention_ms=self.number("delete.retention.ms"),
            producer_id_expiration_ms=producer_id_expiration_ms,
        )
