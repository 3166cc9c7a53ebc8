"""Trends in columns, kept from sample to sample, are those of the scalar rules over the whole history."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lag_samples import sample, sample_columns
from model_of_logs import current_log, log_ends
from model_of_trends import GrowthStart, LagTrend, falling_since, lag_trend, trend_points

from coordinator_core.health import NONE, EndOffsetSample, GrowthStarts, RecentPoints, SampledEnds, StatusSettings, trend_columns
from coordinator_core.health.sample_columns import CurrentLogs

SETTINGS = StatusSettings(falls_behind_ms=200_000, trend_gap_ms=150_000)


class Life(NamedTuple):
    """Samples and commits of a partition; a commit without offset is a removal."""

    samples: tuple[EndOffsetSample, ...]
    commits: tuple[tuple[int, int | None], ...]


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """A partition that is written and read at rates that change now and then, with gaps, rewinds, removals and failures."""
    samples: list[EndOffsetSample] = []
    commits: list[tuple[int, int | None]] = []
    at, end, position, topic = draw(st.integers(0, 90_000)), 0, 0, 0
    for _ in range(draw(st.integers(1, 4))):
        produced, share = draw(st.sampled_from([0, 3, 40, 2_000])), draw(st.sampled_from([0.0, 0.7, 0.95, 1.0, 1.3]))
        step = draw(st.sampled_from([10_000, 30_000, 60_000]))
        for _ in range(draw(st.integers(1, 16))):
            at += step + draw(st.sampled_from([0, 0, 0, 777]))
            end += produced * step // 1000
            position = min(end, position + int(produced * share * step / 1000))
            commits.append((at - draw(st.sampled_from([0, 0, 2_000, 9_000])), position))
            samples.append(sample(at, end, topic_id=f"id{topic}"))
        match draw(st.sampled_from(["gap", "rewind", "removal", "failure", "recreation", "nothing", "nothing"])):
            case "gap":
                at += draw(st.sampled_from([140_000, 160_000, 900_000]))
            case "rewind":
                position //= 2
            case "removal":
                commits.append((at, None))
            case "failure":
                at += 30_000
                samples.append(sample(at, None))
            case "recreation":
                end, position, topic, at = 0, 0, topic + 1, at + 30_000
                samples.append(sample(at, end, topic_id=f"id{topic}"))
    return Life(tuple(samples), tuple(commits))


def scalar(topic: list[Life], before: dict[int, GrowthStart]) -> dict[int, LagTrend]:
    """Trends by the specification; the partitions are of one topic."""
    partitions, now = {}, {}
    for number, life in enumerate(topic):
        ends = log_ends(current_log(life.samples).samples)
        pairs: list[tuple[int, int]] = []
        for at, offset in life.commits:
            pairs = [] if offset is None else [*pairs, (at, offset)]
        if ends and pairs:
            partitions[number] = trend_points(pairs, ends, SETTINGS), ends
            now[number] = life.samples[-1].answered_at_ms
    since = falling_since(partitions, now, SETTINGS, before)
    found = {number: lag_trend(*each, now[number], SETTINGS, since.get(number)) for number, each in partitions.items()}
    return {number: each for number, each in found.items() if each is not None}


def until(life: Life, at_ms: int) -> Life:
    """A life until a time, as a job knows it that sampled then."""
    return Life(tuple(s for s in life.samples if s.answered_at_ms <= at_ms), tuple(c for c in life.commits if c[0] <= at_ms))


@given(st.lists(lives(), min_size=1, max_size=4), st.lists(st.floats(0.05, 1), max_size=4), st.booleans())
def test_columns_agree_with_the_scalar_rules(topic: list[Life], shares: list[float], fell: bool) -> None:
    """The columns take the lives in pieces, and the scalar rules each piece as a whole."""
    last = max(life.samples[-1].answered_at_ms for life in topic)
    points, read = RecentPoints(len(topic)), [0] * len(topic)
    before = {0: GrowthStart(0, is_latest=True)} if fell else {}
    starts = np.array([0, len(topic)])
    for at_ms in sorted([int(share * last) for share in shares] + [last]):
        pieces = [until(life, at_ms) for life in topic]
        events = [(row, *c) for row, piece in enumerate(pieces) for c in piece.commits[read[row] :]]
        read = [len(piece.commits) for piece in pieces]
        row, at, offset = (
            (np.array([NONE if value is None else value for value in c], np.int64) for c in zip(*events, strict=True))
            if events
            else [np.zeros(0, np.int64)] * 3
        )
        points.add(row, at, offset)
        sampled = [piece.samples for piece in pieces if piece.samples]
        numbers = iter(range(len(sampled)))
        partition = np.array([next(numbers) if piece.samples else -1 for piece in pieces])
        ends = SampledEnds(CurrentLogs(sample_columns(sampled)), SETTINGS.trend_gap_ms)
        points.set_log_ends(ends, partition)
        now = np.array([piece.samples[-1].answered_at_ms if piece.samples else NONE for piece in pieces])
        starts_before = [before.get(number, GrowthStart(NONE)) for number in range(len(topic))]
        known = GrowthStarts(*(np.array(column) for column in zip(*starts_before, strict=True)))
        found = trend_columns(points.columns, ends, partition, now, starts, SETTINGS, known)
        expected = scalar(pieces, before)
        assert np.flatnonzero(~np.isnan(found.slope)).tolist() == sorted(expected)
        for number, trend in expected.items():
            values = (found.slope[number], found.window_seconds[number], found.produce_rate[number], found.consume_rate[number])
            assert values == pytest.approx(trend[:4])
            start = GrowthStart(int(found.falls_behind.at_ms[number]), bool(found.falls_behind.is_latest[number]))
            assert (None if start.at_ms == NONE else start) == trend.falls_behind
