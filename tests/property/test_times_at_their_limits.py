"""All functions of time for every number of 64 bits: none fails, none leaves the years 1 to 9999, and "never" is said as such."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lag_samples import sample

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import (
    DEFAULT_SETTINGS,
    CommitColumns,
    FactColumns,
    GroupEvidence,
    LagMethod,
    PartitionEvidence,
    PartitionLag,
    SampledPartitions,
    evaluate,
    lag_columns,
    samples_table,
)
from coordinator_core.health.durations import duration as words_of_duration
from coordinator_core.health.durations import duration_text
from coordinator_core.health.finding_phrases import clock as clock_of_finding
from coordinator_core.health.group_evidence import deleted_from, repeats_since, waits_since
from coordinator_core.health.time_limits import (
    EARLIEST_MS,
    LATEST_MS,
    NEVER_FROM_MS,
    UNLIMITED,
    comes,
    difference,
    later,
    within_limits,
)
from pipelines.alerts.receivers.message import rfc3339
from pipelines.dashboard.formatting import quantities, times
from pipelines.dashboard.server.table_csv import table_csv
from pipelines.query.output import json_rows
from pipelines.runtime import time_columns, timestamps

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [-(2**63), -1, 0, 2**62, 2**63 - 1, EARLIEST_MS, EARLIEST_MS - 1, LATEST_MS, LATEST_MS + 1, NEVER_FROM_MS]
)
POSITIVE = st.integers(0, 2**63 - 1) | st.sampled_from([2**62, 2**63 - 1, LATEST_MS, LATEST_MS + 1])
SECONDS = st.floats(allow_nan=False) | NUMBERS.map(float)
NOW_MS = 1_795_000_000_000
NOW = datetime.fromtimestamp(NOW_MS / 1000, UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
TIMES = NUMBERS.map(timestamps.at_ms) | st.sampled_from([FIRST, LAST, NOW])


def test_the_limits_of_the_core_are_those_of_the_tables() -> None:
    assert timestamps.to_ms(timestamps.at_ms(-(2**63))) == EARLIEST_MS
    assert timestamps.to_ms(timestamps.at_ms(2**63 - 1)) == LATEST_MS
    assert timestamps.at_ms(NEVER_FROM_MS) == datetime(9999, 1, 1, tzinfo=UTC)


@given(NUMBERS)
def test_numbers_become_times_and_back(ms: int) -> None:
    assert timestamps.to_ms(timestamps.at_ms(ms)) == within_limits(ms)
    (column,) = time_columns.times_of(pa.array([ms], pa.int64())).to_pylist()
    assert column == timestamps.to_time(ms)
    assert rfc3339(ms).endswith("Z")


@given(NUMBERS, POSITIVE)
def test_later_times_of_columns_are_saturated(ms: int, distance: int) -> None:
    (found,) = time_columns.times_after(pa.array([ms], pa.int64()), distance).to_pylist()
    assert within_limits(found) == within_limits(ms + distance) or ms < EARLIEST_MS
    assert found <= LATEST_MS


@given(NUMBERS, SECONDS)
@example(NOW_MS, math.inf)
@example(NOW_MS, -math.inf)
def test_sums_of_a_time_and_seconds_are_saturated(ms: int, seconds: float) -> None:
    assert EARLIEST_MS <= later(within_limits(ms), seconds) <= LATEST_MS
    at = times.after(timestamps.at_ms(ms), seconds)
    assert FIRST <= at <= LAST


@given(NUMBERS, NUMBERS)
def test_differences_are_saturated(high: int, low: int) -> None:
    limits = np.iinfo(np.int64)
    assert difference(np.array([high]), np.array([low])).tolist() == [min(max(high - low, limits.min), limits.max)]


@given(TIMES, TIMES, SECONDS)
def test_every_text_of_a_page_is_short(at: datetime, now: datetime, seconds: float) -> None:
    texts = (
        *(times.iso(at), times.field_time(at), times.full(at), times.clock(at, now), times.clock(at)),
        *(times.since(at, now), times.until(at, now), times.margin(seconds, now)),
        *(quantities.duration(seconds), quantities.short_duration(seconds)),
        quantities.age({"lag_seconds": seconds, "lag_seconds_high": None}),
        *(words_of_duration(seconds), duration_text(seconds)),
        clock_of_finding(timestamps.to_ms(at), timestamps.to_ms(now)),
    )
    assert max(map(len, texts)) <= 60, texts


def test_words_for_times_that_do_not_come() -> None:
    never = timestamps.at_ms(2**63 - 1)
    assert times.until(never, NOW) == "never"
    assert times.margin((never - NOW).total_seconds(), NOW) == "never"
    assert times.margin(9_223_372_036_854_775.0, NOW) == "never"
    assert times.margin(60, NOW) == "1 min"
    assert (times.full(never), times.clock(never, NOW), times.since(never, NOW)) == (
        "after the year 9999",
        "after the year 9999",
        "in the future",
    )
    assert times.full(timestamps.at_ms(-(2**63))) == "before the year 1"
    assert times.iso(never) == "9999-12-31T23:59:59.999Z"
    assert quantities.duration(math.inf) == "more than 9,999 years"


@given(TIMES, TIMES)
def test_exports_have_iso_times(at: datetime, other: datetime) -> None:
    table = pa.table({"at": pa.array([at, other, None], timestamps.TIMESTAMP)})
    texts = [value for (value,) in json_rows(table)]
    assert all(text is None or (len(text) >= 24 and text[10] == "T" and text.endswith("Z")) for text in texts), texts
    json.dumps(texts, allow_nan=False)
    assert table_csv(table).count("\r\n") == 4


@pytest.mark.parametrize("retention", [UNLIMITED, 2**62, LATEST_MS])
def test_endless_retention_has_the_longest_margin(retention: int) -> None:
    """Kafka Streams sets `retention.ms` of repartition topics to 2**63 - 1."""
    rows = _lag(retention, [5, 5])
    (margin,) = rows["retention_margin_seconds"].to_pylist()
    assert times.margin(margin, NOW) == "never"
    lag = PartitionLag(lag=5, lag_seconds_high=0.0, retention_margin_seconds=margin, sampled_at_ms=NOW_MS)
    assert deleted_from(lag) is None


def _lag(retention: int, ends: list[int], *, offset: int = 0, at_ms: int = NOW_MS) -> pa.Table:
    samples = [sample(NOW_MS - 60_000 * (len(ends) - number), end) for number, end in enumerate(ends)]
    sampled = SampledPartitions(samples_table(samples))
    commits = CommitColumns(
        partition=np.array([0]),
        offset=np.array([offset]),
        committed_at_ms=np.array([at_ms]),
        moved_at_ms=np.array([at_ms]),
    )
    facts = FactColumns(np.array([0]), np.array([0]), np.array([retention]))
    return lag_columns(commits, sampled.columns, facts)


@given(POSITIVE, st.lists(POSITIVE, min_size=1, max_size=3), NUMBERS, NUMBERS)
@example(0, [2**63 - 1], -(2**63) + 1, 2**63 - 1)
def test_lag_of_any_numbers_is_finite(retention: int, ends: list[int], offset: int, at_ms: int) -> None:
    if offset == np.iinfo(np.int64).min:
        return
    # times in the tables are within the limits
    rows = _lag(retention, ends, offset=offset, at_ms=within_limits(at_ms))
    (row,) = rows.to_pylist()
    for name, value in row.items():
        if name.endswith("_seconds"):
            assert value is None or (math.isfinite(value) and value >= 0), name
    assert row["lag"] == (None if offset < 0 else ends[-1] - offset)
    margin = row["retention_margin_seconds"]
    assert margin is None or later(NOW_MS, margin) <= LATEST_MS


@given(SECONDS.map(abs), SECONDS.map(abs), SECONDS.map(abs), SECONDS.map(abs), NUMBERS.map(within_limits))
@example(9_223_372_036_854_686.0, 5e-324, 1e300, 0.0, LATEST_MS)
def test_findings_have_times_within_the_limits(margin: float, slope: float, rate: float, age: float, at_ms: int) -> None:
    if not all(map(math.isfinite, (margin, slope, rate, age))):
        return
    lag = PartitionLag(
        lag=5,
        lag_seconds_low=age,
        lag_seconds_high=age,
        lag_method=LagMethod.EXACT,
        retention_margin_seconds=margin,
        lag_slope_per_second=slope,
        produce_rate=rate,
        falls_behind_since_ms=NOW_MS - 600_000,
        sampled_at_ms=NOW_MS,
    )
    partition = PartitionEvidence(TopicPartition("t", 0), lag, None, expires_at_ms=at_ms, moved_at_ms=at_ms)
    status = evaluate(GroupEvidence("g", NOW_MS, DEFAULT_SETTINGS, (partition,)))
    for finding in status.findings:
        for ms in (finding.due_ms, finding.since_ms):
            assert ms is None or EARLIEST_MS <= ms <= LATEST_MS, finding
        assert finding.due_ms is None or comes(finding.due_ms) or finding.rule == "offsets_expiring", finding
    for function in (deleted_from, waits_since):
        call: Callable[[Any], int | None] = function
        found = call(lag)
        assert found is None or EARLIEST_MS <= found <= LATEST_MS
    since = repeats_since(partition)
    assert since is None or EARLIEST_MS <= since <= LATEST_MS


@given(NUMBERS, NUMBERS)
def test_a_time_to_edit_is_not_before_the_one_that_is_shown(ms: int, micros: int) -> None:
    at = timestamps.at_ms(ms).replace(microsecond=abs(micros) % 1_000_000)
    assert datetime.fromisoformat(times.field_time(at)).replace(tzinfo=UTC) >= at or LAST - at < timedelta(seconds=1)
