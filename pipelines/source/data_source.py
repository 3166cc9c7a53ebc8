"""The Python Data Source `consumer_offsets`: packed change rows of a `__consumer_offsets` log, in batch and as a stream.

    spark.dataSource.register(ConsumerOffsetsDataSource)
    spark.readStream.format("consumer_offsets").option("era", "4").load("kafka://broker:9092/__consumer_offsets")

Options:
    path             source address (the argument of `load`)
    era              era of the rules, default 4
    retentionMs      offset retention, for eras whose loader fills in the expiry
    tasks            number of tasks, default the cores of the machine
    maxRecordsPerBatch  limit of a micro-batch, default none
    startingOffsets  JSON of log partition → offset, and of leader epochs; default the earliest
    topicId          required id of the topic, default any
    warmUp           true: an empty batch read, which starts the Python processes of a read
    kafka.*          connection options of `coordinator_core.sources.kafka`; they never appear in messages
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pipelines.source.address import load_reader
from pipelines.source.changes import PACKED_DDL, packed
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.log_stream import LogStream
from pipelines.source.position import Position
from pipelines.source.ranges import LogRange, admit, pack, ranges
from pipelines.source.worker_log import mark_warnings


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
        mark_warnings()
        return LogReader(SourceOptions.parse(self.options))

    def streamReader(self, schema: StructType) -> "LogStreamReader":  # noqa: ARG002, N802
        """Create the reader of the stream."""
        mark_warnings()
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
            given = self._options.start.offsets if self._options.start else {}
            start = {**source.earliest_offsets(), **given}
            todo = ranges(start, source.end_offsets())
        finally:
            source.close()
        return [RangesPartition(one) for one in pack(todo, self._options.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Packed change rows of the task's ranges."""
        assert isinstance(partition, RangesPartition)
        mark_warnings()
        if self._options.warms_up:
            load_reader(self._options.address)
            return iter(())
        return packed(read_ranges(self._options, partition.todo))


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader; offsets are JSON objects of log partition → next offset."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._stream = LogStream(options)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The position of the tables, or the earliest offsets of the log."""
        return self._stream.start().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`maxRecordsPerBatch` as Spark's read limit."""
        return ReadAllAvailable() if self._options.max_records is None else ReadMaxRows(self._options.max_records)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the log for this run."""
        self._stream.fix_end()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the log, or a lower position within `limit`.

        Raises:
            LogTruncated: the log does not continue at `start`.
        """
        begin = Position.from_json(start)
        end = self._stream.end_after(begin)
        if isinstance(limit, ReadMaxRows):
            end = Position(admit(begin.offsets, end.offsets, limit.max_rows), end.epochs)
        return end.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[RangesPartition]:
        """The ranges between two offsets of the stream, packed into tasks."""
        until = Position.from_json(end)
        todo = ranges(Position.from_json(start).offsets, until.offsets, self._stream.ends_up_to(until))
        return [RangesPartition(one) for one in pack(todo, self._options.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Packed change rows of the task's ranges."""
        assert isinstance(partition, RangesPartition)
        mark_warnings()
        return packed(read_ranges(self._options, partition.todo))

    def stop(self) -> None:
        """Close the log."""
        self._stream.close()
