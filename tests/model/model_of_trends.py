"""Trend of the lag of one group and partition, and the growth that shows a group falling behind: the model of `trend_columns`.

Times in ms. Commits are compared with the log end at their own time, so the distance of commits
and the distance of samples leave no sawtooth: the lag of a consumer that keeps up is flat. A **point** is the last commit of a
minute. A stretch without commits or samples longer than `trend_gap_ms` is a gap, after which the trend begins anew. Only a group
that fell behind before it goes on to do so, as long as the points on both sides of the gap show that its lag grew.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import floor, sqrt
from statistics import median
from typing import NamedTuple, TypeVar

from model_of_logs import SampledEnd

from coordinator_core.health import StatusSettings
from coordinator_core.health.trend_limits import (
    CAUGHT_UP_SHARE,
    CHANCE,
    DISTANCES,
    EARLIER,
    LARGEST_BEND,
    LEAST_MS,
    LEAST_PART,
    PAIR_MS,
    PARTS,
    POINT_MS,
    POINTS,
    STILL_MS,
    STILL_SHARE,
    WINDOWS,
)

K = TypeVar("K", bound=Hashable)


class TrendPoint(NamedTuple):
    """A commit and the log end at its time; None where samples do not show it."""

    at_ms: int
    offset: int
    log_end: float | None


class GrowthStart(NamedTuple):
    """When growth began; with `is_latest` then or earlier, since lag grew in all that is known before."""

    at_ms: int
    is_latest: bool = False


class LagTrend(NamedTuple):
    """The trend of a window: its length, the rates in it, and since when the group falls behind; None unless it does.

    `slope` is the median of the slopes between points half a window and at least PAIR_MS apart, in records per second. The rates
    are those of the log end and of the committed offset over the whole window.
    """

    slope: float
    window_seconds: float
    produce_rate: float
    consume_rate: float
    falls_behind: GrowthStart | None = None


class Growth(NamedTuple):
    """Lag and log end at the bounds of the parts of a window, oldest first, and the produce rate per ms before the window.

    `earlier_rate` is None if less than `trend_gap_ms` before the window is known.
    """

    window_ms: int
    lag: tuple[float, ...]
    log_end: tuple[float, ...]
    earlier_rate: float | None

    @property
    def produced(self) -> float:
        return self.log_end[-1] - self.log_end[0]

    @property
    def grown(self) -> float:
        return self.lag[-1] - self.lag[0]

    @property
    def peak_rate(self) -> float:
        """The greatest produce rate of a part."""
        return max(after - before for before, after in pairwise(self.log_end)) * PARTS / self.window_ms

    @property
    def known_earlier_rate(self) -> float:
        return self.peak_rate if self.earlier_rate is None else self.earlier_rate


def log_end_at(ends: Sequence[SampledEnd], at_ms: int, gap_ms: int) -> float | None:
    """Log end at a time, linear between two samples; None before the first one and within a gap in which the end moved.

    After the newest sample the line from the last one PAIR_MS before it goes on, until the next sample shows the truth.
    """
    times = [_time(end) for end in ends]
    after = bisect_right(times, at_ms)
    if after == 0:
        return None
    is_last = after == len(ends)
    first = max(0, bisect_right(times[:-1], times[-1] - PAIR_MS) - 1) if is_last else after - 1
    a, b = ends[first], ends[-1 if is_last else after]
    distance, change = _time(b) - _time(a), b.offset - a.offset
    if change == 0 or distance == 0:
        return float(b.offset)
    if distance > gap_ms:
        return float(b.offset) if is_last else None
    return a.offset + change * ((at_ms - _time(a)) / distance)


def log_end_since(ends: Sequence[SampledEnd], at_ms: int, gap_ms: int) -> tuple[int, float]:
    """The log end at a time, or at the first sample after it where it is unknown then, with the time."""
    found = log_end_at(ends, at_ms, gap_ms)
    if found is not None:
        return at_ms, found
    after = next((end for end in ends if _time(end) > at_ms), ends[-1])
    return _time(after), float(after.offset)


def trend_points(
    commits: Iterable[tuple[int, int]], ends: Sequence[SampledEnd], settings: StatusSettings
) -> tuple[TrendPoint, ...]:
    """The last commits (time, offset) of the last `POINTS` minutes that have any, oldest first.

    `ends` are those of the current log. A commit that is older than the one before it counts at the time of that one.
    """
    last: dict[int, tuple[int, int]] = {}
    newest = 0
    for at_ms, offset in commits:
        newest = max(newest, at_ms)
        last[newest // POINT_MS] = (newest, offset)
    kept = list(last.values())[-POINTS:]
    return tuple(TrendPoint(at_ms, offset, log_end_at(ends, at_ms, settings.trend_gap_ms)) for at_ms, offset in kept)


def steady_points(points: Sequence[TrendPoint], settings: StatusSettings) -> tuple[TrendPoint, ...]:
    """The last points without a gap, a rewind, or an unknown log end between them."""
    start = len(points)
    while start and points[start - 1].log_end is not None:
        start -= 1
        if start and (
            points[start].at_ms - points[start - 1].at_ms > settings.trend_gap_ms
            or points[start].offset < points[start - 1].offset
        ):
            break
    return tuple(points[start:])


def around_gap(
    points: Sequence[TrendPoint], ends: Sequence[SampledEnd], settings: StatusSettings
) -> tuple[TrendPoint, TrendPoint] | None:
    """The last point before a gap and the newest one; None without a gap, or once the points after it fill a window.

    A newest commit within the gap counts at the first sample after it. None for a position that went back meanwhile.
    """
    steady = steady_points(points, settings)
    newest = points[-1]
    if steady and newest.at_ms - steady[0].at_ms >= settings.falls_behind_ms:
        return None
    if not steady:
        at_ms, log_end = log_end_since(ends, newest.at_ms, settings.trend_gap_ms)
        newest = TrendPoint(at_ms, newest.offset, log_end)
    earlier = points[: len(points) - max(1, len(steady))]
    before = next((point for point in reversed(earlier) if point.log_end is not None), None)
    if before is None or before.offset > (steady[0] if steady else newest).offset:
        return None
    return before, newest


def lag_trend(
    points: Sequence[TrendPoint],
    ends: Sequence[SampledEnd],
    now_ms: int,
    settings: StatusSettings,
    start: GrowthStart | None = None,
) -> LagTrend | None:
    """The trend at `now_ms`, the time of the newest of `ends`. While a group falls behind, only the time since then counts.

    For a group that goes on to fall behind after a gap, it is the trend from before the gap to now. None if less than a minute is
    known, also after the group has caught up. Without commits for longer than usual, it is the trend of the log end.
    """
    if not points or not ends:
        return None
    steady: Sequence[TrendPoint] = steady_points(points, settings)
    if now_ms - points[-1].at_ms > _silence_ms(steady, settings):
        return _still(points[-1], ends, now_ms, settings, start)
    gap = None if start is None else around_gap(points, ends, settings)
    if start is not None:
        steady = gap or tuple(point for point in steady if point.at_ms >= start.at_ms)
    steady = _since_caught_up(steady)
    if len(steady) < 2 or steady[-1].at_ms - steady[0].at_ms < LEAST_MS:
        return None
    half = len(steady) // 2
    pairs = zip(steady, steady[half:], strict=False)
    slope = median(_slope(before, after) for before, after in pairs if after.at_ms - before.at_ms >= PAIR_MS)
    first, last = steady[0], steady[-1]
    assert first.log_end is not None
    assert last.log_end is not None
    seconds = (last.at_ms - first.at_ms) / 1000
    # less than a record is rounding
    slope = slope if abs(slope * seconds) >= 1 else 0.0
    produced = max(0.0, (last.log_end - first.log_end) / seconds)
    return LagTrend(slope, seconds, produced, (last.offset - first.offset) / seconds, start)


def falling_since(
    partitions: Mapping[K, tuple[Sequence[TrendPoint], Sequence[SampledEnd]]],
    now_ms: Mapping[K, int],
    settings: StatusSettings,
    before: Mapping[K, GrowthStart],
) -> dict[K, GrowthStart]:
    """The partitions of one group and topic that fall behind, each with the start of the growth, from their points and log ends.

    Growth counts for a partition by itself, and for the sum of all: many slow partitions show what none of them shows alone.
    `before` has the partitions that fell behind at the sample before: they do until their lag stops growing, also over a gap.
    """
    steady = {key: steady_points(points, settings) for key, (points, _) in partitions.items()}
    found = {
        key: since
        for key, since in before.items()
        if key in partitions and _grew_over_gap(*partitions[key], now_ms[key], settings)
    }
    for times in WINDOWS:
        window_ms = settings.falls_behind_ms * times
        grown = {key: growth(points, partitions[key][1], now_ms[key], window_ms, settings) for key, points in steady.items()}
        known = {key: each for key, each in grown.items() if each is not None}
        if not known:
            continue
        whole = sum_of(known.values())
        is_whole = is_sustained(whole, settings)
        for key, each in known.items():
            takes_part = is_whole and each.grown > 0 and each.grown >= settings.falls_behind_share * each.produced
            if takes_part or is_sustained(each, settings):
                found[key] = _start(steady[key], window_ms, each.grown / window_ms)
        if times == 1:
            for key, since in before.items():
                if key in known and known[key].grown > 0:
                    found[key] = since
    return {key: _kept(before.get(key, start), start) for key, start in found.items()}


def _kept(before: GrowthStart, now: GrowthStart) -> GrowthStart:
    """Flat lag that an earlier sample has shown before the start is not among the points any more."""
    stays = before.at_ms <= now.at_ms or (now.is_latest and not before.is_latest)
    return before if stays else now


def sum_of(grown: Iterable[Growth]) -> Growth:
    """Growth of several partitions together; at least one. An unknown earlier rate counts as that of the window."""
    windows = list(grown)
    return Growth(
        windows[0].window_ms,
        tuple(map(sum, zip(*(each.lag for each in windows), strict=True))),
        tuple(map(sum, zip(*(each.log_end for each in windows), strict=True))),
        sum(each.known_earlier_rate for each in windows),
    )


def growth(
    points: Sequence[TrendPoint], ends: Sequence[SampledEnd], now_ms: int, window_ms: int, settings: StatusSettings
) -> Growth | None:
    """Growth of steady points in the window that ends with the newest one.

    None if they do not fill it, if they are more than half of it apart, or if the position did not move in each part.
    """
    if not points or points[-1].at_ms - points[0].at_ms < window_ms:
        return None
    newest = points[-1].at_ms
    distances = [after.at_ms - before.at_ms for before, after in pairwise(points) if after.at_ms > newest - window_ms]
    if max([*distances, now_ms - newest]) * DISTANCES > window_ms:
        return None
    bounds = [newest - window_ms + window_ms * part // PARTS for part in range(PARTS + 1)]
    read, lag, end = zip(*(_at(points, bound) for bound in bounds), strict=True)
    if not all(after > before for before, after in pairwise(read)):
        return None
    return Growth(window_ms, lag, end, _earlier_rate(ends, bounds[0], end[0], settings))


def is_sustained(grown: Growth, settings: StatusSettings) -> bool:
    """True if lag grew along a line, by more than chance and by a share of the traffic that is not itself a burst."""
    total = grown.grown
    if total <= 0 or total < settings.falls_behind_share * grown.produced or total < CHANCE * sqrt(max(0.0, grown.produced)):
        return False
    if grown.peak_rate > settings.falls_behind_burst * grown.known_earlier_rate:
        return False
    parts = [after - before for before, after in pairwise(grown.lag)]
    bends = [abs(lag - grown.lag[0] - total * part / PARTS) for part, lag in enumerate(grown.lag)]
    return min(parts) * PARTS >= LEAST_PART * total and max(bends) <= LARGEST_BEND * total


def _grew_over_gap(points: Sequence[TrendPoint], ends: Sequence[SampledEnd], now_ms: int, settings: StatusSettings) -> bool:
    """Whether lag grew by a share of the traffic over a gap, after which the group still commits."""
    if not points or not ends or (now_ms - points[-1].at_ms) * DISTANCES > settings.falls_behind_ms:
        return False
    gap = around_gap(points, ends, settings)
    if gap is None:
        return False
    before, newest = gap
    assert before.log_end is not None
    assert newest.log_end is not None
    grown = _lag(newest) - _lag(before)
    return grown > 0 and grown >= settings.falls_behind_share * (newest.log_end - before.log_end)


def _earlier_rate(ends: Sequence[SampledEnd], until_ms: int, until_end: float, settings: StatusSettings) -> float | None:
    """The produce rate per ms before a window: the second lowest of the parts of that time, so that a burst in it does not count.

    None if less than `trend_gap_ms` is known; the rate of the whole time if a part of it is unknown.
    """
    from_ms, from_end = log_end_since(ends, until_ms - EARLIER * settings.falls_behind_ms, settings.trend_gap_ms)
    span = until_ms - from_ms
    if span < settings.trend_gap_ms:
        return None
    times = [from_ms + span * part // PARTS for part in range(PARTS)]
    known = [from_end, *(log_end_at(ends, at_ms, settings.trend_gap_ms) for at_ms in times[1:]), until_end]
    if None in known:
        return (until_end - from_end) / span
    values = [value for value in known if value is not None]
    rates = [(b - a) / (v - u) for (a, b), (u, v) in zip(pairwise(values), pairwise([*times, until_ms]), strict=True)]
    return sorted(rates)[1]


def _start(points: Sequence[TrendPoint], window_ms: int, rate: float) -> GrowthStart:
    """When growth began that a window shows: lag grew at nearly its rate per ms from point to point since then.

    Between the first two of them the lag may have been flat for a while: it began where the line of the later ones leaves the
    first. Without a point before them that shows flat lag, it may have begun earlier.
    """
    latest = points[-1].at_ms - window_ms + window_ms // PARTS
    number = next(k for k, point in enumerate(points) if point.at_ms >= latest)
    while number and _grew(points[number - 1], points[number], rate):
        number -= 1
    first, second, newest = points[number], points[min(number + 1, len(points) - 1)], points[-1]
    later = rate if second is newest else (_lag(newest) - _lag(second)) / (newest.at_ms - second.at_ms)
    rise = max(0.0, _lag(second) - _lag(first))
    return GrowthStart(max(first.at_ms, second.at_ms - floor(rise / max(rate, later))), number == 0)


def _grew(before: TrendPoint, after: TrendPoint, rate: float) -> bool:
    return _lag(after) - _lag(before) >= LEAST_PART * rate * (after.at_ms - before.at_ms)


def _time(end: SampledEnd) -> int:
    return (end.asked_at_ms + end.answered_at_ms) >> 1


def _lag(point: TrendPoint) -> float:
    """At least 0: between two samples the log end is an estimate."""
    assert point.log_end is not None
    return max(0.0, point.log_end - point.offset)


def _slope(before: TrendPoint, after: TrendPoint) -> float:
    return (_lag(after) - _lag(before)) * 1000 / (after.at_ms - before.at_ms)


def _at(points: Sequence[TrendPoint], at_ms: int) -> tuple[float, float, float]:
    """Offset, lag and log end at a time, linear between two points."""
    after = min(bisect_right([point.at_ms for point in points], at_ms), len(points) - 1)
    a, b = points[after - 1], points[after]
    share = (at_ms - a.at_ms) / (b.at_ms - a.at_ms)
    assert a.log_end is not None
    assert b.log_end is not None
    pairs = (a.offset, b.offset), (_lag(a), _lag(b)), (a.log_end, b.log_end)
    offset, lag, end = (low + (high - low) * share for low, high in pairs)
    return offset, lag, end


def _silence_ms(steady: Sequence[TrendPoint], settings: StatusSettings) -> float:
    """Time without commits after which a position is still."""
    longest = max((after.at_ms - before.at_ms for before, after in pairwise(steady)), default=settings.trend_gap_ms)
    return min(settings.trend_gap_ms, max(float(LEAST_MS), STILL_SHARE * longest))


def _since_caught_up(steady: Sequence[TrendPoint]) -> Sequence[TrendPoint]:
    """The points since the group has last caught up; all of them if it has not."""
    falls = [number for number, pair in enumerate(pairwise(steady), 1) if _has_caught_up(*pair)]
    return steady[falls[-1] :] if falls else steady


def _has_caught_up(before: TrendPoint, after: TrendPoint) -> bool:
    assert before.log_end is not None
    assert after.log_end is not None
    fell = _lag(before) - _lag(after)
    return _lag(after) < CAUGHT_UP_SHARE * _lag(before) and fell > (after.log_end - before.log_end) / 2


def _still(
    last: TrendPoint, ends: Sequence[SampledEnd], now_ms: int, settings: StatusSettings, start: GrowthStart | None
) -> LagTrend | None:
    """The trend of a position without new commits: that of the log end."""
    from_ms, end = log_end_since(ends, max(last.at_ms, now_ms - STILL_MS), settings.trend_gap_ms)
    seconds = (now_ms - from_ms) / 1000
    if seconds * 1000 < LEAST_MS:
        return None
    rate = (ends[-1].offset - end) / seconds
    rate = rate if abs(rate * seconds) >= 1 else 0.0
    return LagTrend(rate, seconds, max(0.0, rate), 0.0, start)
