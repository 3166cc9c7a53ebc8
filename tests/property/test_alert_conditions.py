"""Conditions on aggregates with missing values: what is certain, and nothing else, is true or false."""

import math
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.alerts.states import Above, Aggregate, Below, OneOf, holds_of_aggregate

#: The partitions of a group have values of 0 or more; None is unknown.
PARTITIONS = st.lists(st.none() | st.integers(0, 6), min_size=1, max_size=4)
_POSSIBLE = (0, 1, 3, 7, 1_000)
_FUNCTIONS: dict[Aggregate, Callable[[list[int]], int]] = {Aggregate.SUM: sum, Aggregate.MAX: max, Aggregate.MIN: min}


def completions(values: list[int | None]) -> list[list[int]]:
    """All lists in which the unknown values are replaced by possible ones."""
    found: list[list[int]] = [[]]
    for value in values:
        found = [[*head, each] for head in found for each in (_POSSIBLE if value is None else (value,))]
    return found


@given(PARTITIONS, st.sampled_from(Aggregate), st.sampled_from([Above, Below]), st.integers(1, 12))
def test_a_condition_is_true_only_if_every_value_of_the_unknown_makes_it_true(
    values: list[int | None], aggregate: Aggregate, kind: type[Above] | type[Below], limit: int
) -> None:
    known = [value for value in values if value is not None]
    function = _FUNCTIONS[aggregate]
    column = pa.chunked_array([pa.array([float(function(known)) if known else None], pa.float64())])
    unknown = pa.chunked_array([pa.array([len(values) - len(known)], pa.int64())])
    (found,) = holds_of_aggregate(kind(limit), aggregate, column, unknown).to_pylist()
    outcomes = {(function(each) > limit) if kind is Above else (function(each) < limit) for each in completions(values)}
    if known:
        assert found == (outcomes.pop() if len(outcomes) == 1 else None)
    else:
        assert found is None


@pytest.mark.parametrize("condition", [Above(5), Below(5)])
def test_nan_and_null_are_unknown(condition: Above | Below) -> None:
    values = pa.chunked_array([pa.array([math.nan, None, 5.0], pa.float64())])
    assert condition.holds(values).to_pylist() == [None, None, False]


def test_a_status_that_means_unknown_fires_only_if_it_is_named() -> None:
    values = pa.chunked_array([["ERR", "OK", "UNKNOWN", None]])
    assert OneOf(("ERR",), ("UNKNOWN",)).holds(values).to_pylist() == [True, False, None, None]
    assert OneOf(("UNKNOWN",), ("UNKNOWN",)).holds(values).to_pylist() == [False, False, True, None]
