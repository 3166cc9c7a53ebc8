"""Geometry of the charts of pages."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dashboard.charts.area import Scale, area, round_top, round_top_of_seconds
from pipelines.dashboard.charts.readings import readings
from pipelines.dashboard.charts.sparkline import sparkline
from pipelines.dashboard.charts.time_axis import TimeAxis
from pipelines.dashboard.history.commit_rates import commit_rates
from pipelines.dashboard.history.group_history import with_gaps
from pipelines.dashboard.history.span import span_until
from pipelines.dashboard.history.thinned_series import thinned
from pipelines.dashboard.pages.group.group_view import named_rows
from pipelines.dashboard.pages.group.member_labels import MemberLabel, member_labels
from pipelines.dashboard.pages.group.ownership import ownership_chart
from pipelines.runtime.errors import UsageError

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
AXIS = TimeAxis(START, START + timedelta(hours=2), 100, 340)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def test_ticks_are_round_times_inside_the_axis() -> None:
    assert [(x, label) for x, label, _ in AXIS.ticks()] == [
        (100, "10:00"),
        (140, "10:20"),
        (180, "10:40"),
        (220, "11:00"),
        (260, "11:20"),
        (300, "11:40"),
        (340, "12:00"),
    ]
    day = TimeAxis(START, START + timedelta(days=1), 0, 240)
    assert [label for _, label, _ in day.ticks()] == ["12:00", "18:00", "2 Mar", "06:00"]


@given(st.integers(1, 400 * 86_400))
def test_an_axis_has_few_ticks(seconds: int) -> None:
    axis = TimeAxis(START, START + timedelta(seconds=seconds), 0, 1000)
    places = [x for x, _, _ in axis.ticks()]
    assert len(places) <= 8
    assert places == sorted(places)
    assert all(0 <= x <= 1000 for x in places)


@given(st.lists(st.floats(0, 1e12), min_size=1))
def test_the_scale_has_room_for_every_value(values: list[float]) -> None:
    assert round_top(values) >= max(values)
    assert round_top(values) <= max(10 * max(values), 1)
    assert round_top_of_seconds(values) >= max(values)


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 1), (0.03, 0.05), (1, 1), (9.6, 10), (11, 20), (240, 250), (999, 1_000), (25_862, 50_000)]
)
def test_scales_end_at_round_values(highest: float, top: float) -> None:
    assert round_top([highest]) == pytest.approx(top)


def test_a_point_without_a_value_is_a_gap() -> None:
    drawn = area([(at(0), 0), (at(30), 10), (at(30), None), (at(90), 10), (at(120), 5)], AXIS, Scale(10, 0, 50))
    assert drawn.line == "M100 50L160 0M280 0L340 25"
    assert drawn.fill.count("Z") == 2


def test_a_step_holds_until_the_next_point() -> None:
    drawn = area([(at(0), 10), (at(60), 5)], AXIS, Scale(10, 0, 50), is_stepped=True)
    assert drawn.line == "M100 0L220 0L220 25L340 25"


@given(st.lists(st.tuples(st.floats(0, 120), st.none() | st.floats(0, 1e9)), max_size=30))
def test_paths_remain_in_their_box(points: list[tuple[float, float | None]]) -> None:
    series = [(at(minutes), value) for minutes, value in sorted(points, key=lambda point: point[0])]
    drawn = area(series, AXIS, Scale(round_top(value for _, value in series if value is not None), 4, 76))
    numbers = [float(number) for number in re.findall(r"[\d.]+", drawn.fill)]
    assert all(100 <= x <= 340 for x in numbers[::2])
    assert all(4 <= y <= 76 for y in numbers[1::2])


def test_a_small_chart_without_values_is_not_drawn() -> None:
    assert sparkline([{"at": at(0), "lag": None}], "lag", at(60), timedelta(hours=1)) is None
    drawn = sparkline([{"at": at(0), "lag": 5}, {"at": at(60), "lag": 10}], "lag", at(60), timedelta(hours=1))
    assert drawn is not None
    assert drawn.end == (118, 2)


def stay(member: str, since: float | None, until: float | None, partition: int = 0) -> dict[str, object]:
    times = {name: None if minutes is None else at(minutes) for name, minutes in (("since", since), ("until", until))}
    row = {"topic": "orders", "partition": partition, "member_id": member, "group_instance_id": None, "generation": 1}
    return {**row, "client_id": member, "client_host": "/10.0.0.1", **times}


def test_a_time_without_an_owner_is_a_bar_of_its_own() -> None:
    owners = [stay("w1", None, 30), stay("w2", 60, None)]
    labels = member_labels(owners)
    chart = ownership_chart(owners, labels, AXIS, 200, [("orders", 0)])
    bars = chart.rows[0].bars
    assert [(bar.member, bar.x) for bar in bars] == [("w1", 100), (None, 160), ("w2", 220)]
    assert [bar.label for bar in bars] == ["w1", "", "w2"]
    assert (chart.rows[0].y, chart.bottom, chart.hidden) == (200, 220, 0)


def test_partitions_that_are_not_drawn_are_counted() -> None:
    owners = [stay("w1", None, None, partition) for partition in range(3)]
    chart = ownership_chart(owners, member_labels(owners), AXIS, 0, [("orders", 1)])
    assert chart.hidden == 2


def test_a_client_that_returns_keeps_name_and_colour() -> None:
    first, second = stay("w1-a", 0, 30), stay("w1-b", 31, None)
    for row in (first, second):
        row["client_id"] = "w1"
    assert member_labels([first, second]) == {"w1-a": MemberLabel("w1", 0), "w1-b": MemberLabel("w1", 0)}


def test_members_of_one_client_at_the_same_time_have_names_of_their_own() -> None:
    first, second = stay("consumer-1-abcd", 0, None), stay("consumer-1-efgh", 5, None)
    for row in (first, second):
        row["client_id"] = "consumer-1"
    labels = member_labels([first, second])
    assert {label.name for label in labels.values()} == {"consumer-1 abcd", "consumer-1 efgh"}
    assert {label.colour for label in labels.values()} == {0, 1}


def test_an_unusually_long_time_without_samples_is_a_gap() -> None:
    regular = [{"at": at(minutes), "lag": 1} for minutes in range(0, 600, 60)]
    assert with_gaps(regular) == regular
    points = [{"at": at(minutes), "lag": 1} for minutes in (0, 5, 10, 15, 60, 65, 70)]
    assert [(row["at"], row["lag"]) for row in with_gaps(points)][3:6] == [(at(15), 1), (at(15), None), (at(60), 1)]


@given(st.lists(st.none() | st.integers(0, 1000), min_size=1, max_size=400), st.integers(4, 50))
def test_thinning_keeps_the_extremes(values: list[int | None], most: int) -> None:
    points = [{"at": at(number), "lag": value} for number, value in enumerate(values)]
    kept = thinned(points, "lag", most)
    begin_gaps = [points[n]["at"] for n in range(1, len(values)) if values[n] is None and values[n - 1] is not None]
    assert len(kept) <= max(most + 2, 4) + len(begin_gaps)
    assert set(begin_gaps) <= {row["at"] for row in kept if row["lag"] is None}
    known = [value for value in values if value is not None]
    shown = [row["lag"] for row in kept if row["lag"] is not None]
    if known:
        assert (min(shown), max(shown)) == (min(known), max(known))
    assert [row["at"] for row in kept] == sorted(row["at"] for row in kept)


@given(st.lists(st.tuples(st.floats(6, 40), st.integers(0, 100)), min_size=1, max_size=8))
def test_the_windows_of_commit_rates_have_all_commits_and_no_other_time(batches: list[tuple[float, int]]) -> None:
    span = span_until(START + timedelta(hours=6), "6h")
    ends = [sum(minutes for minutes, _ in batches[: number + 1]) for number in range(len(batches))]
    reads = [{"batch_id": number, "at": at(minutes)} for number, minutes in enumerate(ends)]
    commits = [
        {"batch_id": number, "commits": count, "oldest_at": at(ends[number])}
        for number, (_, count) in enumerate(batches)
        if count
    ]
    rates = commit_rates(reads, commits, span)
    known = [row for row in rates if row["until"] is not None]
    assert [row["at"] for row in known[1:]] == [row["until"] for row in known[:-1]]
    total = sum(row["commits_per_second"] * (row["until"] - row["at"]).total_seconds() for row in known)
    # those of the first batch were made in an unknown time
    assert abs(total - sum(count for _, count in batches[1:])) < 1e-6
    assert rates == [] or rates[-1]["commits_per_second"] is None


def test_commits_between_two_distant_batches_are_no_zeros() -> None:
    span = span_until(START + timedelta(hours=6), "6h")
    reads = [{"batch_id": number, "at": at(40 * number)} for number in range(1, 5)]
    commits = [{"batch_id": number, "commits": 2_400, "oldest_at": at(40 * number)} for number in range(1, 5)]
    assert [row["commits_per_second"] for row in commit_rates(reads, commits, span)] == [1.0, 1.0, 1.0, None]


def test_the_rate_of_commits_that_were_read_late_is_unknown() -> None:
    span = span_until(START + timedelta(hours=6), "6h")
    reads = [{"batch_id": number, "at": at(300 + 10 * number)} for number in range(3)]
    commits = [{"batch_id": 1, "commits": 9_000, "oldest_at": at(5)}, {"batch_id": 2, "commits": 600, "oldest_at": at(315)}]
    assert [row["commits_per_second"] for row in commit_rates(reads, commits, span)] == [None, 1.0, None]


@pytest.mark.parametrize("text", ["0h", "6", "h", "6w", "401d", "-1h", "99999d"])
def test_invalid_spans_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"invalid span '{text}'"):
        span_until(START, text)


def test_the_span_ends_at_the_moment() -> None:
    span = span_until(START, "90m")
    assert (span.start, span.end, span.seconds) == (START - timedelta(minutes=90), START, 5_400)


def test_readings_hold_until_the_next_text_and_begin_gaps() -> None:
    points = [(at(0), "5 s"), (at(10), "5 s"), (at(20), "7 s"), (at(30), None), (at(40), None), (at(60), "7 s")]
    assert readings(points, AXIS) == "100=5 s|140=7 s|160=|220=7 s"
    assert readings([], AXIS) == ""


def test_low_rows_have_the_names_of_affected_partitions_and_of_some_others() -> None:
    partitions = [("orders", number) for number in range(60)]
    owners = [{"topic": "orders", "partition": 0, "member_id": "a", "since": None, "until": None}]
    chart = ownership_chart(owners, {"a": ("a", 0)}, AXIS, 0, partitions)
    assert named_rows(chart, {("orders", 9)}) == {9, *range(0, 60, 4)} - {8}
    few = ownership_chart(owners, {"a": ("a", 0)}, AXIS, 0, partitions[:6])
    assert named_rows(few, set()) == set(range(6))
