"""Work of a run between batches of records, and at its end: transactions, samples of end offsets, and maintenance."""

import threading
from collections.abc import Callable
from typing import Protocol

from pipelines.job.run_options import AVAILABLE_NOW, RunOptions
from pipelines.lag.sampling.schedule import SampleSchedule
from pipelines.runtime.progress import Progress
from pipelines.source.partition_sets import PartitionSets
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.schedule import MaintenanceSchedule


class ApplyTransactions(Protocol):
    """`BatchApplier.apply_transactions`."""

    def __call__(self, *, required: bool = False) -> None:
        """Apply new records of `__transaction_state`, if there are any."""
        ...


class BetweenBatches:
    """The schedules of a run. `lock` is held while a batch is applied; `claim` and `transactions` are called with it.

    `alive` is called about once a second while a job follows the log and no batch, sample or maintenance is in progress.
    """

    def __init__(
        self,
        options: RunOptions,
        lock: threading.Lock,
        claim: Callable[[], TablesWriter],
        progress: Progress,
        clock_ms: Callable[[], int],
        transactions: ApplyTransactions | None = None,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._lock = lock
        self._alive = alive
        self._transactions = transactions
        self._follows = options.trigger != AVAILABLE_NOW
        sampling = None
        if options.lag_interval_seconds:
            from pipelines.job.source_sampling import open_sampling

            sampling = open_sampling(options, progress, clock_ms)
        interval = options.lag_interval_seconds if self._follows else None
        self._samples = SampleSchedule(sampling, interval, lock, claim, progress, clock_ms)
        self._maintenance = None
        if options.maintenance is not None:
            limits, every = options.maintenance, options.maintain_every_seconds
            self._maintenance = MaintenanceSchedule(options.tables, limits, every, lock, claim, progress, clock_ms)

    def every_second(self) -> None:
        """Apply new transactions, take a sample and start maintenance, as far as they are due.

        Transactions wait for a batch in progress, which applies them itself.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        if self._transactions is not None and self._lock.acquire(blocking=False):
            try:
                self._transactions()
            finally:
                self._lock.release()
        self._samples.sample_if_due()
        if self._maintenance is not None:
            self._maintenance.maintain_if_due()
        if self._follows and not self._lock.locked():
            self._alive()

    def batch_begins(self, last: Batch | None, root: str, new: PartitionSets | None = None) -> None:
        """Request log ends if a sample is due; a batch has just requested the end of the log. `new` partitions are in it."""
        self._samples.batch_begins(last, root, new)

    def batch_applied(self, batch: Batch) -> None:
        """Remember the batch, for the sample that belongs to it."""
        self._samples.batch_applied(batch)

    def stop(self) -> None:
        """Wait for maintenance in progress, which ends with the present table."""
        if self._maintenance is not None:
            self._maintenance.stop()

    def query_ended(self, is_done: bool, catch_up: Callable[[], bool]) -> None:
        """Apply the last transactions, take the sample of a run that does not follow the log, and maintain if that is due.

        Nothing after a stop. `catch_up` reads what was appended to the log meanwhile; False if it was stopped.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        if self._transactions is not None and is_done:
            with self._lock:
                self._transactions(required=True)
        self._samples.query_ended(is_done, catch_up)
        if self._maintenance is not None and is_done and not self._follows:
            self._maintenance.query_ended()
