"""Times of the samples of a job that follows the log."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from coordinator_core.log.errors import LogError
from pipelines.progress import Progress
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter

if TYPE_CHECKING:
    from pipelines.lag.cluster_sampling import ClusterSampling
    from pipelines.lag.sampling import LagSampling, PreparedSample


T = TypeVar("T")

#: Time to wait for the end of a batch.
_WAIT_SECONDS = 1.0


class SampleSchedule:
    """Samples of a run: at an interval while it follows the log, otherwise one at its end; none without `sampling`.

    A sample of a running query is prepared while batches of records are applied. `lock` is held to write it, so that no batch is
    applied meanwhile.
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
        #: A sample that waits for the end of a batch.
        self._prepared: PreparedSample | None = None

    def sample_if_due(self) -> None:
        """Take a sample if the interval has passed since the last one began, and write it between two batches.

        It waits for a batch for a second at most, since the caller also has to notice stop requests; the next call tries again.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        if self._interval is None or self._sampling is None:
            return
        if self._prepared is None and time.monotonic() >= self._due:
            self._prepared = self._prepare(self._sampling, self._interval)
        if self._prepared is not None and self._lock.acquire(timeout=_WAIT_SECONDS):
            try:
                prepared, self._prepared = self._prepared, None
                self._written(self._sampling.write(self._claim(), prepared))
            finally:
                self._lock.release()

    def _prepare(self, sampling: "LagSampling", interval: int) -> "PreparedSample | None":
        if not self._lock.acquire(blocking=False):
            return None
        try:
            self._due = time.monotonic() + interval
            writer = self._claim()
            root, last = writer.store.root, writer.last
        finally:
            self._lock.release()
        return None if last is None else self._asked(lambda: sampling.prepare(root, last))

    def query_ended(self, is_done: bool) -> None:
        """Take the only sample of a run that does not follow the log, unless it was stopped before the end.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        sampling = self._sampling
        if sampling is None or not is_done or self._interval is not None:
            return
        with self._lock:
            batch = self._asked(lambda: sampling.sample(self._claim()))
            if batch is not None:
                self._written(batch)

    def _asked(self, ask: Callable[[], T]) -> T | None:
        """What `ask` returns. An outage of the brokers is reported once; the next sample tries again."""
        try:
            found = ask()
        except LogError as error:
            if not self._is_failing:
                self._progress(f"end offsets cannot be sampled, so lag is not updated: {error}")
            self._is_failing = True
            return None
        if self._is_failing:
            self._progress("end offsets are sampled again")
            self._is_failing = False
        return found

    def _written(self, batch: Batch) -> None:
        self._progress(describe_sample(batch))
        if self._cluster is not None:
            self._cluster.sample(self._claim())


def describe_sample(batch: Batch) -> str:
    """Progress line of a sample."""
    took = (batch.finished_at - batch.started_at).total_seconds()
    return f"batch {batch.batch_id}: sample of end offsets, {took:.1f} s"
