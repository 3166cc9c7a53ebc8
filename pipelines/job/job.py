"""The job: reads a source into tables, batch by batch, as its trigger says."""

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from coordinator_core.codec.uuids import uuid_from_text
from pipelines.batch.expiry_sweep import sweep
from pipelines.errors import UsageError
from pipelines.job.between_batches import BetweenBatches
from pipelines.job.log_probe import probe_log, probe_transactions
from pipelines.job.prepared_run import Outcome, PreparedRun
from pipelines.job.run_in_driver import fits_driver, run_in_driver
from pipelines.job.run_in_spark import run_in_spark
from pipelines.job.run_options import AVAILABLE_NOW, RunOptions, trigger_arguments
from pipelines.job.stop_request import StopRequest
from pipelines.progress import Progress
from pipelines.source.address import open_source
from pipelines.source.log_reading import SourceOptions
from pipelines.source.position_file import TRANSACTIONS_FILE
from pipelines.source.ranges import new_offsets
from pipelines.source.transaction_log import TransactionLogReader
from pipelines.tables.location import local_folder
from pipelines.tables.store import TRANSACTIONS_TOPIC_ID, Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writer_lock import writer_lock


def run(
    options: RunOptions,
    progress: Progress,
    clock_ms: Callable[[], int],
    stop: StopRequest | None = None,
    on_ready: Callable[[], None] | None = None,
) -> None:
    """Run the job until its trigger is done or a stop is requested: by `stop` or, if that is None, by a signal.

    Args:
        on_ready: called once, in this thread, when everything is downloaded, compiled and started and the query has read the end
            of the log for the first time. A job that follows the log also reports "ready: …" then.

    Raises:
        UsageError: the source or the tables cannot be opened with these options; nothing was started.
        AnotherWriter: another job writes the tables.
        GrouplakeError: the streaming query failed.
    """
    # an invalid trigger is rejected before anything is created
    trigger_arguments(options.trigger)
    store = TableStore(options.tables)
    last = _last_batch(store, options)
    topic_id, ends = (store.topic_id() if last else None), None
    if not options.address.is_spark_kafka:
        next_offsets = last.next_offsets if last else {}
        topic_id, ends = probe_log(options.address, options.kafka, next_offsets, topic_id)
    transaction_topic_id, transaction_ends = _probe_transactions(options, store, last)
    with writer_lock(options.tables, "grouplake run") as is_locked, ExitStack() as resources:
        if last is not None:
            store.expect_writable()
        else:
            store.create()
        if topic_id is not None:
            store.remember_topic_id(topic_id)
        if transaction_topic_id is not None:
            store.remember_topic_id(transaction_topic_id, TRANSACTIONS_TOPIC_ID)
        last = _last_batch(store, options)
        # a run that finds nothing new writes nothing: with a lock the first batch claims the tables
        is_up_to_date = last is not None and _is_up_to_date(options, last, ends, transaction_ends)
        writer = None if is_locked or is_up_to_date else TablesWriter.claim(store)
        if writer is not None:
            last = writer.last
        folder = local_folder(store.root) if writer is None else None
        transactions = _transaction_reader(options, transaction_topic_id, progress, folder)
        if transactions is not None:
            resources.callback(transactions.close)
        prepared = PreparedRun(options, store, last, topic_id, writer, progress, clock_ms, stop, on_ready, transactions)
        if is_up_to_date:
            writer, end_run = _idle_run(prepared)
        elif last is not None and fits_driver(options, last.next_offsets, ends):
            writer, end_run = run_in_driver(prepared)
        else:
            writer, end_run = run_in_spark(prepared)
        _report_torn_ends(options, progress)
        if options.expiry == "apply":
            now_ms = options.now_ms if options.now_ms is not None else clock_ms()
            swept = sweep(store, options.era, options.retention_ms, now_ms, writer)
            if swept is not None:
                progress(describe_sweep(swept))
        end_run()


def _last_batch(store: TableStore, options: RunOptions) -> Batch | None:
    last = store.last_batch() if store.exists() else None
    if last is not None and last.era != options.era.name:
        raise UsageError(
            f"the tables under {store.root} were made with era {last.era}, not {options.era.name}: "
            f"use --era {last.era}, or another folder"
        )
    return last


def _probe_transactions(options: RunOptions, store: TableStore, last: Batch | None) -> tuple[str | None, Mapping[int, int]]:
    """Id of the topic of transactions, if known, and the end of its log; without `--transactions` it is not opened."""
    if options.transactions is None:
        return None, {}
    topic_id = store.topic_id(TRANSACTIONS_TOPIC_ID) if last else None
    next_offsets = (last.transaction_offsets if last else None) or {}
    return probe_transactions(options.transactions, options.kafka, next_offsets, topic_id)


def _transaction_reader(
    options: RunOptions, topic_id: str | None, progress: Progress, locked_folder: Path | None
) -> TransactionLogReader | None:
    if options.transactions is None:
        return None
    expected = uuid_from_text(topic_id) if topic_id else None
    source = SourceOptions(options.transactions, options.era.name, options.retention_ms, options.kafka, topic_id=expected)
    return TransactionLogReader(source, progress, None if locked_folder is None else locked_folder / TRANSACTIONS_FILE)


def _is_up_to_date(options: RunOptions, last: Batch, ends: Mapping[int, int] | None, transaction_ends: Mapping[int, int]) -> bool:
    """True for a run that would find nothing to read, so that it need not start Spark, which takes 20 s.

    Spark's checkpoint has leader epochs, and the first run that reads compares them with the log, as every run did.
    """
    if options.trigger != AVAILABLE_NOW or ends is None or new_offsets(last.transaction_offsets or {}, transaction_ends):
        return False
    return new_offsets(last.next_offsets, ends) == 0


def _idle_run(run: PreparedRun) -> Outcome:
    """A run that has nothing to read: its end takes a sample, and does maintenance that is due."""
    assert run.last is not None
    run.progress(f"up to date: {run.options.address} has no records after batch {run.last.batch_id}")
    writer = run.writer

    def claim() -> TablesWriter:
        nonlocal writer
        writer = writer or TablesWriter.claim(run.store)
        return writer

    between = BetweenBatches(run.options, threading.Lock(), claim, run.progress, run.clock_ms)
    run.ready()
    return writer, lambda: between.query_ended(True)


def _report_torn_ends(options: RunOptions, progress: Progress) -> None:
    if options.address.scheme == "segments":
        for end in open_source(options.address, options.kafka).torn_ends():
            progress(str(end))


def describe_sweep(batch: Batch) -> str:
    """Progress line of an expiry sweep."""
    return f"batch {batch.batch_id}: expiry sweep, {batch.records_kept:,} offsets and groups removed"
