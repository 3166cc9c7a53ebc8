"""Further commits for a log from which tables of a `TablesShape` were made, as segments or as change rows."""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.large_tables import ERA, PARTITIONS_PER_TOPIC, PER_GROUP, TablesShape, group_name, topic_names
from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.columns import parse_columns
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.reduction.range_reduction import RangeReducer
from pipelines.source.changes import SCHEMA
from pipelines.source.reduction_rows import change_rows


class Changes:
    """Rounds of commits for randomly chosen groups; equal seeds give equal rounds."""

    def __init__(self, shape: TablesShape, seed: int = 1) -> None:
        self._shape = shape
        self._random = np.random.default_rng(seed)
        self._next = dict(shape.next_offsets)
        self._round = itertools.count(1)

    @property
    def next_offsets(self) -> dict[int, int]:
        """Current end offsets of the log."""
        return dict(self._next)

    def go_on(self, next_offsets: Mapping[int, int]) -> None:
        """Continue at the end of a log that has grown meanwhile."""
        self._next = dict(next_offsets)

    def round(self, groups: int, offsets: int, now_ms: int) -> dict[int, bytes]:
        """The next round, as log partition → record batch: `offsets` commits, spread evenly over `groups` groups."""
        chosen = self._random.choice(self._shape.groups, min(groups, self._shape.groups), replace=False)
        per_group, committed = max(1, offsets // len(chosen)), next(self._round)
        records = defaultdict(list)
        for group in chosen.tolist():
            for number in range(min(per_group, PER_GROUP)):
                key = OffsetCommitKey(
                    group_name(group), topic_names(group)[number // PARTITIONS_PER_TOPIC], number % PARTITIONS_PER_TOPIC
                )
                value = OffsetCommitValue(10_000_000 + committed, 0, "", now_ms)
                records[int(self._shape.log_partitions[group])].append(encode(Record(1, key, value, 3)))
        return {partition: self._batch(partition, pairs, now_ms) for partition, pairs in records.items()}

    def _batch(self, partition: int, pairs: Sequence[tuple[bytes, bytes | None]], now_ms: int) -> bytes:
        first = self._next[partition]
        self._next[partition] = first + len(pairs)
        return write_batch([BatchRecord(first + number, now_ms, key, value) for number, (key, value) in enumerate(pairs)])


class GrowingLog:
    """A folder of segments that starts at the position of the tables."""

    def __init__(self, folder: Path, next_offsets: dict[int, int]) -> None:
        self.folder = folder
        self._segments = {
            partition: folder / f"__consumer_offsets-{partition}" / f"{offset:020}.log"
            for partition, offset in next_offsets.items()
        }
        for segment in self._segments.values():
            segment.parent.mkdir(parents=True)
            segment.touch()

    def append(self, batches: dict[int, bytes]) -> None:
        """Append batches to their partitions."""
        for partition, data in batches.items():
            with self._segments[partition].open("ab") as file:
                file.write(data)


def as_change_rows(batches: dict[int, bytes], start: dict[int, int]) -> pa.Table:
    """The change rows that tasks would make from the batches; `start` has the end offsets before them."""
    rows: list[pa.RecordBatch] = []
    for partition, data in batches.items():
        columns = parse_columns(data)
        reducer = RangeReducer(ERA, partition)
        reducer.add(columns)
        rows += change_rows(reducer.finish(), start[partition], columns.next_offset, ERA, ERA.default_retention_ms)
    return pa.Table.from_batches(rows, SCHEMA)
