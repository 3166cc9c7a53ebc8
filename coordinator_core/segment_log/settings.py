"""Settings of the log, with the names and defaults of Kafka's topic configuration."""

from dataclasses import dataclass

from coordinator_core.log.compression import Compression

_DAY_MS = 24 * 60 * 60 * 1000

_LOWEST = {
    "segment_bytes": 1,
    "segment_ms": 1,
    "min_compaction_lag_ms": 0,
    "delete_retention_ms": 0,
    "producer_id_expiration_ms": 1,
}
_HIGHEST_SEGMENT_BYTES = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class SegmentLogSettings:
    """`segment.bytes` (`offsets.topic.segment.bytes`), `segment.ms`, `compression.type` (`offsets.topic.compression.codec`),
    `min.cleanable.dirty.ratio`, `min.compaction.lag.ms`, `delete.retention.ms`, `producer.id.expiration.ms`.

    Raises ValueError for a value out of its range.
    """

    segment_bytes: int = 100 * 1024 * 1024
    segment_ms: int = 7 * _DAY_MS
    compression: Compression = Compression.NONE
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    delete_retention_ms: int = _DAY_MS
    producer_id_expiration_ms: int = _DAY_MS

    def __post_init__(self) -> None:
        for key, lowest in _LOWEST.items():
            if getattr(self, key) < lowest:
                raise ValueError(f"{key} is {getattr(self, key)}, which is below {lowest}")
        if self.segment_bytes > _HIGHEST_SEGMENT_BYTES:
            raise ValueError(f"segment_bytes is {self.segment_bytes}, which is above {_HIGHEST_SEGMENT_BYTES}")
        if not 0 <= self.min_cleanable_dirty_ratio <= 1:
            raise ValueError(f"min_cleanable_dirty_ratio is {self.min_cleanable_dirty_ratio}, which is not in 0–1")
