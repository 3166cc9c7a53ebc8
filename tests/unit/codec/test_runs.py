"""Runs of equal rows, compared with a loop."""

from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.codec.runs import begins_run, ends_run, ranks_in_runs, starts_of_runs, sums_of_runs

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12)


@given(ROWS)
def test_runs_of_two_columns(rows: list[tuple[int, int]]) -> None:
    columns = (np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64))
    lengths = [len(list(run)) for _, run in groupby(rows)]
    starts = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
    assert starts_of_runs(*columns).tolist() == starts
    assert np.flatnonzero(begins_run(*columns)).tolist() == starts[:-1]
    assert np.flatnonzero(ends_run(*columns)).tolist() == [start - 1 for start in starts[1:]]
    assert ranks_in_runs(*columns).tolist() == [rank for length in lengths for rank in range(length)]


INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), -(2**62), -1, 0, 1, 2**62, 2**63 - 1])


@given(st.lists(st.lists(INT64, min_size=1, max_size=5), min_size=1, max_size=4))
def test_sums_of_runs_are_saturated(runs: list[list[int]]) -> None:
    starts = np.cumsum([0, *(len(run) for run in runs[:-1])])
    found = sums_of_runs(np.array([value for run in runs for value in run], np.int64), starts)
    assert found.tolist() == [min(max(sum(run), -(2**63)), 2**63 - 1) for run in runs]
