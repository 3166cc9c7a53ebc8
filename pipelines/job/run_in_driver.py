"""A run that reads few new records: the driver reads and applies them in one batch, and Spark is not started (docs/adr/0038)."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa

from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.log.errors import LogError
from pipelines.batch.apply import BatchApplier
from pipelines.cache.kernels import compile_kernels
from pipelines.errors import TablesError
from pipelines.job.run_options import AVAILABLE_NOW, RunOptions
from pipelines.job.stop_request import StopRequest, stop_on_signals
from pipelines.job.stored_position import known_epochs, replace_checkpoint
from pipelines.phases import Phases
from pipelines.progress import Progress
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.log_stream import LogStream
from pipelines.source.position import Position
from pipelines.source.ranges import Offsets, ranges


def fits_driver(options: RunOptions, next_offsets: Offsets, ends: Mapping[int, int] | None) -> bool:
    """True for a run up to the present end of the log, if it has at most `driver_records` new offsets and they fit one batch."""
    if options.trigger != AVAILABLE_NOW or ends is None:
        return False
    new = sum(max(0, end - next_offsets.get(partition, 0)) for partition, end in ends.items())
    return new <= min(options.driver_records, options.bulk_rows, options.max_records or new)


def run_in_driver(
    options: RunOptions,
    applier: BatchApplier,
    next_offsets: Offsets,
    topic_id: str | None,
    folder: Path | None,
    progress: Progress,
    stop_request: StopRequest | None,
) -> bool:
    """Read the log from the position of the tables to its present end, and apply it.

    `folder` is that of the tables if a lock excludes other jobs; otherwise None, and Spark's checkpoint is that of a claim, which
    no later run uses.

    Returns:
        whether it ended without a stop request.

    Raises:
        TablesError: the log cannot be read, or does not continue where the tables end.
        AnotherWriter: another job took over the tables.
    """
    compile_kernels(progress)
    epochs = known_epochs(folder, next_offsets) if folder is not None else {}
    source = SourceOptions(
        address=options.address,
        era=options.era.name,
        retention_ms=options.retention_ms,
        tasks=1,
        max_records=None,
        start=Position(next_offsets, epochs),
        topic_id=uuid_from_text(topic_id) if topic_id else None,
        warms_up=False,
        kafka=options.kafka,
    )
    phases = Phases(applier.clock())
    with nullcontext(stop_request) if stop_request is not None else stop_on_signals() as stop:
        try:
            with phases.timed("read"):
                begin, end, rows = _read(source)
        except LogError as error:
            raise TablesError(str(error)) from error
        if stop.is_requested:
            return False
        if folder is not None:
            try:
                replace_checkpoint(folder, begin, end)
            except OSError as error:
                raise TablesError(str(error)) from error
        with applier.lock:
            applier.apply_rows(rows, phases)
        return not stop.is_requested


def _read(source: SourceOptions) -> tuple[Position, Position, pa.Table]:
    """Start, end, and the change rows in between."""
    stream = LogStream(source)
    try:
        begin = stream.start()
        end = stream.end_after(begin)
        return begin, end, pa.Table.from_batches(read_ranges(source, ranges(begin.offsets, end.offsets)), SCHEMA)
    finally:
        stream.close()
