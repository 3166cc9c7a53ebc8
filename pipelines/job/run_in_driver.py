"""A run that reads few new records: the driver reads and applies them in one batch, and Spark is not started (docs/adr/0038)."""

from contextlib import nullcontext

import pyarrow as pa

from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.log.errors import LogError
from pipelines.batch.apply import BatchApplier
from pipelines.job.prepared_run import Outcome, PreparedRun
from pipelines.job.run_options import AVAILABLE_NOW, RunOptions
from pipelines.job.stored_position import replace_checkpoint
from pipelines.runtime.cache.kernels import compile_kernels
from pipelines.runtime.errors import TablesError
from pipelines.runtime.phases import Phases
from pipelines.runtime.stop_request import stop_on_signals
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.log_stream import LogStream
from pipelines.source.position import Position
from pipelines.source.ranges import Offsets, new_offsets, ranges


def fits_driver(options: RunOptions, next_offsets: Offsets, ends: Offsets | None) -> bool:
    """True for a run up to the present end of the log, if it has at most `driver_records` new offsets and they fit one batch."""
    if options.trigger != AVAILABLE_NOW or ends is None:
        return False
    new = new_offsets(next_offsets, ends)
    return new <= min(options.driver_records, options.bulk_rows, options.max_records or new)


def run_in_driver(run: PreparedRun) -> Outcome:
    """Read the log from the position of the tables to its present end, and apply it.

    Without a lock, Spark's checkpoint is that of a claim, which no later run uses: it stays.

    Raises:
        TablesError: the log cannot be read, or does not continue where the tables end.
        AnotherWriter: another job took over the tables.
    """
    compile_kernels(run.progress)
    applier, between = run.parts(BatchApplier)
    is_done = _read_and_apply(run, applier, run.position())
    if is_done:
        run.ready()
    return applier.writer, lambda: between.query_ended(is_done, lambda: catch_up(run, applier))


def catch_up(run: PreparedRun, applier: BatchApplier) -> bool:
    """Read what was appended to the log since the last batch, at the end of a run. Returns False if it was stopped.

    Raises as `run_in_driver` does.
    """
    compile_kernels(run.progress)
    last = applier.claim().last
    return _read_and_apply(run, applier, None if last is None else run.position_of(last))


def _read_and_apply(run: PreparedRun, applier: BatchApplier, start: Position | None) -> bool:
    """Returns whether it ended without a stop request."""
    source = SourceOptions(
        address=run.options.address,
        era=run.options.era.name,
        retention_ms=run.options.retention_ms,
        start=start,
        topic_id=uuid_from_text(run.topic_id) if run.topic_id else None,
        kafka=run.options.kafka,
    )
    phases = Phases(applier.clock())
    with nullcontext(run.stop) if run.stop is not None else stop_on_signals() as stop:
        try:
            with phases.timed("read"):
                begin, end, rows = _read(source, applier)
        except LogError as error:
            raise TablesError(str(error)) from error
        if stop.is_requested:
            return False
        if run.locked_folder is not None:
            try:
                replace_checkpoint(run.locked_folder, begin, end)
            except OSError as error:
                raise TablesError(str(error)) from error
        with applier.lock:
            applier.apply_rows(rows, phases)
        return not stop.is_requested


def _read(source: SourceOptions, applier: BatchApplier) -> tuple[Position, Position, pa.Table]:
    """Start, end, and the change rows in between."""
    stream = LogStream(source)
    try:
        begin = stream.start()
        end = stream.end_after(begin)
        with applier.lock:
            applier.begin()
        todo = ranges(begin.offsets, end.offsets, stream.ends)
        return begin, end, pa.Table.from_batches(read_ranges(source, todo), SCHEMA)
    finally:
        stream.close()
