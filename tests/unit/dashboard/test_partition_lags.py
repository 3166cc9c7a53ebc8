"""The lag of partitions over time: which partitions and samples are shown, and how they are drawn."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from pipelines.dashboard.history.partition_lags import MOST_PARTITIONS, partition_lags
from pipelines.dashboard.history.span import span_until
from pipelines.dashboard.pages.group.lag_map import WIDTH, lag_map, map_summary, shade

END = datetime(2026, 3, 4, 14, tzinfo=UTC)
SPAN = span_until(END, "1h")
_BEHIND = pa.list_(pa.struct({"partition": pa.int32(), "lag": pa.int64(), "lag_seconds": pa.float64()}))


def _at(minutes: int) -> datetime:
    return SPAN.start + timedelta(minutes=minutes)


def _lags(
    *samples: tuple[int, dict[int, int]],
    unknown: int = 0,
    first: tuple[int, ...] = (),
    others: tuple[int, ...] = (),
    points: Any = (),
    sampled_at: datetime | None = None,
) -> Any:
    """The result for samples (minutes after the start, lag by partition) of the topic `orders`."""
    table = pa.table(
        {
            "topic": pa.array(["orders"] * len(samples), pa.string()),
            "at": pa.array([_at(minutes) for minutes, _ in samples], pa.timestamp("us", "UTC")),
            "unknown_partitions": pa.array([unknown] * len(samples), pa.int32()),
            "behind": pa.array(
                [[{"partition": each, "lag": lag, "lag_seconds": None} for each, lag in lags.items()] for _, lags in samples],
                _BEHIND,
            ),
        }
    )
    now = [{"topic": "orders", "partition": each, "lag": 1} for each in first]
    at_end = [{"topic": "orders", "partition": each, "lag": 0} for each in others]
    return partition_lags(table, SPAN, points, now + at_end, now, sampled_at)


def test_the_partitions_with_the_greatest_lag_are_shown_in_their_order_and_the_others_counted() -> None:
    found = _lags((0, {number: number + 1 for number in range(10_000)}), first=(7,))
    assert [row["partition"] for row in found["rows"]] == [7, *range(10_001 - MOST_PARTITIONS, 10_000)]
    assert (found["hidden"], found["hidden_lag"]) == (10_000 - MOST_PARTITIONS, 10_000 - MOST_PARTITIONS + 1)


def test_a_partition_that_is_not_behind_is_at_the_end_unless_a_lag_is_unknown() -> None:
    samples: tuple[tuple[int, dict[int, int]], ...] = ((0, {0: 5}), (10, {}))
    (row,) = _lags(*samples)["rows"]
    assert [each["lag"] for each in row["samples"]] == [5, 0]
    assert (row["most_lag"], row["most_at"], row["lag"]) == (5, _at(0), None)
    (row,) = _lags(*samples, unknown=1)["rows"]
    assert [each["lag"] for each in row["samples"]] == [5, None]


def test_a_time_without_samples_of_the_group_is_unknown() -> None:
    points = [{"at": _at(minutes), "lag": lag} for minutes, lag in ((0, 5), (15, 5), (20, None), (50, 5))]
    (row,) = _lags((0, {0: 5}), (15, {0: 6}), (50, {0: 7}), points=points)["rows"]
    drawn = [(each["at"], each["until"], each["lag"]) for each in row["samples"]]
    assert drawn == [(_at(0), _at(15), 5), (_at(15), _at(20), 6), (_at(20), _at(50), None), (_at(50), END, 7)]


def test_the_sample_before_the_span_is_the_value_at_its_start() -> None:
    (row,) = _lags((-5, {0: 5}), (30, {0: 4}))["rows"]
    assert [(each["at"], each["until"], each["lag"]) for each in row["samples"]] == [(SPAN.start, _at(30), 5), (_at(30), END, 4)]


def test_the_last_sample_ends_the_row_and_counts_for_the_greatest_lag() -> None:
    (row,) = _lags((0, {0: 0}), first=(0,), sampled_at=_at(40))["rows"]
    assert [(each["at"], each["until"]) for each in row["samples"]] == [(SPAN.start, _at(40))]
    assert (row["lag"], row["most_lag"], row["most_at"]) == (1, 1, _at(40))


def test_the_number_of_rows_is_that_of_the_partitions_whatever_their_lag() -> None:
    for samples in ([(0, {2: 5})], [(0, {2: 5}), (10, {0: 1, 1: 1, 2: 1})]):
        rows = _lags(*samples, others=(0, 1, 2))["rows"]
        assert [row["partition"] for row in rows] == [0, 1, 2]
    found = _lags((0, {2: 5}), others=tuple(range(100)))
    assert (len(found["rows"]), found["hidden"], found["hidden_lag"]) == (MOST_PARTITIONS, 100 - MOST_PARTITIONS, 0)


def test_a_group_that_was_never_behind_has_no_rows() -> None:
    nothing = {"rows": [], "hidden": 0, "hidden_lag": None}
    assert _lags() == nothing
    assert _lags((0, {}), others=(0, 1)) == nothing
    assert _lags(others=(0, 1)) == nothing


def test_a_partition_whose_topic_was_not_sampled_has_no_bars() -> None:
    (row,) = _lags(first=(0,))["rows"]
    assert (row["samples"], row["most_lag"], row["most_at"]) == ([], 1, END)


def test_the_map_has_a_bar_for_each_run_of_a_shade() -> None:
    model = {
        "group_id": "billing",
        "span": {"start": SPAN.start, "end": SPAN.end, "text": "1h"},
        "partition_lag": _lags((0, {0: 3, 1: 70_000}), (10, {0: 9}), (20, {0: 2_000})),
    }
    drawn = lag_map(model, {("orders", 1)})
    assert [(row.name, row.is_affected) for row in drawn.rows] == [("orders-0", False), ("orders-1", True)]
    bars = drawn.rows[0].bars
    assert [(bar.shade, bar.words) for bar in bars] == [(1, "orders-0: 3 to 9 records"), (4, "orders-0: 2,000 records")]
    # height repeats what the shade says, and bars end where the next one begins
    assert bars[0].height < bars[1].height
    assert bars[0].x + bars[0].width == bars[1].x
    assert bars[1].x + bars[1].width == WIDTH
    assert map_summary(model) == "Last 1h: 70,000 records at most, on orders-1."


def test_the_values_of_affected_partitions_and_of_the_greatest_lags_are_read_at_the_cursor() -> None:
    lags = _lags((0, {number: 1 + number % 10 for number in range(20)}), first=(3,))
    model = {"group_id": "billing", "span": {"start": SPAN.start, "end": SPAN.end, "text": "1h"}, "partition_lag": lags}
    read = [row.name for row in lag_map(model, {("orders", 3)}).rows if row.values]
    assert read == [f"orders-{number}" for number in (3, 7, 8, 9, 18, 19)]


def test_a_shade_is_a_power_of_ten() -> None:
    assert [shade(lag) for lag in (0, 1, 10, 11, 100_000, 100_001)] == [0, 1, 1, 2, 5, 6]
