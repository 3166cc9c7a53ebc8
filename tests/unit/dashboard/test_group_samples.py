"""Samples of a group: sums over its topics, and the samples that a chart of partitions shows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from pipelines.dashboard.history.group_samples import greatest_by_part, sums_of_topics
from pipelines.dashboard.history.span import span_until
from pipelines.runtime.timestamps import TIMESTAMP

END = datetime(2026, 3, 4, 14, tzinfo=UTC)
SPAN = span_until(END, "1h")
SCHEMA = pa.schema(
    [
        *(("topic", pa.string()), ("at", TIMESTAMP), ("lag", pa.int64()), ("lag_seconds", pa.float64())),
        *(("lag_seconds_low", pa.float64()), ("lag_seconds_high", pa.float64()), ("unknown_partitions", pa.int32())),
    ]
)


def _at(minutes: float) -> datetime:
    return SPAN.start + timedelta(minutes=minutes)


def _samples(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"topic": "orders", "unknown_partitions": 0, **row, "at": _at(row["at"])} for row in rows], SCHEMA
    )


def _chosen(*samples: tuple[float, int | None], parts: int = 4) -> list[float]:
    """Minutes of the chosen ones of samples of one topic: minute and lag."""
    rows = _samples(*({"at": minute, "lag": lag} for minute, lag in samples))
    return [(at - SPAN.start) / timedelta(minutes=1) for at in greatest_by_part(rows, SPAN, parts)["at"].to_pylist()]


def test_lags_of_topics_are_added_and_ages_are_the_greatest() -> None:
    rows = _samples(
        {"at": 1, "lag": 5, "lag_seconds": 2.0, "lag_seconds_low": 1.0, "lag_seconds_high": 3.0},
        {"at": 0, "lag": 1, "lag_seconds": 0.0, "lag_seconds_high": None},
        {"at": 1, "topic": "clicks", "lag": 7, "lag_seconds": 9.0, "lag_seconds_low": None, "lag_seconds_high": 9.5},
    )
    first, second = sums_of_topics(rows).to_pylist()
    # an age of 0 needs no upper bound
    assert (first["at"], first["lag"], first["lag_seconds_high"]) == (_at(0), 1, None)
    assert (second["lag"], second["lag_seconds"], second["lag_seconds_low"], second["lag_seconds_high"]) == (12, 9.0, 1.0, 9.5)


def test_an_age_without_an_upper_bound_leaves_the_group_without_one() -> None:
    rows = _samples(
        {"at": 0, "lag": 5, "lag_seconds": 2.0, "lag_seconds_high": None},
        {"at": 0, "topic": "clicks", "lag": 7, "lag_seconds": 1.0, "lag_seconds_high": 1.5},
    )
    (row,) = sums_of_topics(rows).to_pylist()
    assert (row["lag_seconds"], row["lag_seconds_high"]) == (2.0, None)


def test_what_is_unknown_in_all_topics_is_null() -> None:
    (row,) = sums_of_topics(_samples({"at": 0, "lag": None, "unknown_partitions": 2})).to_pylist()
    assert (row["lag"], row["lag_seconds"], row["lag_seconds_high"], row["unknown_partitions"]) == (None, None, None, 2)
    assert sums_of_topics(_samples()).num_rows == 0


def test_each_part_of_the_span_has_the_sample_with_the_greatest_lag() -> None:
    # parts of 15 minutes
    assert _chosen((1, 5), (2, 9), (3, 1), (16, 4), (29, 3)) == [2, 16]
    assert _chosen() == []


def test_the_newest_of_equal_lags_is_chosen_and_unknown_ones_only_alone() -> None:
    assert _chosen((1, 5), (2, 5), (3, None), (20, None)) == [2, 20]


def test_of_the_time_before_the_span_the_newest_sample_is_chosen() -> None:
    assert _chosen((-9, 100), (-3, 1), (60, 2)) == [-3, 60]


def test_topics_have_samples_of_their_own() -> None:
    rows = _samples(
        {"at": 1, "lag": 5}, {"at": 2, "lag": 1}, {"at": 1, "topic": "clicks", "lag": 1}, {"at": 2, "topic": "clicks", "lag": 5}
    )
    chosen = greatest_by_part(rows, SPAN, 4).to_pylist()
    assert sorted((row["topic"], row["at"]) for row in chosen) == [("clicks", _at(2)), ("orders", _at(1))]
