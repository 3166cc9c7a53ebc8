"""Records read per second by log partition, from the next offsets of batches."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pipelines.dashboard.pages.offsets_topic.log_history import read_rates, spaced

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_rates_are_differences_over_time() -> None:
    rates = read_rates([(at(0), {0: 10, 1: 5}), (at(10), {0: 30, 1: 5}), (at(15), {0: 35, 1: 5})])
    assert {partition: [row["records_per_second"] for row in points] for partition, points in rates.items()} == {
        0: [2.0, 1.0],
        1: [0.0, 0.0],
    }
    assert (rates[0][0]["at"], rates[0][1]["until"]) == (at(0), at(15))


def test_a_partition_begins_with_its_second_batch() -> None:
    rates = read_rates([(at(0), {}), (at(10), {3: 1_000}), (at(20), {3: 1_010})])
    assert [row["records_per_second"] for row in rates[3]] == [None, 1.0]
    assert read_rates([(at(0), {0: 5})]) == {0: []}
    assert read_rates([]) == {}


def test_positions_that_are_near_to_each_other_are_one() -> None:
    positions = [(at(second), {0: second}) for second in (0, 1, 100, 101, 160, 200)]
    assert [offsets[0] for _, offsets in spaced(positions, 50)] == [1, 101, 200]
    assert spaced([], 50) == []


@given(st.lists(st.tuples(st.integers(1, 600), st.integers(0, 1_000)), min_size=1, max_size=30))
def test_the_rates_add_up_to_the_records(steps: list[tuple[int, int]]) -> None:
    seconds, offset = 0, 7
    positions = [(at(0), {0: 7})]
    for distance, records in steps:
        seconds, offset = seconds + distance, offset + records
        positions.append((at(seconds), {0: offset}))
    read = sum(row["records_per_second"] * (row["until"] - row["at"]).total_seconds() for row in read_rates(positions)[0])
    assert round(read) == offset - 7
