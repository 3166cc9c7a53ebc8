"""Alerts over tables whose job has stopped: limits follow from its interval, and nothing is said about groups."""

from datetime import timedelta
from pathlib import Path

import pytest
from aged_tables import stopped_group
from lag_tables import SAMPLED_AT

from pipelines.alerts.alert_store import AlertStore
from pipelines.alerts.evaluation_log import EvaluationLog
from pipelines.alerts.evaluator import AlertEvaluator
from pipelines.alerts.rules_file import load_rules
from pipelines.alerts.states import State
from pipelines.runtime.timestamps import to_ms
from pipelines.upkeep.maintain import Maintenance, maintain

RULES = """
[alerts]
receivers = ["ops"]
[receivers.ops]
kind = "command"
command = ["true"]
group_wait = "0s"
[[rules]]
name = "JobStopped"
on = "batch_age"
above = "expected"
[[rules]]
name = "SamplesStopped"
on = "sample_age"
above = "expected"
[[rules]]
name = "GroupStopped"
on = "status"
in = ["STOP"]
[[rules]]
name = "Behind"
on = "lag"
above = 30
"""


class Evaluations:
    """The alerts that fire after evaluations at given times after the batch."""

    def __init__(self, folder: Path, interval: int | None, rules: str = RULES) -> None:
        self.root = str(folder / "tables")
        stopped_group(self.root, SAMPLED_AT, interval)
        (folder / "alerts.toml").write_text(rules)
        self._now_ms = 0
        loaded = load_rules(str(folder / "alerts.toml"), {})
        log = EvaluationLog(lambda _line: None)
        self._evaluator = AlertEvaluator(self.root, loaded, AlertStore(self.root), lambda: self._now_ms, log)

    def after(self, seconds: float) -> set[str]:
        self._now_ms = to_ms(SAMPLED_AT) + round(seconds * 1_000)
        self._evaluator.evaluate()
        return {alert.key.rule for alert in self._evaluator.alerts.values() if alert.state is State.FIRING}


ABOUT_GROUPS = {"GroupStopped", "Behind"}
ALL = {*ABOUT_GROUPS, "JobStopped", "SamplesStopped"}


def test_alerts_of_groups_neither_fire_nor_resolve_on_old_data(tmp_path: Path) -> None:
    evaluations = Evaluations(tmp_path, 30)
    assert evaluations.after(20) == ABOUT_GROUPS
    # the state of the groups is unknown now
    assert evaluations.after(100) == ALL
    assert evaluations.after(86_000) == ALL
    (tmp_path / "later").mkdir()
    assert Evaluations(tmp_path / "later", 30).after(100) == {"JobStopped", "SamplesStopped"}


@pytest.mark.parametrize(
    ("interval", "seconds", "fires"), [(30, 89, False), (30, 93, True), (900, 1_349, False), (900, 1_353, True)]
)
def test_the_limit_follows_from_the_interval(tmp_path: Path, interval: int, seconds: int, fires: bool) -> None:
    assert ("JobStopped" in Evaluations(tmp_path, interval).after(seconds)) is fires


def test_groups_of_a_slow_schedule_are_known_until_the_next_run(tmp_path: Path) -> None:
    assert Evaluations(tmp_path, 900).after(1_200) == ABOUT_GROUPS


def test_without_an_interval_nothing_is_expected(tmp_path: Path) -> None:
    evaluations = Evaluations(tmp_path, None)
    assert evaluations.after(599) == ABOUT_GROUPS
    assert evaluations.after(700_000) == ABOUT_GROUPS


def test_a_limit_of_the_file_counts(tmp_path: Path) -> None:
    rules = RULES.replace('above = "expected"', 'above = "5m"').replace("[receivers.ops]", 'stale_after = "2m"\n[receivers.ops]')
    assert Evaluations(tmp_path, 30, rules).after(115) == ABOUT_GROUPS
    (tmp_path / "later").mkdir()
    assert Evaluations(tmp_path / "later", 30, rules).after(125) == set()
    assert Evaluations(tmp_path / "later", 30, rules).after(301) == {"JobStopped", "SamplesStopped"}


def test_tables_that_cannot_be_read_become_old_too(tmp_path: Path) -> None:
    evaluations = Evaluations(tmp_path, 30)
    assert evaluations.after(20) == ABOUT_GROUPS
    Path(evaluations.root, "batches").rename(tmp_path / "away")
    assert evaluations.after(60) == ABOUT_GROUPS
    assert evaluations.after(100) == {*ABOUT_GROUPS, "JobStopped"}


def test_maintenance_does_not_make_old_data_new(tmp_path: Path) -> None:
    evaluations = Evaluations(tmp_path, 30)
    maintain(evaluations.root, Maintenance(90, 168, 16), SAMPLED_AT + timedelta(days=1), lambda _line: None)
    assert "JobStopped" in evaluations.after(86_400)
