"""Reading of the log: the options of a read, and change rows of ranges. Used by the tasks of Spark and by the driver."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa

from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.state.era import Era
from pipelines.runtime.failpoints import failpoint
from pipelines.source.address import SourceAddress, open_source, parse_address
from pipelines.source.position import Position
from pipelines.source.ranges import LogRange

if TYPE_CHECKING:
    from coordinator_core.sources.source import LogSource

KAFKA_PREFIX = "kafka."
WARM_UP = "warmUp"


@dataclass(frozen=True)
class SourceOptions:
    """The parsed options of the source; sent to the tasks."""

    address: SourceAddress
    era: str
    retention_ms: int
    kafka: Mapping[str, str] = field(repr=False)
    tasks: int = 1
    max_records: int | None = None
    start: Position | None = None
    topic_id: UUID | None = None
    warms_up: bool = False

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
            start=None if starting is None else Position.from_json(json.loads(starting)),
            topic_id=uuid_from_text(topic_id) if topic_id else None,
            warms_up=given.get(WARM_UP.lower()) == "true",
            kafka={name[len(KAFKA_PREFIX) :]: value for name, value in given.items() if name.startswith(KAFKA_PREFIX)},
        )

    def open(self, *, seen_before: bool) -> "LogSource":
        """Open the log. A known topic id implies `seen_before`."""
        return open_source(self.address, self.kafka, self.topic_id, seen_before=seen_before or self.topic_id is not None)


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
                yield from change_rows(reducers.pop(partition).finish(), one.start, one.end, era, options.retention_ms, one.asked)
        # compaction may have removed the last records of a range
        for partition, one in waiting.items():
            yield from change_rows(reducers[partition].finish(), one.start, one.end, era, options.retention_ms, one.asked)
    finally:
        source.close()
