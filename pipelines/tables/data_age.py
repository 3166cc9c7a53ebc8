"""How old the tables may be: the one rule that every reader asks before it presents a state as the present one.

A job writes with each batch the time within which the next one is expected (`interval_seconds`). Data is old once that time has
passed with a margin; without an interval nothing is expected, and data is never called old (docs/adr/0046).
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from typing import Any, Literal

from pipelines.tables.store import Batch

#: Least margin: time for the batch itself, for the start of a scheduled run, and for a reader that looks at an interval.
_LEAST_MARGIN = timedelta(seconds=60)

#: Phases of batches that read the log or sample; those of maintenance and of a migration have others.
_JOB_PHASES = frozenset({"read", "plan", "sample"})

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


class AgeState(StrEnum):
    """Whether data is as new as its job lets one expect."""

    FRESH = "fresh"
    OLD = "old"
    NO_EXPECTATION = "no_expectation"


class JobState(Enum):
    """Whether the job runs, as far as it can be seen from the reader's machine."""

    HIDDEN = "hidden"
    STOPPED = "stopped"
    RUNNING = "running"


#: Older part and job → reason, and what was expected. Samples are the older part also for a while after a job has stopped.
_REASONS = {
    ("batch", JobState.RUNNING): ("the job is running but has finished no batch since", "one"),
    ("batch", JobState.STOPPED): ("the job has stopped", "a batch"),
    ("batch", JobState.HIDDEN): ("the job has stopped, reaches no broker, or is in a long batch", "a batch"),
    ("sample", JobState.RUNNING): ("no sample of log ends succeeds", "one"),
    ("sample", JobState.STOPPED): ("the job has stopped", "a sample of log ends"),
    ("sample", JobState.HIDDEN): ("no sample of log ends succeeds, or the job has stopped", "one"),
}


@dataclass(frozen=True)
class DataAge:
    """Age of the tables at a time.

    - `of`: the older part that decides: the newest batch, or the sample that lag and statuses follow from.
    - `since`: the time that this part is of.
    - `now`: the time of the comparison.
    """

    state: AgeState
    of: Literal["batch", "sample"]
    since: datetime
    now: datetime
    interval_seconds: int | None
    job: JobState = JobState.HIDDEN

    @property
    def is_old(self) -> bool:
        """True if lag and statuses are older than expected."""
        return self.state is AgeState.OLD

    @property
    def is_batch_old(self) -> bool:
        """True if the newest batch is older than expected, and so everything in the tables."""
        return self.is_old and self.of == "batch"

    @property
    def key(self) -> tuple[object, ...]:
        """A value that differs if texts may differ: data that is not old has one, old data one for each minute."""
        return (self.of, self.since, self.job, (self.now - self.since) // timedelta(minutes=1)) if self.is_old else (self.state,)

    @property
    def text(self) -> str | None:
        """Reason for a status UNKNOWN, such as `since 17:35 UTC: the job has stopped (…)`; None unless the data is old."""
        return f"since {self.clock}: {self._reason}" if self.is_old else None

    @property
    def headline(self) -> str | None:
        """Age and reason, such as `data of 17:35 UTC, 6 min old: the job has stopped (…)`; None unless the data is old."""
        what = "data" if self.of == "batch" else "log ends"
        return f"{what} of {self.clock}, {in_words(self.now - self.since)} old: {self._reason}" if self.is_old else None

    @property
    def clock(self) -> str:
        """`17:35 UTC`, the time in both sentences; with the date if it is of another day."""
        since, now = self.since.astimezone(UTC), self.now.astimezone(UTC)
        return f"{since:%H:%M} UTC" if since.date() == now.date() else f"{since:%Y-%m-%d %H:%M} UTC"

    @property
    def _reason(self) -> str:
        assert self.interval_seconds is not None, "only data with an interval is old"
        reason, expected = _REASONS[self.of, self.job]
        return f"{reason} ({expected} was expected every {in_words(timedelta(seconds=self.interval_seconds))})"

    def as_json(self) -> dict[str, Any]:
        """The age for JSON, the same for all times at which the text is the same."""
        return {
            "state": self.state.value,
            "since": self.since,
            "interval_seconds": self.interval_seconds,
            "reason": self.text,
        }


def limit_of(interval_seconds: int, duration: timedelta) -> timedelta:
    """Age from which data is old, for batches that are expected at an interval and take `duration`."""
    interval = timedelta(seconds=interval_seconds)
    return interval + max(_LEAST_MARGIN, interval / 2) + duration


def data_age(
    batch: Batch,
    sampled_at: datetime | None,
    now: datetime,
    job: JobState = JobState.HIDDEN,
    longest: timedelta = timedelta(0),
) -> DataAge:
    """Age of the newest batch and of its sample at `now`.

    Args:
        batch: the newest batch of the tables
        sampled_at: time of the sample that lag and statuses follow from; None without one
        now: the current time, or the time that a page shows
        job: whether the job is seen to run
        longest: duration of the longest of the last batches, if it is known
    """
    interval = batch.interval_seconds
    if interval is None:
        return DataAge(AgeState.NO_EXPECTATION, "batch", batch.finished_at, now, None, job)
    limit = limit_of(interval, max(longest, batch.finished_at - batch.started_at))
    since = job_batch_at(batch, sampled_at)
    if now - since > limit:
        return DataAge(AgeState.OLD, "batch", since, now, interval, job)
    if sampled_at is not None and now - sampled_at > limit:
        return DataAge(AgeState.OLD, "sample", sampled_at, now, interval, job)
    return DataAge(AgeState.FRESH, "batch", since, now, interval, job)


def job_batch_at(batch: Batch, sampled_at: datetime | None) -> datetime:
    """Completion of the newest batch of the job; if `batch` is one of maintenance, the newest time that the job has left."""
    if not batch.phase_ms or batch.phase_ms.keys() & _JOB_PHASES:
        return batch.finished_at
    return max((at for at in (sampled_at, batch.log_read_until) if at is not None), default=batch.finished_at)


def in_words(length: timedelta) -> str:
    """A length of time in whole units of the greatest kind that it has two of, such as `6 min`."""
    seconds = length.total_seconds()
    for unit, size in _UNITS:
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
