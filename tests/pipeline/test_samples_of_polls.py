"""Log ends of partitions that a poll has found, in runs that poll once, however long the coordinators take to answer."""

from pathlib import Path

import pytest
from polled_groups import classic, consumer, offsets
from slow_polls import SlowPolls


@pytest.fixture(name="tables")
def tables_of_slow_polls(tmp_path: Path) -> SlowPolls:
    return SlowPolls(tmp_path / "east")


def test_a_first_poll_has_the_lag_of_each_partition(tables: SlowPolls) -> None:
    """Partition 1 is owned by the second member, and no member has committed to it."""
    tables.cluster.groups["billing"] = (consumer(1, "m1", "m2"), offsets(orders=90))
    tables.run()
    assert tables.lag() == {"billing orders-0": (10, 100), "billing orders-1": (None, 100)}
    assert tables.polls == 1


def test_partitions_of_a_later_poll_have_lag_as_well(tables: SlowPolls) -> None:
    tables.cluster.groups["billing"] = (classic("m1"), offsets(orders=90))
    tables.run()
    tables.cluster.groups["billing"] = (classic("m1"), offsets(orders=95, payments=97))
    tables.cluster.groups["shipping"] = (consumer(1, "m1"), {})
    tables.run()
    assert tables.lag() == {"billing orders-0": (5, 100), "billing payments-0": (3, 100), "shipping orders-0": (None, 100)}
    assert tables.polls == 2


def test_groups_without_partitions_have_no_sample(tables: SlowPolls) -> None:
    tables.cluster.groups["billing"] = (classic("m1"), {})
    tables.run()
    assert tables.lag() == {}
    assert tables.polls == 1
