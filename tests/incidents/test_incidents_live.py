"""Incidents planted at known times on a live broker, a job that is killed in between, and every statement of every reader judged.

The short form scales limits of rules down. The full form has the product's own; INCIDENTS_BEFORE, INCIDENTS_AWAY and
INCIDENTS_AFTER are its seconds before the kill, without the job, and with it again. INCIDENTS_KEEP is a folder for the files of a
run: truth, observations and the log of the job.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage_of_incidents import READERS
from hour_later import facts, told_an_hour_later
from incident_report import report
from incident_run import CLUSTER, run_incidents
from judge import judge
from scenario import Scenario, full, polled, short
from statements import statements

from pipelines.examples.private.kafka.distribution import broker_jars
from pipelines.runtime.cache.ivy import JarsError

pytestmark = [pytest.mark.broker, pytest.mark.spark]

_NEWEST, _USUAL = "4.3.0", "4.1.1"
#: The first part is longer than the window in which partitions are compared.
_SECONDS = {"BEFORE": "780", "AWAY": "480", "AFTER": "480"}


@pytest.fixture(scope="session")
def version() -> str:
    """The newest release that resolves."""
    try:
        broker_jars(_NEWEST)
    except JarsError:
        return _USUAL
    return _NEWEST


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of a run, copied to INCIDENTS_KEEP."""
    yield tmp_path
    if keep := os.environ.get("INCIDENTS_KEEP"):
        shutil.copytree(tmp_path, Path(keep) / tmp_path.name, dirs_exist_ok=True)


def assert_truthful(scenario: Scenario, version: str, folder: Path, *, by_polls: bool = False) -> None:
    """Run a scenario: no statement is false, and every incident is found with cause, owner and start."""
    truth, observations = run_incidents(scenario, version, folder, by_polls=by_polls)
    later = told_an_hour_later(folder / CLUSTER, truth, observations)
    told = statements([*observations, *(after for _, after in later)])
    # a run that observes nothing proves nothing
    assert {each.reader for each in told} >= {*READERS, "page overview", "ready"}
    judgement = judge(told, truth, scenario.limits)
    text = report(judgement, truth)
    (folder / "report.txt").write_text(text)
    assert not judgement.false, text
    assert not judgement.missing, text
    for before, after in later:
        assert facts(after.body) == facts(before.body)


@pytest.mark.slow
def test_statements_are_true_and_incidents_are_found(version: str, folder: Path) -> None:
    assert_truthful(short(), version, folder)


@pytest.mark.slow
def test_statements_from_polls_are_true(version: str, folder: Path) -> None:
    """The same incidents where the log of groups cannot be read."""
    assert_truthful(polled(), version, folder, by_polls=True)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_statements_are_true_with_the_limits_of_the_product(version: str, folder: Path) -> None:
    before, away, after = (float(os.environ.get(f"INCIDENTS_{name}", seconds)) for name, seconds in _SECONDS.items())
    assert_truthful(full(before, away, after), version, folder)
