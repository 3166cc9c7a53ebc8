"""The job: reads a source into tables, batch by batch, as its trigger says."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator_core.codec.uuids import uuid_from_text
from pipelines.batch.apply import BatchApplier, TransactionReader
from pipelines.batch.expiry_sweep import sweep
from pipelines.batch.without_records import write_empty_batch
from pipelines.job.expected_interval import expected_interval
from pipelines.job.offset_retention import record_retention, with_offset_retention
from pipelines.job.position_commits import position_commits
from pipelines.job.prepared_run import Outcome, PreparedRun
from pipelines.job.probed_logs import ProbedLogs
from pipelines.job.run_in_driver import catch_up, fits_driver, run_in_driver
from pipelines.job.run_in_spark import run_in_spark
from pipelines.job.run_options import AVAILABLE_NOW, RunOptions, trigger_arguments
from pipelines.job.source_kind import is_source_change
from pipelines.runtime.errors import UsageError
from pipelines.runtime.progress import Progress
from pipelines.runtime.stop_request import StopRequest
from pipelines.runtime.timestamps import at_ms
from pipelines.source.address import open_source
from pipelines.source.log_reading import SourceOptions
from pipelines.source.position_file import TRANSACTIONS_FILE
from pipelines.source.transaction_log import TransactionLogReader
from pipelines.tables.location import local_folder
from pipelines.tables.reached_position import ReachedPosition
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writer_lock import writer_lock

if TYPE_CHECKING:
    from pipelines.source.polled_transactions import PolledTransactionReader


def run(
    options: RunOptions,
    progress: Progress,
    clock_ms: Callable[[], int],
    stop: StopRequest | None = None,
    on_ready: Callable[[], None] | None = None,
    alive: Callable[[], None] = lambda: None,
) -> None:
    """Run the job until its trigger is done or a stop is requested: by `stop` or, if that is None, by a signal.

    Args:
        on_ready: called once, in this thread, when everything is downloaded, compiled and started and the query has read the end
            of the log for the first time. A job that follows the log also reports "ready: …" then.
        alive: called about once a second while a job that follows the log waits for records.

    Raises:
        UsageError: the source or the tables cannot be opened with these options; nothing was started.
        AnotherWriter: another job writes the tables.
        GrouplakeError: the streaming query failed.
    """
    # an invalid trigger is rejected before anything is created
    trigger_arguments(options.trigger)
    store = TableStore(options.tables)
    last, begun_at = _last_batch(store, options), at_ms(clock_ms())
    is_new_source = is_source_change(options, last)
    logs = ProbedLogs.of(options, store, last, is_new_source=is_new_source)
    with writer_lock(options.tables, "grouplake run") as is_locked, ExitStack() as resources:
        if options.trigger != AVAILABLE_NOW and options.address.has_own_client:
            # importing the client library takes half a second, and other sources do not need it
            from pipelines.job.outage_lines import one_line_per_outage

            progress = resources.enter_context(one_line_per_outage(progress))
        if last is not None:
            store.expect_writable()
        else:
            store.create()
        logs.remember(store)
        if is_new_source:
            # importing the client library takes half a second, and other sources do not need it
            from pipelines.job.source_change import change_source

            change_source(options, store, logs, begun_at, progress, clock_ms)
        last = _last_batch(store, options)
        is_up_to_date = logs.are_read(options, last)
        interval_seconds = expected_interval(options, store, last, begun_at)
        # a run that finds nothing new may write nothing: with a lock the first batch claims the tables
        writer = None if is_locked or is_up_to_date else TablesWriter.claim(store, interval_seconds)
        last = last if writer is None else writer.last
        options = with_offset_retention(options, last, progress)
        if last is not None and last.retention_ms != options.retention_ms:
            last = record_retention(writer or TablesWriter.claim(store), options.retention_ms)
        transactions: TransactionReader | None = None
        if options.address.is_polled:
            transactions = _transaction_polls(options, store, last, progress, clock_ms)
        elif log := _transaction_reader(options, logs, progress, None if writer else local_folder(store.root)):
            resources.callback(log.close)
            transactions = log
        commits = resources.enter_context(position_commits(options, last, progress))
        prepared = PreparedRun(
            options=options,
            store=store,
            last=last,
            topic_id=logs.topic_id,
            writer=writer,
            progress=progress,
            clock_ms=clock_ms,
            stop=stop,
            on_ready=on_ready,
            transactions=transactions,
            interval_seconds=interval_seconds,
            alive=alive,
            commits=commits,
        )
        writer, end_run = _way_to_run(prepared, logs.ends, is_up_to_date=is_up_to_date)(prepared)
        _report_torn_ends(options, progress)
        if options.expiry == "apply":
            _sweep(prepared, writer)
        end_run()
        if last is not None and options.trigger == AVAILABLE_NOW and interval_seconds:
            _leave_batch(prepared, last, ReachedPosition(begun_at, 0) if is_up_to_date else None)


def _last_batch(store: TableStore, options: RunOptions) -> Batch | None:
    last = store.last_batch() if store.exists() else None
    if last is not None and last.era != options.era.name:
        raise UsageError(
            f"the tables under {store.root} were made with era {last.era}, not {options.era.name}: "
            f"use --era {last.era}, or another folder"
        )
    return last


def _transaction_reader(
    options: RunOptions, logs: ProbedLogs, progress: Progress, locked_folder: Path | None
) -> TransactionLogReader | None:
    if options.transactions is None:
        return None
    expected = uuid_from_text(logs.transaction_topic_id) if logs.transaction_topic_id else None
    source = SourceOptions(options.transactions, options.era.name, options.retention_ms, options.kafka, topic_id=expected)
    return TransactionLogReader(source, progress, None if locked_folder is None else locked_folder / TRANSACTIONS_FILE)


def _transaction_polls(
    options: RunOptions, store: TableStore, last: Batch | None, progress: Progress, clock_ms: Callable[[], int]
) -> "PolledTransactionReader | None":
    if options.transactions is None:
        return None
    # importing the client library takes half a second, and other sources do not need it
    from coordinator_core.group_polls.group_poll import POLLED_PARTITION
    from pipelines.job.polled_state import polled_transactions
    from pipelines.source.polled_transactions import PolledTransactionReader

    before = polled_transactions(store, last)
    start = ((last.transaction_offsets if last else None) or {}).get(POLLED_PARTITION, 0)
    return PolledTransactionReader(options.address, options.kafka, before, start, progress, clock_ms)


def _way_to_run(run: PreparedRun, ends: Mapping[int, int] | None, *, is_up_to_date: bool) -> Callable[[PreparedRun], Outcome]:
    """The cheapest of the ways that reads all there is."""
    if run.options.address.is_polled:
        # importing the client library takes half a second, and other sources do not need it
        from pipelines.job.run_polls import run_polls

        return run_polls
    if is_up_to_date:
        return _idle_run
    if run.last is not None and fits_driver(run.options, run.last.next_offsets, ends):
        return run_in_driver
    return run_in_spark


def _idle_run(run: PreparedRun) -> Outcome:
    """A run that has nothing to read: its end takes a sample, and does maintenance that is due."""
    assert run.last is not None
    run.progress(f"up to date: {run.options.address} has no records after batch {run.last.batch_id}")
    applier, between = run.parts(BatchApplier)
    run.ready()
    return applier.writer, lambda: between.query_ended(True, lambda: catch_up(run, applier))


def _leave_batch(run: PreparedRun, before: Batch, reached: ReachedPosition | None) -> None:
    """Write a batch at the end of a scheduled run that has written none, so that readers see that it took place."""
    newest = run.store.last_batch()
    if newest != before or (run.stop is not None and run.stop.is_requested):
        return
    writer = TablesWriter.claim(run.store, run.interval_seconds)
    assert writer.last is not None, "there is a batch before"
    batch = write_empty_batch(writer, writer.last, at_ms(run.clock_ms()), reached)
    run.progress(f"batch {batch.batch_id}: no new records")


def _sweep(run: PreparedRun, writer: TablesWriter | None) -> None:
    """Remove offsets and groups that have expired, as a broker would have done by now."""
    options = run.options
    now_ms = options.now_ms if options.now_ms is not None else run.clock_ms()
    swept = sweep(run.store, options.era, options.retention_ms, now_ms, writer)
    if swept is not None:
        run.progress(describe_sweep(swept))


def _report_torn_ends(options: RunOptions, progress: Progress) -> None:
    if options.address.scheme == "segments":
        for end in open_source(options.address, options.kafka).torn_ends():
            progress(str(end))


def describe_sweep(batch: Batch) -> str:
    """Progress line of an expiry sweep."""
    return f"batch {batch.batch_id}: expiry sweep, {batch.records_kept:,} offsets and groups removed"
