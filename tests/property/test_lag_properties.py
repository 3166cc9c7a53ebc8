"""Lag of random partitions: bounds that hold the truth, columns that agree with the scalar version, folding and thinning."""

import math
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st
from lag_samples import (
    LagCase,
    SimulatedTopic,
    TransactionalLog,
    as_columns,
    as_row,
    commits,
    lag_cases,
    sample,
    sample_columns,
    sample_histories,
    simulations,
    without_times,
)
from model_of_lag import Commit, LagRow, partition_lag
from model_of_logs import add_sample, current_log, fold_runs, incarnations, thin

from coordinator_core.health import LAG_SCHEMA, EndOffsetSample, KeepRule, LagMethod, kept_samples

KEEP = (KeepRule(30_000, 0), KeepRule(90_000, 5_000), KeepRule(200_000, 20_000))
seconds = ("lag_seconds", "lag_seconds_low", "lag_seconds_high", "stuck_seconds", "drain_seconds", "retention_margin_seconds")


@given(simulations(), st.integers(0, 25))
def test_the_true_age_lies_between_low_and_high(
    simulation: tuple[SimulatedTopic, tuple[tuple[int, int, int], ...]], offset: int
) -> None:
    topic, requests = simulation
    samples = topic.samples(requests)
    for n, (asked, _, answered) in enumerate(requests):
        newest = samples[n]
        assert newest.log_end is not None
        if offset > newest.log_end:
            continue
        lag = partition_lag(Commit(offset), samples[: n + 1])
        truth = topic.age_ms(offset, answered) / 1000
        if lag.lag_method is LagMethod.NONE:
            assert n == 0 or requests[0][2] == answered
            continue
        assert lag.lag_seconds is not None
        assert lag.lag_seconds_low is not None
        assert lag.lag_seconds_low <= truth
        if lag.lag_method is LagMethod.LOWER_BOUND:
            assert topic.readable_at[offset] <= requests[0][1]
            continue
        assert lag.lag_seconds_high is not None
        assert truth <= lag.lag_seconds_high
        assert lag.lag_seconds_low <= lag.lag_seconds <= lag.lag_seconds_high
        width = round((lag.lag_seconds_high - lag.lag_seconds_low) * 1000)
        if lag.lag_method is LagMethod.EXACT:
            assert width <= answered - asked
        else:
            # asked to asked is the sampling interval, asked to answered the time of the request
            assert width <= max(after[2] - before[0] for before, after in pairwise(requests))


@given(simulations(), st.integers(0, 25))
def test_folding_changes_no_lag(simulation: tuple[SimulatedTopic, tuple[tuple[int, int, int], ...]], offset: int) -> None:
    topic, requests = simulation
    samples = topic.samples(requests)
    assert partition_lag(Commit(offset), fold_runs(samples)) == partition_lag(Commit(offset), samples)


@given(lag_cases())
def test_values_are_finite_and_never_negative(case: LagCase) -> None:
    lag = case.lag()
    for name in seconds:
        value = getattr(lag, name)
        assert value is None or (math.isfinite(value) and value >= 0), name
    assert lag.lag_slope_per_second is None or math.isfinite(lag.lag_slope_per_second)
    assert lag.messages_lost is None or lag.messages_lost >= 0
    assert lag.data_lag is None or lag.data_lag >= 0
    assert (lag.lag_method is LagMethod.NONE) == (lag.lag_seconds is None)
    assert lag.lag_seconds is not None or lag.lag_reason is not None
    if lag.lag_seconds is not None:
        assert lag.lag_seconds_low is not None
        assert lag.lag_seconds_low <= lag.lag_seconds
        assert lag.lag_seconds_high is None or lag.lag_seconds <= lag.lag_seconds_high


@given(st.lists(lag_cases(), max_size=12))
@example([])
def test_columns_agree_with_the_scalar_version(cases: list[LagCase]) -> None:
    table = as_columns(cases)
    assert table.schema == LAG_SCHEMA
    assert without_times(table).to_pylist() == [as_row(case.lag(), case.committed_at_ms) for case in cases]


