"""Trends and sustained growth, case by case, by the scalar rules. A sample each 30 s, a commit each 5 s."""

from collections.abc import Callable, Sequence

import pytest
from model_of_logs import SampledEnd
from model_of_trends import GrowthStart, LagTrend, TrendPoint, falling_since, lag_trend, trend_points

from coordinator_core.health import DEFAULT_SETTINGS

MINUTE = 60_000
START = 1_795_000_020_000
Offset = Callable[[float], float]


def seen(
    produced: Offset, consumed: Offset, seconds: int, absent: range = range(0)
) -> tuple[list[SampledEnd], list[tuple[int, int]]]:
    """Samples and commits until a second; none while the job is absent, whose next batch has the last commit only."""
    ends = [SampledEnd(_at(s), _at(s) + 10, int(produced(s))) for s in range(0, seconds + 1, 30) if s not in absent]
    commits = [(_at(s), int(consumed(s))) for s in range(0, seconds, 5) if s not in absent]
    if absent.stop and absent.stop <= seconds:
        commits.append((_at(absent.stop - 1), int(consumed(absent.stop - 1))))
    return ends, sorted(commits)


def _at(second: float) -> int:
    return START + int(second * 1000)


def trend(ends: Sequence[SampledEnd], commits: Sequence[tuple[int, int]]) -> LagTrend | None:
    points, now = trend_points(commits, ends, DEFAULT_SETTINGS), ends[-1].answered_at_ms
    since = falling_since({0: (points, ends)}, {0: now}, DEFAULT_SETTINGS, {})
    return lag_trend(points, ends, now, DEFAULT_SETTINGS, since.get(0))


def known(found: LagTrend | None) -> LagTrend:
    assert found is not None
    return found


def test_a_consumer_ten_percent_too_slow() -> None:
    """The numbers of the trial: +10 per second, of which the page showed +6.08 per minute."""
    found = known(trend(*seen(lambda s: 100 * s, lambda s: 90 * s, 720)))
    assert found.slope == pytest.approx(10, rel=0.02)
    assert found.produce_rate == pytest.approx(100, rel=0.01)
    assert found.consume_rate == pytest.approx(90, rel=0.01)
    assert found.falls_behind is not None
    assert found.falls_behind.at_ms <= _at(60)
    assert found.falls_behind.is_latest
    assert found.window_seconds == pytest.approx(715, abs=60)


