"""How old data may be, from the interval that its job has declared."""

from datetime import UTC, datetime, timedelta

import pytest

from pipelines.tables.data_age import AgeState, JobState, data_age, limit_of
from pipelines.tables.store import Batch

AT = datetime(2026, 11, 22, 17, 35, 10, tzinfo=UTC)


def batch(interval: int | None, seconds: float = 1.0) -> Batch:
    return Batch(7, AT - timedelta(seconds=seconds), AT, 1, "4", 1, 0, 0, {}, {}, {}, interval_seconds=interval)


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("interval", "seconds", "state"),
    [
        (30, 5, AgeState.FRESH),
        (30, 90, AgeState.FRESH),
        (30, 92, AgeState.OLD),
        # a schedule of 15 minutes is no alarm, its second missing run is
        (900, 1_000, AgeState.FRESH),
        (900, 1_352, AgeState.OLD),
        (86_400, 86_400 + 3_600, AgeState.FRESH),
        (None, 10_000_000, AgeState.NO_EXPECTATION),
        # clocks of two machines
        (30, -20, AgeState.FRESH),
    ],
)
def test_the_limit_follows_from_the_interval(interval: int | None, seconds: float, state: AgeState) -> None:
    assert data_age(batch(interval), None, after(seconds)).state is state


def test_a_long_batch_extends_the_limit() -> None:
    assert limit_of(30, timedelta(seconds=200)) == timedelta(seconds=290)
    assert not data_age(batch(30, seconds=200), None, after(280)).is_old
    # the newest batch may be a short one between long ones
    assert not data_age(batch(30), None, after(280), longest=timedelta(seconds=200)).is_old


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (JobState.HIDDEN, "the job has stopped, reaches no broker, or is in a long batch (a batch was expected every 30 s)"),
        (JobState.STOPPED, "the job has stopped (a batch was expected every 30 s)"),
        (JobState.RUNNING, "the job is running but has finished no batch since (one was expected every 30 s)"),
    ],
)
def test_the_text_claims_no_more_than_is_known(job: JobState, reason: str) -> None:
    age = data_age(batch(30), AT, after(360), job)
    assert age.text == f"since 17:35 UTC: {reason}"
    assert age.headline == f"data of 17:35 UTC, 6 min old: {reason}"
    assert age.of == "batch"


def test_another_day_has_its_date() -> None:
    age = data_age(batch(900), None, after(5 * 86_400), JobState.STOPPED)
    assert age.text == "since 2026-11-22 17:35 UTC: the job has stopped (a batch was expected every 15 min)"
    assert age.headline is not None
    assert age.headline.startswith("data of 2026-11-22 17:35 UTC, 5 d old: ")


def test_statuses_hold_for_the_time_of_their_sample() -> None:
    age = data_age(batch(30), after(-300), after(10), JobState.RUNNING)
    assert age.is_old
    assert not age.is_batch_old
    assert age.of == "sample"
    assert age.text == "since 17:30 UTC: no sample of log ends succeeds (one was expected every 30 s)"
    assert age.headline == "log ends of 17:30 UTC, 5 min old: no sample of log ends succeeds (one was expected every 30 s)"
    assert not data_age(batch(30), after(-20), after(10)).is_old


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (JobState.HIDDEN, "no sample of log ends succeeds, or the job has stopped (one was expected every 30 s)"),
        (JobState.STOPPED, "the job has stopped (a sample of log ends was expected every 30 s)"),
    ],
)
def test_a_sample_becomes_old_before_the_batches_of_a_job_that_has_stopped(job: JobState, reason: str) -> None:
    assert data_age(batch(30), after(-60), after(40), job).text == f"since 17:34 UTC: {reason}"


def test_fresh_data_has_no_text() -> None:
    age = data_age(batch(30), AT, after(1))
    assert age.text is None
    assert age.as_json() == {"state": "fresh", "since": AT, "interval_seconds": 30, "reason": None}
    old = data_age(batch(30), AT, after(400), JobState.STOPPED)
    assert old.as_json() == {"state": "old", "since": AT, "interval_seconds": 30, "reason": old.text}
