"""Pruned samples give the same lag to the present commits and to later ones."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from lag_samples import sample_histories
from model_of_lag import Commit, partition_lag

from coordinator_core.health import EndOffsetSample, samples_table
from pipelines.lag.past.samples_at import sample_of
from pipelines.lag.sampling.sample_pruning import pruned_samples


def _spread(samples: tuple[EndOffsetSample, ...], factor: int) -> pa.Table:
    """The samples with times further apart, so that they are old enough to be pruned."""
    table = samples_table(samples)
    for name in ("asked_at", "answered_at"):
        us = np.array(table[name].cast(pa.int64())) * factor
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(us).cast(table.schema.field(name).type))
    return table


@given(sample_histories(min_size=2, max_size=24), st.integers(0, 25), st.integers(0, 25), st.sampled_from([1, 300]))
def test_commits_have_the_same_lag(samples: tuple[EndOffsetSample, ...], first: int, second: int, factor: int) -> None:
    table = _spread(samples, factor)
    every = tuple(map(sample_of, table.to_pylist()))
    rows = [("g", "orders", 0, first), ("h", "orders", 0, second)]
    positions = pa.Table.from_pylist(
        [dict(zip(("group_id", "topic", "partition", "committed_offset"), row, strict=True)) for row in rows]
    )
    kept = tuple(map(sample_of, pruned_samples(table, positions, every[-1].answered_at_ms).to_pylist()))
    assert set(kept) <= set(every)
    for offset in range(min(first, second), max(first, second, *(s.log_end or 0 for s in every)) + 1):
        before, after = partition_lag(Commit(offset), every), partition_lag(Commit(offset), kept)
        assert (after.lag, after.lag_method, after.messages_lost) == (before.lag, before.lag_method, before.messages_lost)
        assert (after.lag_seconds, after.lag_seconds_low, after.lag_seconds_high) == (
            before.lag_seconds,
            before.lag_seconds_low,
            before.lag_seconds_high,
        )


def test_only_groups_that_are_behind_need_old_samples() -> None:
    minute = 60_000
    every = [
        EndOffsetSample("id", topic, 0, at, at + 10, 0, at // minute)
        for topic in ("behind", "read")
        for at in range(0, 2_880 * minute, minute)
    ]
    positions = pa.table(
        {
            "topic": ["behind", "read"],
            "partition": pa.array([0, 0], pa.int32()),
            "committed_offset": [1_000, 2_879],
        }
    )
    kept = pruned_samples(samples_table(every), positions, 2_879 * minute + 10)
    counts = {topic: kept["topic"].to_pylist().count(topic) for topic in ("behind", "read")}
    # all samples of up to two hours, one an hour of a day and a quarter, one in six hours of the rest
    assert counts["read"] < 120 + 30 + 6
    assert counts["behind"] >= 2_880 - 1_001
