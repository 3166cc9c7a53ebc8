"""Growth of the log of a topic from samples: gaps, recreated topics, and sums that are kept."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dashboard.history.span import Span
from pipelines.dashboard.pages.topic.topic_history import growth_series, partition_logs

END = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPAN = Span(END - timedelta(hours=1), END, "1h")


def sample(minute: float, end: int | None, partition: int = 0, topic_id: str = "a", reason: str | None = None) -> dict[str, Any]:
    at = SPAN.start + timedelta(minutes=minute)
    start = None if end is None else 0
    return {"topic_id": topic_id, "partition": partition, "at": at, "log_start": start, "log_end": end, "reason": reason}


def total(points: list[dict[str, Any]]) -> float:
    width = SPAN.seconds / len(points)
    return sum(float(row["records_per_second"]) * width for row in points if row["records_per_second"] is not None)


def test_growth_is_per_second_and_summed_over_partitions() -> None:
    points = growth_series([sample(0, 0), sample(60, 7_200), sample(0, 5, 1), sample(60, 3_605, 1)], SPAN)
    assert {round(row["records_per_second"], 6) for row in points} == {3.0}


def test_time_without_samples_is_a_gap() -> None:
    points = growth_series([sample(30, 0), sample(60, 100)], SPAN)
    known = [row["at"] >= SPAN.start + timedelta(minutes=30) for row in points if row["records_per_second"] is not None]
    assert all(known)
    assert len(known) == len(points) // 2
    assert points[0]["records_per_second"] is None


def test_a_recreated_topic_does_not_shrink_the_growth() -> None:
    samples = [sample(0, 1_000), sample(20, 1_600), sample(40, 5, topic_id="b"), sample(60, 605, topic_id="b")]
    assert total(growth_series(samples, SPAN)) == pytest.approx(1_200)
    log = partition_logs(samples, SPAN)[0]
    assert (log["log_end"], log["records_per_second"]) == (605, pytest.approx(0.5))


def test_a_partition_without_an_answer_has_its_reason() -> None:
    failed = sample(60, None, reason="leader_does_not_answer")
    log = partition_logs([sample(0, 10), failed], SPAN)[0]
    assert (log["log_end"], log["reason"], log["records_per_second"]) == (None, "leader_does_not_answer", None)
    assert partition_logs([sample(0, 10)], SPAN)[0]["records_per_second"] is None, "one sample has no rate"


def test_a_part_of_an_interval_has_the_rate_of_this_part() -> None:
    points = growth_series([sample(0, 0), sample(20, 1_200), sample(20.1, 1_206)], SPAN)
    assert {round(row["records_per_second"], 6) for row in points if row["records_per_second"] is not None} == {1.0}


@given(st.dictionaries(st.integers(0, 120), st.integers(0, 10_000), min_size=2, max_size=20))
def test_the_series_has_the_growth_of_the_samples(steps: dict[int, int]) -> None:
    end, samples = 0, []
    for interval, grown in sorted(steps.items()):
        end += grown
        samples.append(sample(interval / 2, end))
    points = growth_series(samples, SPAN)
    assert total(points) == pytest.approx(samples[-1]["log_end"] - samples[0]["log_end"], abs=0.01)
