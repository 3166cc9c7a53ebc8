"""The status of a history at a time depends on its events until then alone."""

import math
from dataclasses import replace

from group_scenarios import group_histories, times
from hypothesis import given

from coordinator_core.lag import GroupHistory, Status, group_status


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
            if p.since_ms <= at_ms
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
