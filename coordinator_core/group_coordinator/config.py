"""Configuration of the coordinator: Kafka's names, Kafka's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from coordinator_core.group_coordinator.behaviour import BEHAVIOURS, Behaviour
from coordinator_core.state.era import Era

_INT32_MAX = 2**31 - 1
#: `NewMemberJoinTimeoutMs`, `CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`: a constant of both coordinators.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
#: Stands for the default of the era; outside the range of every key.
_OF_ERA = -(2**31)

#: Minimum of each key; the maximum is 2³¹ - 1.
_LOWEST = {
    "group_min_session_timeout_ms": 1,
    "group_max_session_timeout_ms": 1,
    "group_initial_rebalance_delay_ms": 0,
    "group_max_size": 1,
    "offset_metadata_max_bytes": 0,
    "offsets_retention_minutes": 1,
    "offsets_retention_check_interval_ms": 1,
    "offsets_topic_num_partitions": 1,
    "offsets_topic_replication_factor": 1,
    "offsets_topic_segment_bytes": 1,
    "offsets_topic_compression_codec": 0,
    "offsets_load_buffer_size": 1,
    "offsets_commit_timeout_ms": 1,
    "offsets_commit_required_acks": -1,
}


_DEFAULTS_2 = {
    "group_max_session_timeout_ms": 1_800_000,
    "group_initial_rebalance_delay_ms": 3_000,
    "offsets_retention_minutes": 7 * 24 * 60,
}
_DEFAULTS_1 = _DEFAULTS_2 | {"group_max_session_timeout_ms": 300_000}
_DEFAULTS_0_10 = _DEFAULTS_1 | {"group_initial_rebalance_delay_ms": 0, "offsets_retention_minutes": 24 * 60}
_DEFAULTS_0_9 = _DEFAULTS_0_10 | {"group_max_session_timeout_ms": 30_000}

#: Defaults that changed over time, by era.
ERA_DEFAULTS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "0.9": MappingProxyType(_DEFAULTS_0_9),
        "0.10": MappingProxyType(_DEFAULTS_0_10),
        "1": MappingProxyType(_DEFAULTS_1),
        "2": MappingProxyType(_DEFAULTS_2),
        "3": MappingProxyType(_DEFAULTS_2),
        "4": MappingProxyType(_DEFAULTS_2),
    }
)


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """`GroupCoordinatorConfig`, the keys of the classic coordinator, with underscores for dots.

    `era` selects the coordinator: 4 (Java), or the Scala coordinator of 3 (as of 3.9), 2 (2.3), 1 (2.0), 0.10 (0.10.2) or 0.9
    (0.10.0). Defaults that changed over time are the era's (`ERA_DEFAULTS`). Settings that the era's brokers do not have are
    ignored: the initial delay is new in 0.11, the group size in 2.2. Raises ValueError for a value out of its range.
    """

    era: str = "4"
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = _OF_ERA
    group_initial_rebalance_delay_ms: int = _OF_ERA
    group_max_size: int = _INT32_MAX
    #: In UTF-16 code units, in spite of the name.
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = _OF_ERA
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 100 * 1024 * 1024
    offsets_topic_compression_codec: int = 0
    offsets_load_buffer_size: int = 5 * 1024 * 1024
    offsets_commit_timeout_ms: int = 5_000
    #: Used by Scala brokers; since 4.0 always -1, all in-sync replicas.
    offsets_commit_required_acks: int = -1

    def __post_init__(self) -> None:
        if self.era not in BEHAVIOURS:
            raise ValueError(f"unknown era {self.era!r}: use {', '.join(BEHAVIOURS)}")
        for key, default in ERA_DEFAULTS[self.era].items():
            if getattr(self, key) == _OF_ERA:
                object.__setattr__(self, key, default)
        for key, lowest in _LOWEST.items():
            value = getattr(self, key)
            if not lowest <= value <= _INT32_MAX:
                raise ValueError(f"{key} is {value}: use {lowest}–{_INT32_MAX}")
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ValueError(
                f"group_min_session_timeout_ms {self.group_min_session_timeout_ms} is above "
                f"group_max_session_timeout_ms {self.group_max_session_timeout_ms}"
            )

    @property
    def behaviour(self) -> Behaviour:
        """Rules of the era's coordinator about responses and records."""
        return BEHAVIOURS[self.era]

    @property
    def rules(self) -> Era:
        """Rules of the era about loading and expiry."""
        return Era.named(self.era)

    @property
    def offsets_retention_ms(self) -> int:
        """Retention time of offsets in ms; above 2³¹ for large settings."""
        return self.offsets_retention_minutes * 60 * 1000
