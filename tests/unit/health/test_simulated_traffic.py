"""`falls_behind` on simulated traffic: quiet on groups that are well, and early on those that are too slow.

The limits of the rule were chosen with other seeds than those of the tests.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest
from simulated_traffic import DEFICITS, PUBLISHED, Run, outcome_table, simulate

SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "generate_trends.py"))

#: Half of the deficits of 5 % are found by then, and nearly all of the others.
FIVE_MINUTES_S = 300


@pytest.mark.parametrize("seed", [9_001])
def test_no_false_alarm_in_hours_and_each_deficit_found(seed: int) -> None:
    outcomes = simulate(Run(seed, hours=2.5, healthy=6, too_slow=10))
    assert {kind: found.alarms for kind, found in outcomes.items() if found.alarms} == {}
    for kind in DEFICITS:
        found = outcomes[kind]
        assert found.missed == 0, kind
        assert np.median(found.detection_s) <= FIVE_MINUTES_S, kind
        # the slowest have few records, or rare commits
        assert max(found.detection_s) <= 3 * FIVE_MINUTES_S, kind
        # a finding stays while the group falls behind
        assert np.mean(found.held) >= 0.95, kind


@pytest.mark.slow
def test_the_published_outcome_is_that_of_the_rule() -> None:
    """A thousand topics for a day."""
    outcomes = simulate(PUBLISHED)
    assert outcome_table(outcomes) in SCRIPT["published"](), "run docs/generate_trends.py"
    assert {kind: found.alarms for kind, found in outcomes.items() if found.alarms} == {}
    assert [found.missed for found in outcomes.values()] == [0] * len(outcomes)
