"""Configuration of the coordinator: Kafka's names, Kafka's defaults."""

from dataclasses import dataclass

from coordinator_core.coordinator.behaviour import BEHAVIOURS, Behaviour
from coordinator_core.state.era import Era

_INT32_MAX = 2**31 - 1
#: `NewMemberJoinTimeoutMs`, `CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`: a constant of both coordinators.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000

#: Lowest value that each key takes; the highest is that of its type.
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


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """`GroupCoordinatorConfig`, the keys of the classic coordinator: a dot of Kafka's name is an underscore here.

    `era` says which coordinator to be: 3 (Scala, as of 3.9) or 4 (Java). Defaults that changed over time are today's: the session
    timeout may be 30 minutes (30 s in 0.9, 5 min up to 2.2), retention is seven days (one up to 1.1), the initial delay came with
    0.11. Raises ValueError for a value out of its range.
    """

    era: str = "4"
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = _INT32_MAX
    #: In UTF-16 code units, whatever the name says.
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 100 * 1024 * 1024
    offsets_topic_compression_codec: int = 0
    offsets_load_buffer_size: int = 5 * 1024 * 1024
    offsets_commit_timeout_ms: int = 5_000
    #: Of Scala brokers; since 4.0 always -1, all in-sync replicas.
    offsets_commit_required_acks: int = -1

    def __post_init__(self) -> None:
        if self.era not in BEHAVIOURS:
            raise ValueError(f"era {self.era!r}: the coordinator can be one of {', '.join(BEHAVIOURS)}")
        for key, lowest in _LOWEST.items():
            value = getattr(self, key)
            if not lowest <= value <= _INT32_MAX:
                raise ValueError(f"{key} is {value}, which is not in {lowest}–{_INT32_MAX}")
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ValueError(
                f"group_min_session_timeout_ms {self.group_min_session_timeout_ms} is above "
                f"group_max_session_timeout_ms {self.group_max_session_timeout_ms}"
            )

    @property
    def behaviour(self) -> Behaviour:
        """What the coordinator of the era does differently."""
        return BEHAVIOURS[self.era]

    @property
    def rules(self) -> Era:
        """The rules of the era about loading and expiry."""
        return Era.named(self.era)

    @property
    def offsets_retention_ms(self) -> int:
        """How long offsets are kept, in ms; above 2³¹ for the largest setting."""
        return self.offsets_retention_minutes * 60 * 1000
