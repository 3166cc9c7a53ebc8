"""Ages of the tables of a server's clusters, with what the locks of their jobs show."""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.tables.data_age import DataAge, JobState, data_age
from pipelines.tables.job_state import job_state

#: Time for which the look at a lock counts.
_LOOK_EVERY = timedelta(seconds=10)


class TablesAges:
    """For any number of threads."""

    def __init__(self, roots: Mapping[str, str], clock: Callable[[], datetime]) -> None:
        self._roots = roots
        self._clock = clock
        self._lock = threading.Lock()
        self._looks: dict[str, tuple[datetime, JobState]] = {}

    def age(self, snapshot: MemorySnapshot, at: datetime | None = None) -> DataAge:
        """The age of a snapshot now, or at an earlier time that a page shows."""
        now = self._clock() if at is None else min(at, self._clock())
        age = age_of(snapshot, now)
        return age_of(snapshot, now, self._job(snapshot.cluster)) if age.is_batch_old else age

    def _job(self, cluster: str) -> JobState:
        now = self._clock()
        with self._lock:
            looked_at, state = self._looks.get(cluster, (now - _LOOK_EVERY, JobState.HIDDEN))
            if not now - _LOOK_EVERY < looked_at <= now:
                state = job_state(self._roots[cluster])
                self._looks[cluster] = now, state
            return state


def age_of(snapshot: MemorySnapshot, now: datetime, job: JobState = JobState.HIDDEN) -> DataAge:
    """The age of a snapshot at a time."""
    longest = max((batch.finished_at - batch.started_at for batch in snapshot.recent), default=timedelta(0))
    return data_age(snapshot.batch, snapshot.sampled_at, now, job, longest)
