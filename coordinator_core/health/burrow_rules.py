"""Burrow's evaluation of a partition (`core/internal/evaluator/caching.go`): seven rules over a window of commits, in order.

The window has the last commits of the partition. `offset_history` keeps the last commit per batch, so windows from it have fewer
and later rows than Burrow's, and rule 2 fires later.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

from coordinator_core.health.status import Status, StatusSettings


class CommitPoint(NamedTuple):
    """A commit in the window, with the lag at that time; None where no log end was known then."""

    offset: int
    committed_at_ms: int
    lag: int | None


class CommitWindow(NamedTuple):
    """The window of one partition at a time.

    `current_lag` is the newest known log end minus the last commit, at least 0. `recent_ends` are the log ends sampled lately,
    at least the newest one.
    """

    commits: tuple[CommitPoint, ...]
    current_lag: int
    recent_ends: tuple[int, ...]
    at_ms: int
    settings: StatusSettings

    @property
    def complete(self) -> float:
        """Filled share of the window."""
        return len(self.commits) / self.settings.window_commits

    @property
    def span_ms(self) -> int:
        """Time from the first to the last commit of the window."""
        return self.commits[-1].committed_at_ms - self.commits[0].committed_at_ms if self.commits else 0


class BurrowRule(NamedTuple):
    number: int
    status: Status
    applies: Callable[[CommitWindow], bool]

    @property
    def name(self) -> str:
        return f"burrow_{self.number}"


def commit_points(points: Iterable[CommitPoint], settings: StatusSettings) -> tuple[CommitPoint, ...]:
    """The window of these commits. A commit closer to the one before it than the least distance replaces it, at its time."""
    kept: list[CommitPoint] = []
    for point in points:
        if kept and point.committed_at_ms - kept[-1].committed_at_ms < settings.min_distance_ms:
            kept[-1] = point._replace(committed_at_ms=kept[-1].committed_at_ms)
        else:
            kept.append(point)
    return tuple(kept[-settings.window_commits :])


def burrow_rule(window: CommitWindow) -> BurrowRule:
    """The first rule that applies."""
    return next(rule for rule in BURROW_RULES if rule.applies(window))


def _too_few_commits(window: CommitWindow) -> bool:
    return not window.commits or window.complete < window.settings.minimum_complete


def _caught_up(window: CommitWindow) -> bool:
    return window.current_lag <= window.settings.allowed_lag


def _silent(window: CommitWindow) -> bool:
    """Silent for longer than the span of the window, and behind at every recent sample."""
    last = window.commits[-1]
    was_caught_up = any(end <= last.offset for end in window.recent_ends)
    return window.at_ms - last.committed_at_ms > window.span_ms and not was_caught_up


def _rewound(window: CommitWindow) -> bool:
    """The first rewind of the window was not made up for by a later commit."""
    offsets = [point.offset for point in window.commits]
    for k, (before, after) in enumerate(pairwise(offsets)):
        if after < before:
            return all(later < before for later in offsets[k + 1 :])
    return False


def _had_no_lag(window: CommitWindow) -> bool:
    return any(point.lag is not None and point.lag <= window.settings.allowed_lag for point in window.commits)


def _stalled(window: CommitWindow) -> bool:
    return len({point.offset for point in window.commits}) == 1


def _lag_never_fell(window: CommitWindow) -> bool:
    lags = [point.lag for point in window.commits if point.lag is not None]
    return all(before <= after for before, after in pairwise(lags))


#: In order; rule 0 is Burrow's condition for a window that it does not evaluate.
BURROW_RULES = (
    BurrowRule(0, Status.OK, _too_few_commits),
    BurrowRule(1, Status.OK, _caught_up),
    BurrowRule(2, Status.STOP, _silent),
    BurrowRule(3, Status.REWIND, _rewound),
    BurrowRule(4, Status.OK, _had_no_lag),
    BurrowRule(5, Status.STALL, _stalled),
    BurrowRule(6, Status.WARN, _lag_never_fell),
    BurrowRule(7, Status.OK, lambda _: True),
)
