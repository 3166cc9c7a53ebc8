"""The Python Data Source `consumer_offsets`: packed change rows of a `__consumer_offsets` log, in batch and as a stream.

    spark.dataSource.register(ConsumerOffsetsDataSource)
    spark.readStream.format("consumer_offsets").option("era", "4").load("kafka://broker:9092/__consumer_offsets")

Options:
    path             source address (the argument of `load`)
    era              era of the rules, default 4
    retentionMs      offset retention, for eras whose loader fills in the expiry
    tasks            number of tasks, default the cores of the machine
    maxRecordsPerBatch  limit of a micro-batch, default none
    startingOffsets  JSON of log partition → offset, default the earliest
    topicId          required id of the topic, default any
    warmUp           true: an empty batch read, which starts the Python processes of a read
    kafka.*          connection options of `coordinator_core.sources.kafka`; they never appear in messages
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.state.era import Era
from pipelines.failpoints import failpoint
from pipelines.source.address import (
    SourceAddress,
    load_reader,
    old_epoch_error,
    open_source,
    parse_address,
    short_log_error,
    truncated_log_error,
)
from pipelines.source.changes import PACKED_DDL, packed
from pipelines.source.position import Position
from pipelines.source.ranges import LogRange, Offsets, admit, pack, ranges
from pipelines.source.worker_log import mark_warnings

if TYPE_CHECKING:
    from coordinator_core.sources.source import LogSource

KAFKA_PREFIX = "kafka."
WARM_UP = "warmUp"

_CHECKS = 10
_CHECK_EVERY_SECONDS = 1.0


@dataclass(frozen=True)
class SourceOptions:
    """The parsed options of the source; sent to the tasks."""

    address: SourceAddress
    era: str
    retention_ms: int
    tasks: int
    max_records: int | None
    starting_offsets: Offsets | None
    topic_id: UUID | None
    warms_up: bool
    kafka: Mapping[str, str] = field(repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Parse Spark's options, whose names are case-insensitive."""
        given = {name.lower(): value for name, value in options.items()}
        era = given.get("era", "4")
        starting = given.get("startingoffsets")
        limit = given.get("maxrecordsperbatch")
        topic_id = given.get("topicid")
        return cls(
            address=parse_address(given["path"]),
            era=era,
            retention_ms=int(given.get("retentionms", Era.named(era).default_retention_ms)),
            tasks=int(given.get("tasks", os.cpu_count() or 1)),
            max_records=int(limit) if limit else None,
            starting_offsets=None if starting is None else Position.from_json(json.loads(starting)).offsets,
            topic_id=uuid_from_text(topic_id) if topic_id else None,
            warms_up=given.get(WARM_UP.lower()) == "true",
            kafka={name[len(KAFKA_PREFIX) :]: value for name, value in given.items() if name.startswith(KAFKA_PREFIX)},
        )

    def open(self, *, seen_before: bool) -> "LogSource":
        """Open the log. A known topic id implies `seen_before`."""
        mark_warnings()
        return open_source(self.address, self.kafka, self.topic_id, seen_before=seen_before or self.topic_id is not None)


class ConsumerOffsetsDataSource(DataSource):
    """Spark's entry point; see the module docstring."""

    @classmethod
    def name(cls) -> str:
        """Short name for `format(…)`."""
        return "consumer_offsets"

    def schema(self) -> str:
        """Schema of packed change rows."""
        return PACKED_DDL

    def reader(self, schema: StructType) -> "LogReader":  # noqa: ARG002
        """Create the reader of the whole log."""
        return LogReader(SourceOptions.parse(self.options))

    def streamReader(self, schema: StructType) -> "LogStreamReader":  # noqa: ARG002, N802
        """Create the reader of the stream."""
        return LogStreamReader(SourceOptions.parse(self.options))


@dataclass
class RangesPartition(InputPartition):
    """The ranges of one task."""

    todo: list[LogRange]


