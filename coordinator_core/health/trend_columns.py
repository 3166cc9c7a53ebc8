"""Trends of many groups and partitions, in numpy. Times in ms.

A stretch without commits or samples longer than `trend_gap_ms` is a gap, after which the trend begins anew. Only a group that
fell behind before it goes on to do so, as long as the points on both sides of the gap show that its lag grew.
"""

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.health.growth_columns import GrowthColumns
from coordinator_core.health.sample_columns import NONE
from coordinator_core.health.sampled_ends import SampledEnds
from coordinator_core.health.status import StatusSettings
from coordinator_core.health.trend_gaps import TrendGaps
from coordinator_core.health.trend_limits import CAUGHT_UP_SHARE, LEAST_MS, PAIR_MS, POINTS, STILL_MS, STILL_SHARE
from coordinator_core.health.trend_points import GrowthStarts, PointColumns, TrendColumns


def trend_columns(
    points: PointColumns,
    ends: SampledEnds,
    partition: Int64s,
    now_ms: Int64s,
    topic_starts: Int64s,
    settings: StatusSettings,
    before: GrowthStarts,
) -> TrendColumns:
    """Trends of all rows. `now_ms` is the time of each row's newest sample, NONE without one.

    While a group falls behind, only the time since then counts; after it has caught up, only the time since that. A row has no
    trend if less than a minute is known. Without commits for longer than usual, its trend is that of the log end.

    `topic_starts` are the rows at which the rows of a group and topic begin, and their number. `before` is `falls_behind` at the
    sample before.
    """
    rows = len(now_ms)
    found = TrendColumns.unknown(rows)
    has_points = (points.offset[:, -1] != NONE) & (now_ms != NONE)
    last_at = points.at_ms[:, -1]
    known = _known(points, ends.first_time(partition))
    count = _steady_counts(points, known, settings)
    is_still = has_points & (now_ms - last_at > _silences(points, count, settings))
    lag = np.maximum(points.log_end - points.offset, 0.0)
    grown = np.flatnonzero(has_points & (count > 1) & _may_fall(points, lag, topic_starts, settings, before.at_ms))
    starts = found.falls_behind
    starts.set(grown, GrowthColumns(points, lag, count, grown, now_ms, settings, ends, partition).starts(topic_starts, before))
    fell = np.flatnonzero(has_points & (before.at_ms != NONE))
    gaps = TrendGaps.of(points, known, count, fell, ends, partition, settings)
    goes_on = gaps.grew(now_ms, settings)
    starts.set(goes_on.row, before.take(goes_on.row))
    _set_still(found, points, ends, partition, now_ms, np.flatnonzero(is_still))
    falls = np.flatnonzero(starts.at_ms != NONE)
    count[falls] = np.minimum(count[falls], (points.at_ms[falls] >= starts.at_ms[falls, None]).sum(axis=1))
    count = np.minimum(count, _counts_since_caught_up(points, lag))
    count[goes_on.row] = 0
    count[is_still | ~has_points] = 0
    goes_on.set_trends(found, is_still)
    for size in range(2, POINTS + 1):
        _set_moving(found, points, lag, np.flatnonzero(count == size), size)
    unknown = np.flatnonzero(np.isnan(found.slope))
    starts.set(unknown, GrowthStarts.none(len(unknown)))
    return found


def _may_fall(points: PointColumns, lag: Numbers, topic_starts: Int64s, settings: StatusSettings, before_ms: Int64s) -> Numbers:
    """Rows of the topics in which a partition may fall behind. In most topics none can, and they need no closer look.

    If the sum of partitions grows by a share of the traffic, so does one of them. The last three points are within each window.
    """
    rise = lag[:, -1] - np.fmin.reduce(lag, axis=1)
    recent = np.nan_to_num(points.log_end[:, -1] - points.log_end[:, -3])
    may: Numbers = (rise > 0) & (rise >= settings.falls_behind_share * recent)
    may = may | (before_ms != NONE)
    if not len(may):
        return may
    found: Numbers = np.repeat(np.logical_or.reduceat(may, topic_starts[:-1]), np.diff(topic_starts))
    return found


def _known(points: PointColumns, first_ms: Int64s) -> Numbers:
    """Points whose log end is known, of logs whose first samples are of the times `first_ms`."""
    known: Numbers = (points.offset != NONE) & ~np.isnan(points.log_end)
    known &= (first_ms != NONE)[:, None] & (points.at_ms >= first_ms[:, None])
    return known


