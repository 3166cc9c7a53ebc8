"""The status of a history at a time depends on its events until then alone."""

import math
from dataclasses import replace

import numpy as np
from group_scenarios import group_histories, times
from hypothesis import example, given
from hypothesis import strategies as st
from model_of_status import GroupHistory, burrow_rule, group_status

from coordinator_core.health import (
    NONE,
    CommitPoint,
    CommitWindow,
    Status,
    StatusSettings,
    WindowColumns,
    burrow_rule_numbers,
)

AT_MS = 100
#: Settings of windows of each length.
SETTINGS = [StatusSettings(window_commits=length, minimum_complete=0.2, allowed_lag=1) for length in (1, 2, 6)]


def known_at(history: GroupHistory, at_ms: int) -> GroupHistory:
    """The events until `at_ms`, by plain comparisons; an end of a transaction in the future is not known."""
    return replace(
        history,
        commits=tuple(e for e in history.commits if e.at_ms <= at_ms),
        samples={p: tuple(s for s in taken if s.answered_at_ms <= at_ms) for p, taken in history.samples.items()},
        memberships=tuple(e for e in history.memberships if e.at_ms <= at_ms),
        rebalances=tuple(at for at in history.rebalances if at <= at_ms),
        expiries=tuple(e for e in history.expiries if e.at_ms <= at_ms),
        pending=tuple(
            p._replace(until_ms=p.until_ms if p.until_ms is not None and p.until_ms <= at_ms else None)
            for p in history.pending
            if p.commit.since_ms <= at_ms
        ),
    )


@given(group_histories(), times)
def test_a_longer_history_has_the_same_status_at_that_time(history: GroupHistory, at_ms: int) -> None:
    assert group_status(history, at_ms) == group_status(known_at(history, at_ms), at_ms)


@given(group_histories(), times, times)
def test_a_history_that_is_cut_later_has_the_same_status(history: GroupHistory, at_ms: int, later: int) -> None:
    assert group_status(history.until(at_ms + later), at_ms) == group_status(history, at_ms)


@given(group_histories(), times)
def test_statuses_are_consistent(history: GroupHistory, at_ms: int) -> None:
    status = group_status(history, at_ms)
    assert all(finding.status.severity <= status.status.severity for finding in status.findings)
    assert bool(status.findings) == (status.status not in {Status.OK, Status.NOTFOUND})
    assert status.burrow_status in {Status.NOTFOUND, Status.OK, Status.WARN, Status.ERR}
    assert status.total_lag == sum(p.current_lag for p in status.partitions)
    assert 0 <= status.complete <= 1
    for finding in status.findings:
        assert finding.window_seconds is None or (math.isfinite(finding.window_seconds) and finding.window_seconds >= 0)
        assert finding.detail


Windows = list[tuple[CommitWindow, tuple[int, ...]]]


@st.composite
def windows(draw: st.DrawFn) -> tuple[StatusSettings, Windows]:
    """Windows of equal settings, each with the log ends of its partition."""
    settings = draw(st.sampled_from(SETTINGS))
    offsets = st.integers(5, 9) | st.just(9)
    cases = []
    for _ in range(draw(st.integers(0, 20))):
        times = sorted(draw(st.lists(st.integers(0, AT_MS), max_size=settings.window_commits)))
        points = tuple(CommitPoint(draw(offsets), at, draw(st.none() | st.integers(0, 9))) for at in times)
        ends = tuple(draw(st.lists(st.integers(5, 15), min_size=1, max_size=3)))
        cases.append((CommitWindow(points, draw(st.integers(0, 4)), AT_MS, settings), ends))
    return settings, cases


@given(windows())
@example((SETTINGS[0], []))
@example((SETTINGS[-1], []))
def test_columns_have_the_same_rules(drawn: tuple[StatusSettings, Windows]) -> None:
    settings, cases = drawn
    columns = np.full((3, len(cases), settings.window_commits), NONE)
    for row, (window, _) in enumerate(cases):
        for column, point in enumerate(reversed(window.commits), 1):
            columns[:, row, -column] = (point.offset, point.committed_at_ms, NONE if point.lag is None else point.lag)
    given_windows = WindowColumns(
        columns[0],
        columns[1],
        columns[2],
        np.array([window.current_lag for window, _ in cases], np.int64),
        np.array([min(ends) for _, ends in cases], np.int64),
    )
    numbers = burrow_rule_numbers(given_windows, AT_MS, settings)
    assert numbers.tolist() == [burrow_rule(window, ends).number for window, ends in cases]
