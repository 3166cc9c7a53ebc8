"""A log of log_builder applied to tables as the job does it, without Spark."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import pyarrow as pa
from created_tables import created_tables
from log_builder import Log

from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.range_reduction import RangeReducer
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.source.changes import SCHEMA
from pipelines.source.reduction_rows import change_rows
from pipelines.tables.store import TableStore


def change_table(
    log: Log, era: Era, start: int, end: int, retention_ms: int | None = None, partitions: int | None = None
) -> pa.Table:
    """The change rows of a range of offsets. `partitions` is the number of partitions of the topic; None if unknown."""
    reducer = RangeReducer(era, log.partition)
    reducer.add(columns_of([r for r in log.records if start <= r.offset < end], next_offset=end))
    retention_ms = era.default_retention_ms if retention_ms is None else retention_ms
    rows = change_rows(reducer.finish(), start, end, era, retention_ms, partitions=partitions)
    return pa.Table.from_batches(list(rows), SCHEMA)


def applied_records(records: Iterable[LogRecord], era: Era, root: str) -> TableStore:
    """Tables of the records of several log partitions, applied in one batch."""
    store = created_tables(root)
    logs: dict[int, Log] = {}
    for record in records:
        logs.setdefault(record.partition, Log(record.partition)).records.append(record)
    changes = [change_table(log, era, 0, log.end) for log in logs.values()]
    BatchApplier(store, era, era.default_retention_ms, dict, bulk_rows=1_000_000).apply_rows(pa.concat_tables(changes))
    return store


def applied(
    log: Log,
    era: Era,
    cuts: Iterable[int],
    root: str,
    *,
    retention_ms: int | None = None,
    again: bool = True,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> TableStore:
    """Tables of the log, cut into batches at `cuts`.

    `clock` gives the times of batches. `again` applies every batch twice, as a stream does that died before it recorded the
    batch as done.
    """
    retention_ms = era.default_retention_ms if retention_ms is None else retention_ms
    store = created_tables(root)
    applier = BatchApplier(store, era, retention_ms, dict, bulk_rows=1_000_000, clock=clock)
    ends = sorted({min(cut, log.end) for cut in cuts} | {log.end})
    for start, end in zip([0, *ends], ends, strict=False):
        for _ in range(1 + again):
            if end > start:
                applier.apply_rows(change_table(log, era, start, end, retention_ms))
    return store