@given(st.text("dmao", max_size=12), st.data())
def test_blocked_by_a_transaction_is_the_truth_about_the_log(kinds: str, data: st.DataObject) -> None:
    """With a count it is exact; without one it is never false."""
    log = TransactionalLog(kinds)
    offset = data.draw(st.integers(0, len(kinds)))
    samples = (sample(0, len(kinds), last_stable=log.last_stable),)
    counted = log.count(offset, data.draw(st.sampled_from([log.last_stable, len(kinds)])))
    assert LagCase(Commit(offset), samples, counted=counted).lag().blocked_by_transaction is log.is_blocked(offset)
    assert LagCase(Commit(offset), samples).lag().blocked_by_transaction in (None, log.is_blocked(offset))


@given(sample_histories(), commits)
def test_added_samples_fold_as_all_at_once(samples: tuple[EndOffsetSample, ...], commit: Commit) -> None:
    folded = fold_runs(samples)
    assert fold_runs(folded) == folded
    for end in range(len(samples)):
        assert add_sample(fold_runs(samples[:end]), samples[end]) == fold_runs(samples[: end + 1])
    assert [i.start for i in incarnations(folded)] == [i.start for i in incarnations(samples)]
    assert _ages(partition_lag(commit, folded)) == _ages(partition_lag(commit, samples))


@given(sample_histories(max_size=16), st.integers(0, 200_000), st.integers(0, 100_000), commits)
def test_thinning_keeps_events_and_true_bounds(
    samples: tuple[EndOffsetSample, ...], later: int, still_later: int, commit: Commit
) -> None:
    now = (samples[-1].answered_at_ms if samples else 0) + later
    thinned = thin(samples, now, KEEP)
    assert set(thinned) <= set(samples)
    assert thin(thinned, now, KEEP) == thinned
    assert thin(thinned, now + still_later, KEEP) == thin(samples, now + still_later, KEEP)
    if not thinned:
        assert not samples or samples[-1].answered_at_ms < now - KEEP[-1].age_ms
        return
    assert thinned[-1] == samples[-1]
    whole, part = current_log(samples), current_log(thinned)
    if whole.samples:
        assert part.samples[-1] == whole.samples[-1]
    exact, wider = partition_lag(commit, samples), partition_lag(commit, thinned)
    assert wider.lag == exact.lag
    if exact.lag_seconds_low is not None and wider.lag_seconds_low is not None:
        assert wider.lag_seconds_low <= exact.lag_seconds_low
    if wider.lag_seconds_high is not None:
        assert exact.lag_seconds_high is not None
        assert exact.lag_seconds_high <= wider.lag_seconds_high


@given(st.lists(sample_histories(min_size=1, max_size=16), max_size=4), st.integers(0, 300_000))
def test_columns_thin_as_the_scalar_rules(histories: list[tuple[EndOffsetSample, ...]], later: int) -> None:
    now = max((samples[-1].answered_at_ms for samples in histories), default=0) + later
    kept = kept_samples(sample_columns(histories), now, KEEP)
    every = [sample for samples in histories for sample in samples]
    assert [sample for sample, is_kept in zip(every, kept, strict=True) if is_kept] == [
        sample for samples in histories for sample in thin(samples, now, KEEP)
    ]


@given(sample_histories(max_size=16))
def test_distances_of_thinned_samples_are_bounded(samples: tuple[EndOffsetSample, ...]) -> None:
    """Successive samples are at most two spans apart, or as far as successive original samples."""
    good = [s for s in samples if s.reason is None]
    if not good:
        return
    now = samples[-1].answered_at_ms
    kept = [s for s in thin(samples, now, KEEP) if s.reason is None and s.answered_at_ms >= now - KEEP[-1].age_ms]
    for before, after in pairwise(kept):
        between = [s for s in good if before.answered_at_ms <= s.answered_at_ms <= after.answered_at_ms]
        original = max(b.answered_at_ms - a.answered_at_ms for a, b in pairwise(between))
        assert after.answered_at_ms - before.answered_at_ms <= max(2 * KEEP[-1].distance_ms, original)


def _ages(lag: LagRow) -> tuple[float | str | None, ...]:
    return (
        lag.lag_seconds,
        lag.lag_seconds_low,
        lag.lag_seconds_high,
        lag.lag_method,
        lag.lag_reason,
        lag.retention_margin_seconds,
    )