class LogReader(DataSourceReader):
    """Batch reader: the whole log, or the log from `startingOffsets`."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[RangesPartition]:
        """The ranges of the log, packed into tasks; a warm-up has as many tasks without ranges."""
        if self._options.warms_up:
            return [RangesPartition([]) for _ in range(self._options.tasks)]
        source = self._options.open(seen_before=False)
        try:
            start = {**source.earliest_offsets(), **(self._options.starting_offsets or {})}
            todo = ranges(start, source.end_offsets())
        finally:
            source.close()
        return [RangesPartition(one) for one in pack(todo, self._options.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Packed change rows of the task's ranges."""
        assert isinstance(partition, RangesPartition)
        if self._options.warms_up:
            load_reader(self._options.address)
            return iter(())
        return packed(read_ranges(self._options, partition.todo))


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader; offsets are JSON objects of log partition → next offset."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._source: LogSource | None = None
        self._target: Position | None = None

    @property
    def _log(self) -> "LogSource":
        if self._source is None:
            self._source = self._options.open(seen_before=False)
        return self._source

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The next offsets of the tables, or the earliest offsets of the log."""
        return Position({**self._log.earliest_offsets(), **(self._options.starting_offsets or {})}).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`maxRecordsPerBatch` as Spark's read limit."""
        return ReadAllAvailable() if self._options.max_records is None else ReadMaxRows(self._options.max_records)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the log for this run."""
        self._target = self._end()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the log, or a lower position within `limit`.

        Raises:
            LogTruncated: the log ends before `start`, was truncated below it since, or has a lower leader epoch.
        """
        begin = Position.from_json(start)
        end = self._stable_end(begin)
        for partition in end.shorter_than(begin):
            raise short_log_error(self._options.address, partition, begin.offsets[partition], end.offsets[partition])
        for partition in end.older_than(begin):
            raise old_epoch_error(self._options.address, partition, begin.epochs[partition], end.epochs[partition])
        for partition, end_offset in self._log.truncated_partitions(begin.known_epochs()).items():
            raise truncated_log_error(self._options.address, partition, begin.offsets[partition], end_offset)
        offsets = {**begin.offsets, **end.offsets}
        if isinstance(limit, ReadMaxRows):
            offsets = admit(begin.offsets, offsets, limit.max_rows)
        return Position(offsets, end.epochs).to_json()

    def _end(self) -> Position:
        return Position(self._log.end_offsets(), self._log.leader_epochs())

    def _stable_end(self, begin: Position) -> Position:
        """The end of the log, requested up to ten times more while it is before `begin`.

        A new leader may not know the high watermark yet (before KIP-207), and a broker that is cut off from the others may not
        know the new leader yet. Reopening the log also checks the topic id.
        """
        end = self._target or self._end()
        checks = 0
        while checks < _CHECKS and (end.shorter_than(begin) or end.older_than(begin)):
            time.sleep(_CHECK_EVERY_SECONDS)
            self.stop()
            self._source = self._options.open(seen_before=True)
            end = self._end()
            checks += 1
        if self._target is not None:
            self._target = end
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[RangesPartition]:
        """The ranges between two offsets of the stream, packed into tasks."""
        todo = ranges(Position.from_json(start).offsets, Position.from_json(end).offsets)
        return [RangesPartition(one) for one in pack(todo, self._options.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Packed change rows of the task's ranges."""
        assert isinstance(partition, RangesPartition)
        return packed(read_ranges(self._options, partition.todo))

    def stop(self) -> None:
        """Close the log."""
        if self._source is not None:
            self._source.close()


def read_ranges(options: SourceOptions, todo: list[LogRange]) -> Iterator[pa.RecordBatch]:
    """Read and reduce ranges, and yield the change rows of each range once it is complete."""
    # Spark starts processes only for the schema or for offsets: they do not load compiled code
    from coordinator_core.reduction.range_reduction import RangeReducer
    from pipelines.source.reduction_rows import change_rows

    era = Era.named(options.era)
    reducers = {one.partition: RangeReducer(era, one.partition) for one in todo}
    waiting = {one.partition: one for one in todo}
    source = options.open(seen_before=True)
    try:
        for partition, columns in source.read_many({one.partition: (one.start, one.end) for one in todo}):
            if partition not in waiting:
                continue
            reducers[partition].add(columns)
            failpoint("source:read")
            if columns.next_offset >= waiting[partition].end:
                one = waiting.pop(partition)
                yield from change_rows(reducers.pop(partition).finish(), one.start, one.end, era, options.retention_ms)
        # compaction may have removed the last records of a range
        for partition, one in waiting.items():
            yield from change_rows(reducers[partition].finish(), one.start, one.end, era, options.retention_ms)
    finally:
        source.close()
