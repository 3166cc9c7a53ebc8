"""Burrow's evaluation of a partition (`core/internal/evaluator/caching.go`): seven rules over a window of commits, in order.

`burrow_rule_numbers` has their conditions, and this file what follows from them.

The window has the last commits of the partition. `offset_history` keeps the last commit per batch, so windows from it have fewer
and later rows than Burrow's, and rule 2 fires later.
"""

from collections.abc import Callable
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

    `current_lag` is the newest known log end minus the last commit, at least 0.
    """

    commits: tuple[CommitPoint, ...]
    current_lag: int
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
    """A rule of Burrow: `name` in findings, `burrow_name` where Burrow's own numbers are expected.

    A window of which it is the first rule to apply is a finding if `is_evident`. Burrow judges windows of any size: one commit is
    a window in which all offsets are the same, and a group with the lag of a second has a lag that never fell.
    """

    number: int
    name: str
    status: Status
    is_evident: Callable[[CommitWindow], bool] = lambda _: True

    @property
    def burrow_name(self) -> str:
        """Name in `partition_status`."""
        return f"burrow_{self.number}"


def _is_long_silence(window: CommitWindow) -> bool:
    """Silence for longer than the time between two commits of most clients; few commits do not show that time."""
    settings = window.settings
    has_few = len(window.commits) < settings.few_commits
    least_ms = settings.few_commits_silent_ms if has_few else settings.least_silence_ms
    return window.at_ms - window.commits[-1].committed_at_ms > least_ms


def _is_long_standstill(window: CommitWindow) -> bool:
    return len(window.commits) >= window.settings.few_commits and window.span_ms >= window.settings.least_silence_ms


def _never(_window: CommitWindow) -> bool:
    """The rule `falls_behind` judges the growth of lag, from rates instead of from ten commits."""
    return False


#: In order; rule 0 is Burrow's condition for a window that it does not evaluate.
BURROW_RULES = (
    BurrowRule(0, "too_few_commits", Status.OK),
    BurrowRule(1, "caught_up", Status.OK),
    BurrowRule(2, "stopped", Status.STOP, _is_long_silence),
    BurrowRule(3, "went_back", Status.REWIND),
    BurrowRule(4, "was_caught_up", Status.OK),
    BurrowRule(5, "stalled", Status.STALL, _is_long_standstill),
    BurrowRule(6, "lag_never_fell", Status.WARN, _never),
    BurrowRule(7, "lag_fell", Status.OK),
)

#: Names that findings had before layout 1.3, and that files of alert rules may still have → names of rules.
FORMER_NAMES = {rule.burrow_name: rule.name for rule in BURROW_RULES}


def moved_back(window: CommitWindow) -> tuple[CommitPoint, CommitPoint] | None:
    """The first commit of the window that is lower than the one before it, after that one."""
    return next(((before, after) for before, after in pairwise(window.commits) if after.offset < before.offset), None)
