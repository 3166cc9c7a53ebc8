"""The limit on the number of series: which rows of which metrics remain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from coordinator_core.codec.arrays import Int64s
from pipelines.metrics.level_rows import LevelRows
from pipelines.metrics.metric import Level, Metric

Mask = npt.NDArray[np.bool_]

#: Levels in the order in which they are kept; those of one tuple share what is left, and the greatest lags come first. Of equal
#: lags the ends of partitions come first, since boards join the lags of groups with them.
_TIERS: tuple[tuple[str, tuple[Level, ...], bool | None], ...] = (
    ("group", (Level.GROUP,), True),
    ("group", (Level.GROUP,), False),
    ("topic", (Level.TOPIC, Level.GROUP_TOPIC), None),
    ("partition", (Level.TOPIC_PARTITION, Level.GROUP_PARTITION, Level.SHARE_PARTITION), None),
)


@dataclass
class SeriesLimit:
    """The rows that remain of each metric: a mask of the rows that have a value. `dropped` counts the series that do not."""

    kept: dict[str, Mask] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=lambda: {name: 0 for name, _, _ in _TIERS})


def limited(metrics: Sequence[Metric], rows: Mapping[Level, LevelRows], most: int) -> SeriesLimit:
    """Choose the rows of all metrics whose level is in `rows`, `most` series at most."""
    limit = SeriesLimit()
    for name, levels, is_basic in _TIERS:
        chosen = [
            metric
            for level in levels
            for metric in metrics
            if metric.level is level and level in rows and is_basic in (None, metric.is_basic)
        ]
        if chosen:
            most -= _keep(limit, name, chosen, rows, most)
    return limit


def _keep(limit: SeriesLimit, name: str, metrics: Sequence[Metric], rows: Mapping[Level, LevelRows], most: int) -> int:
    """Keep the rows of these metrics with the greatest lags. Returns the number of series."""
    has_value = {metric.name: has_values(rows[metric.level], metric) for metric in metrics}
    levels = list(dict.fromkeys(metric.level for metric in metrics))
    counts = [_sum([has_value[metric.name] for metric in metrics if metric.level is level]) for level in levels]
    total = int(sum(count.sum() for count in counts))
    if total <= most:
        limit.kept |= has_value
        return total
    series = np.concatenate(counts)
    order = np.argsort(-np.concatenate([rows[level].lag for level in levels]), kind="stable")
    kept = np.zeros(len(series), np.bool_)
    kept[order] = np.cumsum(series[order]) <= most
    start = 0
    for level in levels:
        end = start + len(rows[level].lag)
        for metric in metrics:
            if metric.level is level:
                limit.kept[metric.name] = has_value[metric.name] & kept[start:end]
        start = end
    limit.dropped[name] += total - int(series[kept].sum())
    # what is left is less than one row needs
    return most


def has_values(rows: LevelRows, metric: Metric) -> Mask:
    """The rows with a value of the metric."""
    found: Mask = rows.rows[metric.value].is_valid().to_numpy()
    return found


def _sum(masks: Sequence[Mask]) -> Int64s:
    total: Int64s = np.sum(masks, axis=0, dtype=np.int64)
    return total
