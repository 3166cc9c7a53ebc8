"""`falls_behind` on simulated traffic: quiet on groups that are well, and early on those that are too slow.

The limits of the rule were chosen with other seeds than those of the tests.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest
from simulated_traffic import DEFICITS, HOUR_S, PUBLISHED, SAMPLE_S, Run, Simulation, outcome_table, simulate, traffic

from coordinator_core.health.trend_limits import POINT_MS

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
        assert found.starts_s[True] == [], kind
        assert max(map(abs, found.starts_s[False])) <= FIVE_MINUTES_S / 2, kind


def test_a_deficit_that_is_older_than_the_first_sample_has_the_latest_possible_start() -> None:
    random = np.random.default_rng(9_002)
    kinds = ("10 % too slow", "30 % too slow")
    topics = [traffic(kind, random, HOUR_S, slow_from_s=0) for kind in kinds for _ in range(20)]
    outcomes = Simulation(topics, random).outcomes()
    for kind in kinds:
        assert len(outcomes[kind].starts_s[True]) == 20, kind
        # the first commits after the first sample
        assert min(outcomes[kind].starts_s[True]) >= 0, kind
        assert max(outcomes[kind].starts_s[True]) <= 2 * SAMPLE_S + POINT_MS / 1000, kind


@pytest.mark.slow
def test_the_published_outcome_is_that_of_the_rule() -> None:
    """A thousand topics for a day."""
    outcomes = simulate(PUBLISHED)
    assert outcome_table(outcomes) in SCRIPT["published"](), "run docs/generate_trends.py"
    assert {kind: found.alarms for kind, found in outcomes.items() if found.alarms} == {}
    assert [found.missed for found in outcomes.values()] == [0] * len(outcomes)
