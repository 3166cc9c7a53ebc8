"""Settings of the log, with the names and defaults of Kafka's topic configuration."""

from dataclasses import dataclass

from coordinator_core.log.compression import Compression

_DAY_MS = 24 * 60 * 60 * 1000

_INT32_MAX = (1 << 31) - 1
_INT64_MAX = (1 << 63) - 1

#: Setting → lowest and highest value.
_BOUNDS: dict[str, tuple[int, int]] = {
    "segment_bytes": (1, _INT32_MAX),
    "segment_ms": (1, _INT64_MAX),
    "min_cleanable_dirty_ratio": (0, 1),
    "min_compaction_lag_ms": (0, _INT64_MAX),
    "delete_retention_ms": (0, _INT64_MAX),
    "producer_id_expiration_ms": (1, _INT64_MAX),
}


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
        for key, (lowest, highest) in _BOUNDS.items():
            value = getattr(self, key)
            if not lowest <= value <= highest:
                raise ValueError(f"{key} is {value}: use {lowest}–{highest}")
