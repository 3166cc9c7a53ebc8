"""Conditions of Burrow's rules for many partitions, in numpy. Times in ms.

Most partitions are OK. The job evaluates with `group_status.evaluate` only the groups in which a rule fires.
"""

from dataclasses import dataclass, fields

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.health.burrow_rules import BURROW_RULES
from coordinator_core.health.sample_columns import NONE
from coordinator_core.health.status import StatusSettings


@dataclass(frozen=True, slots=True)
class WindowColumns:
    """A `CommitWindow` per row. `offset`, `committed_at_ms` and `lag` have `settings.window_commits` columns.

    Commits are oldest first and end in the last column; missing ones on the left have offset NONE. A lag may be NONE.
    `least_recent_end` is the least log end sampled lately, the newest one at least.
    """

    offset: Int64s
    committed_at_ms: Int64s
    lag: Int64s
    current_lag: Int64s
    least_recent_end: Int64s


def burrow_rule_numbers(windows: WindowColumns, at_ms: int, settings: StatusSettings) -> Int64s:
    """The number of the first rule that applies to each row. Most rows are caught up; only the others are evaluated further."""
    rows = (windows.offset != NONE).sum(axis=1)
    too_few = (rows == 0) | (rows / settings.window_commits < settings.minimum_complete)
    numbers = np.where(too_few, 0, 1)
    behind = np.flatnonzero(~too_few & (windows.current_lag > settings.allowed_lag))
    of_behind = WindowColumns(*(getattr(windows, field.name)[behind] for field in fields(windows)))
    numbers[behind] = _rules_of_behind(of_behind, at_ms, settings)
    return numbers


def _rules_of_behind(windows: WindowColumns, at_ms: int, settings: StatusSettings) -> Int64s:
    """Rules 2 to 7, for windows with commits."""
    offset, lag = windows.offset, windows.lag
    present = offset != NONE
    rows = present.sum(axis=1)
    first_at = windows.committed_at_ms[np.arange(len(rows)), settings.window_commits - rows]
    last_at, last_offset = windows.committed_at_ms[:, -1], offset[:, -1]
    known_lag = lag != NONE
    applies = {
        # silent for longer than the span of the window, and with lag at every recent sample
        2: (at_ms - last_at > last_at - first_at) & (windows.least_recent_end > last_offset),
        3: _rewound(offset, present),
        4: (known_lag & (lag <= settings.allowed_lag)).any(axis=1),
        5: (~present | (offset == last_offset[:, None])).all(axis=1),
        # NONE is less than every lag, so a missing one never is the greatest so far
        6: (~known_lag | (lag >= np.maximum.accumulate(lag, axis=1))).all(axis=1),
    }
    numbers: Int64s = np.select(list(applies.values()), list(applies), BURROW_RULES[-1].number)
    return numbers


def _rewound(offset: Int64s, present: Numbers) -> Numbers:
    """The first rewind of the window was not made up for by a later commit."""
    fell = present[:, :-1] & (offset[:, 1:] < offset[:, :-1])
    found = np.flatnonzero(fell.any(axis=1))
    rewound = np.zeros(len(offset), np.bool_)
    if not len(found):
        return rewound
    first = fell[found].argmax(axis=1)
    later = np.arange(offset.shape[1]) > first[:, None]
    greatest_later = np.where(later, offset[found], NONE).max(axis=1)
    rewound[found] = greatest_later < offset[found, first]
    return rewound
