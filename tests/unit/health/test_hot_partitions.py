"""Hot partitions of simulated topics whose truth is known. Times in seconds."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from group_scenarios import ORDERS, Scenario
from lag_samples import sample, sample_columns
from model_of_status import group_status

from coordinator_core.health import Finding, HotPartition, StatusSettings, hot_columns, lags_behind_others

SETTINGS = StatusSettings()
#: Samples of every 30 s for longer than the window of 600 s.
SECONDS = range(0, 901, 30)

Rate = Callable[[int], float]


def topic(
    rates: Mapping[int, float | Rate], seconds: range = SECONDS, added: Mapping[int, int] | None = None
) -> dict[int, HotPartition]:
    """The hot partitions at the time of the last sample of a topic, to which records are written at these rates per second.

    `added` has the times at which partitions were added that the topic did not have before.
    """
    histories, numbers = [], sorted(rates)
    for number in numbers:
        rate, end, taken = rates[number], 1_000.0, []
        for second in seconds:
            end += (rate(second) if callable(rate) else rate) * seconds.step
            if second >= (added or {}).get(number, 0):
                taken.append(sample(second * 1000, int(end)))
        histories.append(tuple(taken))
    columns = sample_columns(histories)
    found = hot_columns(columns, np.zeros(len(numbers), np.int64), seconds[-1] * 1000 + 5, SETTINGS)
    return {numbers[partition]: found.hot(row) for row, partition in enumerate(found.partition.tolist())}


def even(partitions: int, rate: float = 20.0) -> dict[int, float | Rate]:
    return dict.fromkeys(range(partitions), rate)


def test_one_hot_partition_of_twelve() -> None:
    found = topic({**even(12), 3: 120.0})
    assert found == {3: HotPartition(72_000, 72_000 + 11 * 12_000, 12, 600_000)}
    assert found[3].rate == 120.0


@pytest.mark.parametrize("partitions", [3, 12, 64])
def test_equal_partitions_are_not_hot(partitions: int) -> None:
    assert topic(even(partitions)) == {}


@pytest.mark.parametrize("seed", range(5))
def test_noise_makes_no_partition_hot(seed: int) -> None:
    """Poisson traffic, also a thin one, and keys whose popularity differs by half."""
    random = np.random.default_rng(seed)
    poisson: dict[int, float | Rate] = {n: lambda _: random.poisson(3_000) / 30 for n in range(12)}
    thin: dict[int, float | Rate] = {n: lambda _: random.poisson(3) / 30 for n in range(48)}
    popular: dict[int, float | Rate] = {n: 100 * random.uniform(0.5, 1.5) for n in range(24)}
    assert topic(poisson) == topic(thin) == topic(popular) == {}


def test_a_hot_partition_shows_through_noise() -> None:
    random = np.random.default_rng(7)
    rates: dict[int, float | Rate] = {n: lambda _: max(0.0, random.normal(100, 30)) for n in range(12)}
    assert topic({**rates, 5: lambda _: max(0.0, random.normal(500, 100))}).keys() == {5}


def test_two_partitions_show_nothing() -> None:
    assert topic({0: 10.0, 1: 1_000.0}) == {}
    assert topic({0: 10.0, 1: 10.0, 2: 1_000.0}).keys() == {2}


@pytest.mark.parametrize("burst", range(300, 900, 60))
def test_a_burst_of_one_sample_is_not_hot(burst: int) -> None:
    assert topic({**even(12), 3: lambda at: 100_000.0 if at == burst else 20.0}) == {}


def test_a_partition_that_is_hot_for_less_than_the_window() -> None:
    assert topic({**even(12), 3: lambda at: 500.0 if at > 600 else 20.0}) == {}
    assert topic({**even(12), 3: lambda at: 500.0 if at > 270 else 20.0}).keys() == {3}


def test_an_idle_topic_and_one_of_few_records() -> None:
    assert topic(even(12, 0.0)) == {}
    assert topic({**even(12, 0.0), 3: 0.5}) == {}
    assert topic({**even(12, 0.0), 3: 5.0}).keys() == {3}, "all records have one key"


def test_a_partition_that_was_added_late_is_not_compared() -> None:
    assert topic({**even(12), 12: 500.0}, added={12: 600}) == {}
    assert topic({**even(12), 12: 500.0}, added={12: 270}).keys() == {12}
    # two known partitions and one that is new
    assert topic({0: 20.0, 1: 500.0, 2: 20.0}, added={2: 600}) == {}


def test_samples_that_are_too_far_apart_show_nothing() -> None:
    """Between two samples of ten minutes nothing is known about a burst."""
    assert topic({**even(12), 3: 120.0}, range(0, 3_001, 600)) == {}
    assert topic({**even(12), 3: 120.0}, range(0, 1_201, 120)).keys() == {3}


def test_a_topic_whose_rates_are_spread_widely_has_no_hot_partition() -> None:
    assert topic({number: 10.0 * 2**number for number in range(6)}) == {}


def test_a_failed_partition_is_not_compared() -> None:
    columns = sample_columns(
        [
            (*(sample(at * 1000, rate * at) for at in SECONDS[:-1]), sample(900_000, None if failed else rate * 900))
            for rate, failed in ((20, False), (20, True), (500, False))
        ]
    )
    assert not len(hot_columns(columns, np.zeros(3, np.int64), 900_010, SETTINGS).partition)


def test_each_topic_has_a_median_of_its_own() -> None:
    rates = (20, 20, 20, 500, 500, 500)
    columns = sample_columns([tuple(sample(at * 1000, rate * at) for at in SECONDS) for rate in rates])
    of_one = hot_columns(columns, np.zeros(6, np.int64), 900_010, StatusSettings(hot_deviations=0.0, hot_ratio=1.5))
    assert of_one.partition.tolist() == [3, 4, 5]
    assert not len(hot_columns(columns, np.array([0, 0, 0, 1, 1, 1]), 900_010, SETTINGS).partition)


# -- findings of groups


def reading(hot_age: int, other_age: int = 0, hot: int = 120) -> list[Finding]:
    """Findings of a group whose oldest unread records are of these ages, on a topic of four partitions at 20 records/s."""
    scenario = Scenario()
    for partition in range(4):
        rate, age = (hot, hot_age) if partition == 3 else (20, other_age)
        for at in SECONDS:
            scenario.end(at, 10_000 + rate * at, partition).commit(at, 10_000 + rate * max(0, at - age), partition)
    found = group_status(scenario.history(), 900_000)
    return [each for each in found.findings if each.rule == "hot_partition"]


def test_a_group_that_lags_on_a_hot_partition() -> None:
    (found,) = reading(hot_age=300)
    assert (found.partition, found.window_rows, found.window_seconds) == (ORDERS[3], 4, 600.0)
    assert (found.amount, found.total, found.rate) == (72_000, 108_000, 120.0)
    assert found.detail == (
        "72,000 of 108,000 records of the last 10 min are on orders-3, one of 4 partitions: 120.0 records/s; "
        "the first unread record has waited since 00:10 UTC."
    )
    assert found.next_step


def test_no_finding_where_the_group_does_not_lag_or_lags_everywhere() -> None:
    assert reading(hot_age=0) == []
    assert reading(hot_age=30) == []
    assert reading(hot_age=300, other_age=300) == [], "it is slow on all partitions"
    assert reading(hot_age=300, hot=20) == [], "no partition is hot"


def test_unknown_ages_of_other_partitions_show_nothing() -> None:
    starts, low = np.array([0, 3]), np.array([np.nan, np.nan, 300.0])
    assert lags_behind_others(low, np.array([1.0, 2.0, 310.0]), starts, SETTINGS).tolist() == [False, False, True]
    assert lags_behind_others(low, np.array([np.nan, np.nan, 310.0]), starts, SETTINGS).tolist() == [False] * 3
