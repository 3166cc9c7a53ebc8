"""What every page says above all else about its data: that it is old, or that lag is not known yet."""

from typing import NamedTuple

from coordinator_core.health import LagReason
from coordinator_core.health.timed_text import marked, timed_text
from pipelines.dashboard.formatting.times import full
from pipelines.dashboard.formatting.times_in_text import age_text
from pipelines.dashboard.state.moment import Moment
from pipelines.runtime.timestamps import to_ms

#: Rows of `lag` stay so until the next sample; batches of records do not write them.
_CATCHES_UP = f"SELECT 1 AS one FROM lag WHERE lag_reason = '{LagReason.CATCHING_UP}' LIMIT 1"
_CATCHING_UP = "The job is catching up: commits are known until {until}. Lag and statuses follow at the end of the log."
_WITHOUT_SAMPLE = (
    "No sample of log ends yet: lag, ages and statuses are not known. "
    "A job that follows brokers takes the first one at the end of the log."
)


class JobNote(NamedTuple):
    """A sentence, and whether it names a defect."""

    text: str
    is_defect: bool


def job_note(moment: Moment) -> JobNote | None:
    """The note of a moment; None if its lag is as new as its job lets one expect, or there are no groups."""
    if moment.age is not None and moment.age.headline:
        return JobNote(age_text(moment.age.headline, moment.age), True)
    if moment.sampled_at is None and moment.query(_CATCHES_UP).num_rows:
        until = marked(f"{full(moment.commits_read_until)} UTC", to_ms(moment.commits_read_until))
        return JobNote(timed_text(_CATCHING_UP.format(until=until)), False)
    if moment.sampled_at is None and moment.summaries().num_rows:
        return JobNote(_WITHOUT_SAMPLE, False)
    return None