def _steady_counts(points: PointColumns, known: Numbers, settings: StatusSettings) -> Int64s:
    """The number of last points without a gap, a rewind, or an unknown log end between them."""
    linked = known[:, 1:] & known[:, :-1]
    linked &= (np.diff(points.at_ms, axis=1) <= settings.trend_gap_ms) & (points.offset[:, 1:] >= points.offset[:, :-1])
    # links from the newest point backwards until the first one that is missing
    reversed_links = linked[:, ::-1]
    broken = ~reversed_links
    length = np.where(broken.any(axis=1), broken.argmax(axis=1), linked.shape[1])
    counts: Int64s = np.where(known[:, -1], length + 1, 0)
    return counts


def _silences(points: PointColumns, count: Int64s, settings: StatusSettings) -> Numbers:
    """Time without commits after which each position is still."""
    distance = np.diff(points.at_ms, axis=1)
    is_steady = np.arange(POINTS - 1) >= (POINTS - np.maximum(count, 1))[:, None]
    longest = np.where(is_steady, distance, 0).max(axis=1)
    silence = np.minimum(settings.trend_gap_ms, np.maximum(float(LEAST_MS), STILL_SHARE * longest))
    found: Numbers = np.where(count > 1, silence, float(settings.trend_gap_ms))
    return found


def _counts_since_caught_up(points: PointColumns, lag: Numbers) -> Int64s:
    """The number of last points since each group has last caught up."""
    before, after = lag[:, :-1], lag[:, 1:]
    # an unknown log end compares as false
    falls = (after < CAUGHT_UP_SHARE * before) & (before - after > np.diff(points.log_end, axis=1) / 2)
    reversed_falls = falls[:, ::-1]
    counts: Int64s = np.where(reversed_falls.any(axis=1), reversed_falls.argmax(axis=1) + 1, POINTS)
    return counts


def _set_still(
    found: TrendColumns, points: PointColumns, ends: SampledEnds, partition: Int64s, now_ms: Int64s, rows: Int64s
) -> None:
    """Set the trends of positions without new commits: those of their log ends. Less than a record is rounding."""
    if not len(rows):
        return
    now, partition = now_ms[rows], partition[rows]
    from_ms, end = ends.since(partition, np.maximum(points.at_ms[rows, -1], now - STILL_MS))
    seconds = (now - from_ms) / 1000
    is_long = ~np.isnan(end) & (now - from_ms >= LEAST_MS)
    rows, seconds, end, newest = rows[is_long], seconds[is_long], end[is_long], ends.newest(partition)[is_long]
    rate = (newest - end) / seconds
    rate = np.where(np.abs(rate * seconds) >= 1, rate, 0.0)
    found.slope[rows], found.window_seconds[rows] = rate, seconds
    found.produce_rate[rows], found.consume_rate[rows] = np.maximum(rate, 0.0), 0.0


def _set_moving(found: TrendColumns, points: PointColumns, lag: Numbers, rows: Int64s, size: int) -> None:
    """Set the trends of rows whose last `size` points count."""
    rows = rows[points.at_ms[rows, -1] - points.at_ms[rows, -size] >= LEAST_MS]
    if not len(rows):
        return
    at, lags, half = points.at_ms[rows, -size:], lag[rows, -size:], size // 2
    distance = at[:, half:] - at[:, : size - half]
    # a burst between two points that are seconds apart does not count; NaN is sorted to the end
    counts = distance >= PAIR_MS
    slopes = np.where(counts, (lags[:, half:] - lags[:, : size - half]) * 1000 / np.maximum(distance, 1), np.nan)
    slopes.sort(axis=1)
    row, number = np.arange(len(rows)), counts.sum(axis=1)
    slope = (slopes[row, (number - 1) // 2] + slopes[row, number // 2]) / 2
    seconds = (at[:, -1] - at[:, 0]) / 1000
    end, offset = points.log_end, points.offset
    found.slope[rows] = np.where(np.abs(slope * seconds) >= 1, slope, 0.0)
    found.window_seconds[rows] = seconds
    found.produce_rate[rows] = np.maximum(0.0, (end[rows, -1] - end[rows, -size]) / seconds)
    found.consume_rate[rows] = (offset[rows, -1] - offset[rows, -size]) / seconds
