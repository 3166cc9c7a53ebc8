"""Times of the samples of a job that follows the log."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from coordinator_core.log.errors import LogError
from pipelines.progress import Progress
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter

if TYPE_CHECKING:
    from pipelines.lag.cluster_sampling import ClusterSampling
    from pipelines.lag.sampling import LagSampling


class SampleSchedule:
    """Samples of a run: at an interval while it follows the log, otherwise one at its end; none without `sampling`.

    `lock` is held for a sample, so that no batch of records is applied meanwhile.
    """

    def __init__(
        self,
        sampling: "LagSampling | None",
        interval_seconds: int | None,
        lock: threading.Lock,
        claim: Callable[[], TablesWriter],
        progress: Progress,
        cluster: "ClusterSampling | None" = None,
    ) -> None:
        self._sampling = sampling
        self._cluster = cluster
        self._interval = interval_seconds
        self._lock = lock
        self._claim = claim
        self._progress = progress
        self._due = time.monotonic()
        self._is_failing = False

    def sample_if_due(self) -> None:
        """Take a sample if the interval has passed since the last one began and no batch is being applied.

        It never waits for a batch, since the caller also has to notice stop requests.
        """
        if self._interval is None or time.monotonic() < self._due or not self._lock.acquire(blocking=False):
            return
        try:
            self._due = time.monotonic() + self._interval
            self._sample()
        finally:
            self._lock.release()

    def query_ended(self, is_done: bool) -> None:
        """Take the only sample of a run that does not follow the log, unless it was stopped before the end."""
        if is_done and self._interval is None:
            with self._lock:
                self._sample()

    def _sample(self) -> None:
        """Take a sample now. An outage of the brokers is reported once; the next sample tries again.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        if self._sampling is None:
            return
        try:
            batch = self._sampling.sample(self._claim())
        except LogError as error:
            if not self._is_failing:
                self._progress(f"end offsets cannot be sampled, so lag is not updated: {error}")
            self._is_failing = True
            return
        if self._is_failing:
            self._progress("end offsets are sampled again")
            self._is_failing = False
        if batch is not None:
            self._progress(describe_sample(batch))
            if self._cluster is not None:
                self._cluster.sample(self._claim())


def describe_sample(batch: Batch) -> str:
    """Progress line of a sample."""
    took = (batch.finished_at - batch.started_at).total_seconds()
    return f"batch {batch.batch_id}: sample of end offsets, {took:.1f} s"
