"""Hot partitions of one topic, a partition at a time: the model of `hot_columns`. Times in ms."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import TypeVar

from model_of_logs import current_log

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import EndOffsetSample, HotPartition, PartitionLag, StatusSettings
from coordinator_core.health.hot_partitions import NORMAL, PARTS

Key = TypeVar("Key", int, TopicPartition)
Samples = Sequence[EndOffsetSample]


def hot_partitions(topic: Mapping[Key, Samples], at_ms: int, settings: StatusSettings) -> dict[Key, HotPartition]:
    """The hot partitions of the samples of one topic, each oldest first."""
    part_ms = max(1, settings.hot_ms // PARTS)
    bounds = [at_ms - part_ms * number for number in range(PARTS, -1, -1)]
    written: dict[Key, list[float]] = {}
    for key, samples in topic.items():
        if samples and samples[-1].reason is None and samples[-1].answered_at_ms >= bounds[0] - part_ms:
            ends = [_end_at(samples, bound, part_ms) for bound in bounds]
            known = [end for end in ends if end is not None]
            if len(known) == len(ends):
                written[key] = [max(0.0, after - before) for before, after in pairwise(known)]
    totals = {key: sum(parts) for key, parts in written.items()}
    if len(written) < settings.hot_partitions:
        return {}
    least = settings.hot_rate * part_ms * PARTS / 1000
    columns = [totals]
    columns += [{key: parts[number] for key, parts in written.items()} for number in range(PARTS)]
    return {
        key: HotPartition(round(total), round(sum(totals.values())), len(written), part_ms * PARTS)
        for key, total in totals.items()
        if total >= least and all(_stands_out(key, values, settings) for values in columns)
    }


def lags_there(lag: PartitionLag, others: Sequence[PartitionLag], settings: StatusSettings) -> bool:
    """Whether a group lags on a hot partition; `others` are all of its partitions of the topic."""
    low = lag.lag_seconds_low
    ages = [float("inf") if each.lag_seconds_high is None else each.lag_seconds_high for each in others]
    return low is not None and low * 1000 >= settings.hot_lag_ms and low >= settings.hot_ratio * median(ages)


def _stands_out(key: Key, values: Mapping[Key, float], settings: StatusSettings) -> bool:
    middle = median(values.values())
    deviation = NORMAL * median(abs(value - middle) for value in values.values())
    value = values[key]
    return value > middle + settings.hot_deviations * deviation and value >= settings.hot_ratio * middle


def _end_at(samples: Samples, at_ms: int, gap_ms: int) -> float | None:
    points = [((s.asked_at_ms + s.answered_at_ms) // 2, s.log_end or 0) for s in current_log(samples).samples]
    if not points or at_ms < points[0][0]:
        return None
    at_ms = min(at_ms, points[-1][0])
    number = max(k for k, (at, _) in enumerate(points) if at <= at_ms)
    if number + 1 == len(points):
        return points[number][1]
    (before, low), (after, high) = points[number], points[number + 1]
    if low == high:
        return low
    return None if after - before > gap_ms else low + (high - low) * (at_ms - before) / (after - before)
