"""Times of the samples of a run, and the commits that each sample belongs to.

Log ends and commits are compared only if they are of the same time. There are two such times:

- A batch begins: the end of the groups' log was requested just before, and the batch reads up to it. Log ends that are requested
  now belong to the commits that the tables have after the batch.
- No batch is in progress, and the log ends at the position of the tables, both before and after the request for log ends.

A batch that does not reach the end of the log, as after a time without a job, is followed by a sample without lag.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa

from coordinator_core.log.errors import LogError
from pipelines.batch.without_records import write_empty_batch
from pipelines.lag.sampling.background_request import BackgroundRequest
from pipelines.lag.sampling.log_end import is_same_time
from pipelines.runtime.progress import Progress
from pipelines.runtime.timestamps import at_ms
from pipelines.tables.reached_position import ReachedPosition
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter

if TYPE_CHECKING:
    from pipelines.lag.sampling.cluster_sampling import ClusterSampling
    from pipelines.lag.sampling.log_end import EndOfLog
    from pipelines.lag.sampling.sampling import LagSampling, PreparedSample
    from pipelines.source.partition_sets import PartitionSets

T = TypeVar("T")

#: Time to wait for the end of a batch.
_WAIT_SECONDS = 1.0

#: At its end, a run reads the records that were appended meanwhile this many times before it gives up: lag is unknown then.
_CATCH_UPS = 3


class Sampling(NamedTuple):
    """The samples of a source; `cluster` is None for a source without a cluster, `log_end` for a log that does not grow."""

    lag: "LagSampling"
    cluster: "ClusterSampling | None" = None
    log_end: "EndOfLog | None" = None


class SampleSchedule:
    """Samples of a run: at an interval while it follows the log, otherwise one at its end; none without `sampling`.

    A sample of a running query is prepared while batches of records are applied. `lock` is held to write it, so that no batch is
    applied meanwhile.
    """

    def __init__(
        self,
        sampling: Sampling | None,
        interval_seconds: int | None,
        lock: threading.Lock,
        claim: Callable[[], TablesWriter],
        progress: Progress,
        clock_ms: Callable[[], int],
    ) -> None:
        self._sampling = sampling.lag if sampling else None
        self._cluster = sampling.cluster if sampling else None
        self._log_end = sampling.log_end if sampling else None
        self._interval = interval_seconds
        self._lock = lock
        self._claim = claim
        self._progress = progress
        self._clock_ms = clock_ms
        #: Times of the next sample, and of the next one without lag.
        self._due = self._unknown_due = time.monotonic()
        #: True until the first sample of this run, which may begin behind the end of the log and says so at once, and after each
        #: sample without lag.
        self._is_unknown = True
        #: True if statuses do not follow from the newest commits: while lag is unknown, samples without it bring them up to date.
        self._has_newer_commits = True
        self._is_failing = False
        self._is_preparing = False
        #: Log ends that were requested when a batch began.
        self._asked: BackgroundRequest[pa.Table] | None = None
        #: The batch that the log ends belong to; without log ends, the last one.
        self._applied: Batch | None = None
        #: A sample that waits for the end of a batch.
        self._prepared: PreparedSample | None = None

    def batch_begins(self, last: Batch | None, root: str, new: "PartitionSets | None" = None) -> None:
        """Request log ends if a sample is due: a batch has just requested the end of the log. Called with the lock.

        `last` is the last batch of the tables under `root`. `new` has the partitions that this batch may add; None if they are
        not known before the batch is applied.
        """
        sampling = self._sampling
        if sampling is None or self._is_preparing or self._prepared is not None or self._asked is not None:
            return
        if last is None and new is None:
            return
        if self._interval is None or time.monotonic() >= self._due:
            self._applied = None
            self._asked = BackgroundRequest(lambda: sampling.ask(root, last, new), self._clock_ms())

    def batch_applied(self, batch: Batch) -> None:
        """Remember the batch. Called with the lock."""
        self._has_newer_commits = True
        if self._asked is None or self._applied is None:
            self._applied = batch

    def sample_if_due(self) -> None:
        """Take a sample if the interval has passed since the last one, and write it between two batches.

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
        now = time.monotonic()
        if (self._asked is not None and not self._asked.is_done) or not self._lock.acquire(blocking=False):
            return None
        try:
            writer = self._claim()
            tables = _NextSample(writer.store.root, writer.last, *self._take_applied())
            self._is_preparing = True
        finally:
            self._lock.release()
        try:
            attempt = self._retry_later(lambda: self._attempt(sampling, tables))
        finally:
            self._is_preparing = False
        if attempt is None:
            self._due = now + interval
            return None
        if attempt.is_taken:
            self._due, self._is_unknown = now + interval, False
            if attempt.prepared is None:
                self._leave_batch()
            return attempt.prepared
        if now < self._unknown_due or not (tables.is_behind or (self._is_unknown and self._has_newer_commits)):
            return None
        self._unknown_due, self._is_unknown, self._has_newer_commits = now + interval, True, tables.last is None
        return tables.unknown(sampling)

    def _leave_batch(self) -> None:
        """Write a batch although there is nothing to sample, if readers expect one and no batch is in progress."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            writer = self._claim()
            if writer.interval_seconds and writer.last is not None:
                write_empty_batch(writer, writer.last, datetime.now(UTC))
        finally:
            self._lock.release()

    def _take_applied(self) -> "tuple[BackgroundRequest[pa.Table] | None, Batch | None]":
        taken = self._asked, self._applied
        self._asked = self._applied = None
        return taken

    def _attempt(self, sampling: "LagSampling", tables: "_NextSample") -> "_Attempt":
        """Take a sample of the batch that log ends were requested for, or of a log that has no further records.

        Raises:
            LogError: no broker answers.
        """
        last = tables.last
        if last is None or tables.is_behind:
            return _Attempt(is_taken=False)
        is_same = is_same_time if self._log_end is None else self._log_end.is_same_time
        if tables.asked is not None and tables.applied is not None and is_same(tables.applied, tables.asked.asked_at_ms):
            return _Attempt(True, sampling.prepare(tables.root, tables.applied, tables.asked.answer()))
        if self._log_end is None:
            return _Attempt(True, sampling.prepare(tables.root, last, sampling.ask(tables.root, last)))
        if self._log_end.read_until(last.next_offsets) is None:
            return _Attempt(is_taken=False)
        samples = sampling.ask(tables.root, last)
        read_until_ms = self._log_end.read_until(last.next_offsets)
        if read_until_ms is None:
            return _Attempt(is_taken=False)
        reached = ReachedPosition(at_ms(read_until_ms), 0)
        return _Attempt(True, sampling.prepare(tables.root, last, samples, reached))

    def query_ended(self, is_done: bool, catch_up: Callable[[], bool] = lambda: False) -> None:
        """Take the only sample of a run that does not follow the log, unless it was stopped before the end; then close the log.

        `catch_up` reads the records that were appended meanwhile, and returns False if it was stopped or cannot.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        try:
            if self._sampling is not None and is_done and self._interval is None:
                self._sample_last(self._sampling, catch_up)
        finally:
            if self._log_end is not None:
                self._log_end.close()

    def _sample_last(self, sampling: "LagSampling", catch_up: Callable[[], bool]) -> None:
        prepared = self._retry_later(lambda: self._last_sample(sampling, catch_up))
        if prepared is not None:
            with self._lock:
                self._written(sampling.write(self._claim(), prepared))

    def _last_sample(self, sampling: "LagSampling", catch_up: Callable[[], bool]) -> "PreparedSample | None":
        for attempt in range(_CATCH_UPS + 1):
            with self._lock:
                writer = self._claim()
                tables = _NextSample(writer.store.root, writer.last, *self._take_applied())
            attempted = self._attempt(sampling, tables)
            if attempted.is_taken:
                return attempted.prepared
            if attempt == _CATCH_UPS or not catch_up():
                break
        return tables.unknown(sampling)

    def _retry_later(self, request: Callable[[], T | None]) -> T | None:
        """Return the result of `request`. An outage of the brokers is reported once; the next sample tries again."""
        try:
            found = request()
        except LogError as error:
            if not self._is_failing:
                self._progress(f"end offsets cannot be sampled, so lag is not updated: {error}")
            self._is_failing = True
            return None
        if self._is_failing and found is not None:
            self._progress("end offsets are sampled again")
            self._is_failing = False
        return found

    def _written(self, batch: Batch) -> None:
        self._progress(describe_sample(batch))
        if self._cluster is not None:
            self._cluster.sample(self._claim())


class _Attempt(NamedTuple):
    """`is_taken` is true if log ends and commits are of the same time; `prepared` is None then if nothing has changed."""

    is_taken: bool
    prepared: "PreparedSample | None" = None


class _NextSample(NamedTuple):
    """The tables between two batches: the last batch, log ends that were requested, and the batch that they belong to."""

    root: str
    last: Batch | None
    asked: BackgroundRequest[pa.Table] | None
    applied: Batch | None

    @property
    def is_behind(self) -> bool:
        """True if the last batch did not reach the end of the log."""
        return self.last is not None and bool(self.last.records_behind)

    def unknown(self, sampling: "LagSampling") -> "PreparedSample | None":
        """A sample without lag."""
        return None if self.last is None else sampling.prepare_unknown(self.root, self.last)


def describe_sample(batch: Batch) -> str:
    """Progress line of a sample."""
    took = (batch.finished_at - batch.started_at).total_seconds()
    return f"batch {batch.batch_id}: sample of end offsets, {took:.1f} s"
