"""A run with Spark's streaming query: the first one on new tables, one that follows the log, and one that reads many records."""

from typing import Any

from pipelines.job.prepared_run import Outcome, PreparedRun
from pipelines.job.run_in_driver import catch_up
from pipelines.job.run_options import AVAILABLE_NOW, trigger_arguments
from pipelines.job.shared_files import shared_files
from pipelines.runtime.errors import TablesError
from pipelines.runtime.hidden_pandas import show_pandas
from pipelines.tables.stream_checkpoints import checkpoint_location, remove_stale_checkpoints
from pipelines.tables.writer import newest_claim


def run_in_spark(run: PreparedRun) -> Outcome:
    """Start Spark and run the query until its trigger is done or a stop is requested.

    Raises:
        AnotherWriter: another job took over the tables.
        GrouplakeError: Spark or an executor cannot start, or the query failed.
    """
    options, progress, stop = run.options, run.progress, run.stop
    if stop is not None and stop.is_requested:
        return run.writer, _nothing_left
    show_pandas()
    # Spark takes seconds to import: every check that needs no Spark is done before
    from pipelines.batch.apply_in_spark import SparkBatchApplier
    from pipelines.job.spark.change_stream import current_partitions, open_outage, open_stream, spark_jars, warm_up
    from pipelines.job.spark.session import start_session
    from pipelines.job.spark.streaming_query import follow, with_short_errors

    try:
        session = start_session(options.spark, progress, spark_jars(options, progress), records_classes=True)
        files = shared_files(options.address, options.kafka, options.tables)
        session.expect_usable_executors(files, options.spark["executors_seconds"], progress)
        if session.is_fresh:
            warm_up(session.spark, options)
    except Exception:
        # a signal to the whole process group also ends the JVM, at any moment of its start
        if stop is None or not stop.explains_the_end_of_a_child():
            raise
        return run.writer, _nothing_left
    applier, between = run.parts(SparkBatchApplier)
    applier.current_partitions = current_partitions(session.spark, options)
    # jobs without a lock must not share a checkpoint: Spark might end the wrong one
    checkpoint = checkpoint_location(run.store, run.writer.generation if run.writer else None)

    def start() -> Any:
        stream = open_stream(session.spark, options, run.position(), run.topic_id)
        written = stream.writeStream.foreachBatch(with_short_errors(applier)).option("checkpointLocation", checkpoint)
        return written.trigger(**trigger_arguments(options.trigger)).start()

    is_ready = False

    def ready() -> None:
        nonlocal is_ready
        is_ready = True
        if options.trigger != AVAILABLE_NOW:
            progress(f"ready: following {options.address}")
        run.ready()

    remove_stale_checkpoints(run.store, newest_claim(run.store.table("batches")), progress)
    try:
        is_done = follow(start, progress, stop, ready, between.every_second, open_outage(options, progress))
    except TablesError:
        # a job that took over has removed this job's checkpoint: report that instead of Spark's message
        if applier.writer is not None:
            applier.writer.expect_claim()
        raise
    finally:
        between.stop()
    if is_done or is_ready:
        session.finish(progress, is_stopped=not is_done)
    return applier.writer, lambda: between.query_ended(is_done, lambda: catch_up(run, applier))


def _nothing_left() -> None:
    """The end of a run that was stopped before its query began."""
