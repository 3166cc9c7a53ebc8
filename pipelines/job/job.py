"""The job: reads a source into tables, batch by batch, as its trigger says."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from pipelines.batch.apply import BatchApplier
from pipelines.batch.expiry_sweep import sweep
from pipelines.errors import TablesError, UsageError
from pipelines.job.between_batches import BetweenBatches
from pipelines.job.log_probe import probe_log
from pipelines.job.run_in_driver import fits_driver, run_in_driver
from pipelines.job.run_options import AVAILABLE_NOW, RunOptions, trigger_arguments
from pipelines.job.shared_files import shared_files
from pipelines.job.stop_request import StopRequest
from pipelines.job.stored_position import known_epochs
from pipelines.progress import Progress
from pipelines.source.address import open_source
from pipelines.source.position import Position
from pipelines.tables.location import local_folder
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.stream_checkpoints import checkpoint_location, remove_stale_checkpoints
from pipelines.tables.writer import TablesWriter, newest_claim
from pipelines.tables.writer_lock import writer_lock

Applier = TypeVar("Applier", bound=BatchApplier)


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
    trigger = trigger_arguments(options.trigger)
    store = TableStore(options.tables)
    last = _last_batch(store, options)
    topic_id, ends = (store.topic_id() if last else None), None
    if not options.address.is_spark_kafka:
        next_offsets = last.next_offsets if last else {}
        topic_id, ends = probe_log(options.address, options.kafka, next_offsets, topic_id)
    with writer_lock(options.tables, "grouplake run") as is_locked:
        if last is not None:
            store.expect_writable()
        else:
            store.create()
        if topic_id is not None:
            store.remember_topic_id(topic_id)
        last = _last_batch(store, options)
        # a run that finds nothing new writes nothing: with a lock the first batch claims the tables
        is_up_to_date = last is not None and _is_up_to_date(options, last, ends)
        writer = None if is_locked or is_up_to_date else TablesWriter.claim(store)
        if writer is not None:
            last = writer.last
        if last is not None and is_up_to_date:
            progress(f"up to date: {options.address} has no records after batch {last.batch_id}")
            end_run = _idle_run(options, store, writer, progress, clock_ms)
            if on_ready is not None:
                on_ready()
        elif last is not None and fits_driver(options, last.next_offsets, ends):
            writer, end_run = _read_in_driver(options, store, last, topic_id, progress, writer, clock_ms, stop, on_ready)
        else:
            writer, end_run = _stream(options, store, last, topic_id, trigger, progress, writer, clock_ms, stop, on_ready)
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


def _is_up_to_date(options: RunOptions, last: Batch, ends: Mapping[int, int] | None) -> bool:
    """True for a run that would find nothing to read, so that it need not start Spark, which takes 20 s.

    Spark's checkpoint has leader epochs, and the first run that reads compares them with the log, as every run did.
    """
    if options.trigger != AVAILABLE_NOW or ends is None:
        return False
    return all(last.next_offsets.get(partition, 0) >= end for partition, end in ends.items())


def _idle_run(
    options: RunOptions, store: TableStore, writer: TablesWriter | None, progress: Progress, clock_ms: Callable[[], int]
) -> Callable[[], None]:
    """The call that ends a run that has nothing to read: its sample, and maintenance that is due."""

    def claim() -> TablesWriter:
        nonlocal writer
        writer = writer or TablesWriter.claim(store)
        return writer

    between = BetweenBatches(options, threading.Lock(), claim, progress, clock_ms)
    return lambda: between.query_ended(True)


def _report_torn_ends(options: RunOptions, progress: Progress) -> None:
    if options.address.scheme == "segments":
        for end in open_source(options.address, options.kafka).torn_ends():
            progress(str(end))


def _read_in_driver(
    options: RunOptions,
    store: TableStore,
    last: Batch,
    topic_id: str | None,
    progress: Progress,
    writer: TablesWriter | None,
    clock_ms: Callable[[], int],
    stop: StopRequest | None,
    on_ready: Callable[[], None] | None,
) -> tuple[TablesWriter | None, Callable[[], None]]:
    """Read and apply the new records without Spark. Returns the writer, and the call that ends the run."""
    applier = _applier(BatchApplier, options, store, progress, writer)
    between = BetweenBatches(options, applier.lock, applier.claim, progress, clock_ms)
    folder = local_folder(store.root) if writer is None else None
    is_done = run_in_driver(options, applier, last.next_offsets, topic_id, folder, progress, stop)
    if is_done and on_ready is not None:
        on_ready()
    return applier.writer, lambda: between.query_ended(is_done)


def _applier(
    kind: type[Applier], options: RunOptions, store: TableStore, progress: Progress, writer: TablesWriter | None
) -> Applier:
    return kind(
        store=store,
        era=options.era,
        retention_ms=options.retention_ms,
        name_source=lambda: _names(options),
        bulk_rows=options.bulk_rows,
        on_batch=lambda batch: progress(describe_batch(batch)),
        writer=writer,
    )


def _stream(
    options: RunOptions,
    store: TableStore,
    last: Batch | None,
    topic_id: str | None,
    trigger: dict[str, Any],
    progress: Progress,
    writer: TablesWriter | None,
    clock_ms: Callable[[], int],
    stop: StopRequest | None,
    on_ready: Callable[[], None] | None,
) -> tuple[TablesWriter | None, Callable[[], None]]:
    """Run the streaming query. Returns the writer, if a claim was made, and the call that ends the run."""
    if stop is not None and stop.is_requested:
        return writer, _nothing_left
    # Spark takes seconds to import: every check that needs no Spark is done before
    from pipelines.batch.apply_in_spark import SparkBatchApplier
    from pipelines.source.stream import open_stream, spark_jars, warm_up
    from pipelines.spark.session import start_session
    from pipelines.spark.streaming_query import follow, with_short_errors

    try:
        session = start_session(options.spark, progress, spark_jars(options, progress), records_classes=True)
        files = shared_files(options.address, options.kafka, options.tables)
        session.expect_usable_executors(files, options.spark["executors_seconds"], progress)
        if session.is_fresh:
            warm_up(session.spark, options)
    except Exception:
        # a signal to the whole process group also ends the JVM, at any moment of its start
        if stop is None or not stop.is_requested:
            raise
        return writer, _nothing_left
    applier = _applier(SparkBatchApplier, options, store, progress, writer)
    between = BetweenBatches(options, applier.lock, applier.claim, progress, clock_ms)
    # jobs without a lock must not share a checkpoint: Spark might end the wrong one
    checkpoint = checkpoint_location(store, writer.generation if writer else None)

    def start() -> Any:
        stream = open_stream(session.spark, options, _position(store, last, writer) if last else None, topic_id)
        written = stream.writeStream.foreachBatch(with_short_errors(applier)).option("checkpointLocation", checkpoint)
        return written.trigger(**trigger).start()

    is_ready = False

    def ready() -> None:
        nonlocal is_ready
        is_ready = True
        if options.trigger != AVAILABLE_NOW:
            progress(f"ready: following {options.address}")
        if on_ready is not None:
            on_ready()

    remove_stale_checkpoints(store, newest_claim(store.table("batches")), progress)
    try:
        is_done = follow(start, progress, stop, ready, between.every_second)
    except TablesError:
        # a job that took over has removed this job's checkpoint: report that instead of Spark's message
        if applier.writer is not None:
            applier.writer.expect_claim()
        raise
    finally:
        between.stop()
    if is_done or is_ready:
        session.finish(progress, is_stopped=not is_done)
    return applier.writer, lambda: between.query_ended(is_done)


def _position(store: TableStore, last: Batch, writer: TablesWriter | None) -> Position:
    """The position of the tables, with the leader epochs that an earlier run has kept under the lock."""
    folder = local_folder(store.root) if writer is None else None
    return Position(last.next_offsets, known_epochs(folder, last.next_offsets) if folder is not None else {})


def _nothing_left() -> None:
    """The end of a run that was stopped before its query began."""


def _names(options: RunOptions) -> dict[UUID, tuple[str, str]]:
    if options.address.is_spark_kafka:
        return {}
    source = open_source(options.address, options.kafka, seen_before=True)
    try:
        learned_from = "cluster" if options.address.scheme == "kafka" else "partition_metadata"
        return {uuid: (name, learned_from) for uuid, name in source.topic_ids().items()}
    finally:
        source.close()


def describe_batch(batch: Batch) -> str:
    """Progress line of a batch."""
    took = (batch.finished_at - batch.started_at).total_seconds()
    return f"batch {batch.batch_id}: {batch.records_read:,} records read, {batch.records_kept:,} kept, {took:.1f} s"


def describe_sweep(batch: Batch) -> str:
    """Progress line of an expiry sweep."""
    return f"batch {batch.batch_id}: expiry sweep, {batch.records_kept:,} offsets and groups removed"