@pytest.mark.parametrize("deficit", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("slow_from", [0, 900, 917, 951])
def test_a_steady_deficit_is_found_within_five_minutes(deficit: float, slow_from: int) -> None:
    def consumed(s: float) -> float:
        return 50 * (s - deficit * max(0, s - slow_from))

    def falls(second: int) -> bool:
        found = trend(*seen(lambda s: 50 * s, consumed, second))
        return found is not None and found.falls_behind is not None

    assert not any(falls(second) for second in range(60, slow_from + 60, 90))
    assert any(falls(second) for second in range(slow_from, slow_from + 301, 30))


@pytest.mark.parametrize("interval", [7, 60, 170])
def test_the_distance_of_commits_is_no_trend(interval: int) -> None:
    ends, commits = seen(lambda s: 1_000 * s, lambda s: 1_000 * s, 900)
    rare = [commit for commit in commits if (commit[0] - START) // 5_000 % (interval // 5 + 1) == 0]
    found = known(trend(ends, rare))
    assert found.slope == pytest.approx(0, abs=0.5)
    assert found.falls_behind is None


def test_a_burst_does_not_count() -> None:
    """Three times the traffic for four minutes; the consumer needs as long to read the rest."""
    position = 0.0
    produced, read = [0.0], [0.0]
    for s in range(1_500):
        produced.append(produced[-1] + (300 if 700 <= s < 940 else 100))
        position = min(produced[-1], position + 160)
        read.append(position)
    for end in range(600, 1_500, 30):
        found = trend(*seen(lambda s: produced[int(s)], lambda s: read[int(s)], end))
        assert known(found).falls_behind is None, end


def test_the_slope_of_points_that_are_seconds_apart_does_not_count() -> None:
    """A broker was paused for six seconds; then its producers write what they have kept, around the end of a minute."""
    points = [TrendPoint(_at(55), 0, 600), TrendPoint(_at(115), 0, 1_200), TrendPoint(_at(121), 0, 1_340)]
    found = known(lag_trend(points, [SampledEnd(_at(122), _at(122) + 10, 1_350)], _at(122) + 10, DEFAULT_SETTINGS))
    assert found.slope == 10
    assert found.window_seconds == 66


def test_what_producers_keep_during_an_outage_is_no_rate_of_the_log() -> None:
    """A sample each 4 s; at the newest one the producers have written the 240 records of six seconds, and commits follow it."""

    def produced(s: float) -> int:
        return round(40 * (s if s < 142 or s >= 150 else 142))

    times = [*range(2, 143, 4), 148, 152]
    ends = [SampledEnd(_at(s), _at(s) + 10, produced(s)) for s in times]
    commits = [(_at(s), round(36 * s)) for s in range(156)]
    found = known(trend(ends, commits))
    assert found.slope == pytest.approx(4, abs=1)


def test_a_group_that_stopped_does_not_fall_behind() -> None:
    """Its trend is that of the log, since its last commit."""
    ends, commits = seen(lambda s: 100 * s, lambda s: 95 * min(s, 600), 1_200)
    found = known(trend(ends, [commit for commit in commits if commit[0] <= _at(600)]))
    assert found[:3] == pytest.approx((100, 600, 100), rel=0.01)
    assert found[3:] == (0.0, None)


def test_a_position_that_does_not_move_does_not_fall_behind() -> None:
    found = known(trend(*seen(lambda s: 100 * s, lambda _: 500, 900)))
    assert (found.consume_rate, found.falls_behind) == (0, None)
    assert found.slope == pytest.approx(100, rel=0.01)


def test_time_without_a_job_is_not_bridged() -> None:
    """Away for eight minutes, in which the lag grew: the trend begins when the job is back."""
    ends, commits = seen(lambda s: 100 * s, lambda s: 100 * s - 50 * max(0, min(s, 900) - 600), 1_200, range(420, 901))
    found = known(trend(ends, commits))
    assert found.slope == pytest.approx(0, abs=0.5)
    assert found.window_seconds <= 300
    assert found.falls_behind is None


@pytest.mark.parametrize("back", [900, 3_000, 30_000])
def test_a_group_goes_on_to_fall_behind_over_a_time_without_a_job(back: int) -> None:
    """It read 90 % until the job was away, and reads as much when it is back: it falls behind since the time before."""
    start = GrowthStart(_at(7))
    for seconds in (back + 30, back + 60, back + 180, back + 240, back + 600):
        ends, commits = seen(lambda s: 40 * s, lambda s: 36 * s, seconds, range(420, back + 1))
        points, now = trend_points(commits, ends, DEFAULT_SETTINGS), ends[-1].answered_at_ms
        assert falling_since({0: (points, ends)}, {0: now}, DEFAULT_SETTINGS, {0: start}) == {0: start}, seconds
        found = known(lag_trend(points, ends, now, DEFAULT_SETTINGS, start))
        assert found[:4] == pytest.approx((4, found.window_seconds, 40, 36), rel=0.1)
        assert found.falls_behind == start


def test_a_group_that_caught_up_while_the_job_was_away_does_not_fall_behind() -> None:
    """Also one that has read more than half of its lag, or that no longer commits."""
    fell = {0: GrowthStart(_at(7))}

    def goes_on(consumed: Offset, committed_until: int = 2_000) -> dict[int, GrowthStart]:
        ends, commits = seen(lambda s: 40 * s, consumed, 930, range(420, 901))
        kept = [commit for commit in commits if commit[0] <= _at(committed_until)]
        points = trend_points(kept, ends, DEFAULT_SETTINGS)
        return falling_since({0: (points, ends)}, {0: ends[-1].answered_at_ms}, DEFAULT_SETTINGS, fell)

    assert goes_on(lambda s: 36 * s) == fell
    assert goes_on(lambda s: 36 * s if s < 600 else 40 * s) == {}
    assert goes_on(lambda s: 36 * s if s < 600 else 40 * s - 800) == {}
    assert goes_on(lambda s: 36 * s, committed_until=420) == {}
    assert goes_on(lambda s: 36 * s if s < 600 else 100) == {}, "went back"


def test_growth_begins_where_its_line_leaves_the_flat_lag() -> None:
    """Slowed between two commits of a minute: the window that shows it first began up to 50 s earlier."""
    for slowed in range(603, 660, 7):

        def consumed(s: float, at: int = slowed) -> float:
            return 40 * s - 4 * max(0, s - at)

        found = known(trend(*seen(lambda s: 40 * s, consumed, slowed + 240)))
        assert found.falls_behind is not None
        assert found.falls_behind.at_ms == pytest.approx(_at(slowed), abs=15_000), slowed
        assert not found.falls_behind.is_latest


def test_a_rewind_begins_a_new_window() -> None:
    found = known(trend(*seen(lambda s: 100 * s, lambda s: 100 * s if s < 600 else 100 * s - 50_000, 900)))
    assert found.slope == pytest.approx(0, abs=0.5)
    assert found.window_seconds <= 300


@pytest.mark.parametrize("seconds", [0, 30, 50])
def test_less_than_a_minute_is_no_trend(seconds: int) -> None:
    assert trend(*seen(lambda s: 100 * s, lambda s: 90 * s, seconds)) is None


def test_an_idle_group_is_flat() -> None:
    found = known(trend(*seen(lambda _: 500, lambda _: 450, 900)))
    assert found == LagTrend(0.0, found.window_seconds, 0.0, 0.0)


def test_a_group_that_stopped_grows_with_the_log_after_little_more_than_a_minute() -> None:
    ends, commits = seen(lambda s: 10 * s, lambda s: 10 * min(s, 300), 390)
    until_stop = [commit for commit in commits if commit[0] <= _at(300)]
    assert known(trend(ends, until_stop)).slope == pytest.approx(10, rel=0.05)
    assert known(trend(ends[:-1], until_stop)).slope == 0, "the window ends with the last commit, 60 s ago"


def test_a_lag_that_has_ended_is_no_growth() -> None:
    """A transaction ends after ten minutes, and the group reads all of it in one poll."""

    def consumed(s: float) -> float:
        return 0 if s < 600 else 10 * s

    assert known(trend(*seen(lambda s: 10 * s, consumed, 600))).slope == pytest.approx(10, rel=0.05)
    assert trend(*seen(lambda s: 10 * s, consumed, 630)) is None
    assert known(trend(*seen(lambda s: 10 * s, consumed, 720))).slope == 0


def test_a_lag_that_drains_has_a_trend() -> None:
    ends, commits = seen(lambda s: 10_000 + 10 * s, lambda s: min(10_000 + 10 * s, 40 * s), 240)
    assert known(trend(ends, commits)).slope == pytest.approx(-30, rel=0.05)


def test_many_slow_partitions_show_together_what_none_shows_alone() -> None:
    """Growth by chance is the square root of the records: 12 of 240 are not enough, 480 of 9,600 are."""
    ends, commits = seen(lambda s: s, lambda s: 0.95 * s, 300)
    points, now = trend_points(commits, ends, DEFAULT_SETTINGS), ends[-1].answered_at_ms

    def found(partitions: int) -> dict[int, GrowthStart]:
        each = dict.fromkeys(range(partitions), (points, ends))
        return falling_since(each, dict.fromkeys(each, now), DEFAULT_SETTINGS, {})

    assert found(1) == {}
    assert sorted(found(40)) == list(range(40))


def test_falling_behind_ends_when_the_lag_stops_growing() -> None:
    def at(second: int) -> dict[int, GrowthStart]:
        ends, commits = seen(lambda s: 100 * s, lambda s: 94 * min(s, 900) + 101 * max(0, s - 900), second)
        points = trend_points(commits, ends, DEFAULT_SETTINGS)
        return falling_since({0: (points, ends)}, {0: ends[-1].answered_at_ms}, DEFAULT_SETTINGS, {0: GrowthStart(_at(7))})

    assert at(900) == {0: GrowthStart(_at(7))}, "the start that is known, which is before the window"
    assert at(960) == {0: GrowthStart(_at(7))}
    assert at(1_200) == {}


def test_points_are_the_last_commits_of_minutes() -> None:
    ends = [SampledEnd(START, START, 0), SampledEnd(START + 2 * MINUTE, START + 2 * MINUTE, 1_200)]
    commits = [(START + second * 1000, second) for second in (5, 55, 50, 65, 130)]
    assert trend_points(commits, ends, DEFAULT_SETTINGS) == (
        TrendPoint(START + 55_000, 50, 550.0),
        TrendPoint(START + 65_000, 65, 650.0),
        TrendPoint(START + 130_000, 130, 1_300.0),
    )
