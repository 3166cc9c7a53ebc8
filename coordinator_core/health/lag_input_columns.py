"""What the lag of many groups and partitions is computed from, besides samples: commits, and facts about topics. Times in ms."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health.sample_columns import NONE


@dataclass(frozen=True, slots=True)
class FactColumns:
    """Properties of topics, by partition; NONE for unknown.

    - `transactional`: 1 for a topic that has had transactions, so that it may hold markers; 0 for others.
    - `compacted`: 1 if `cleanup.policy` contains `compact`.
    - `retention_ms`: age at which records are deleted, UNLIMITED for never (see `TopicSettings`).
    - `size_limited`: 1 if `retention.bytes` limits the log; None for unknown throughout.
    """

    transactional: Int64s
    compacted: Int64s
    retention_ms: Int64s
    size_limited: Int64s | None = None

    @classmethod
    def unknown(cls, partitions: int) -> Self:
        """No facts about any partition."""
        return cls(*(np.full(partitions, NONE) for _ in fields(cls)))

    def of(self, partition: Int64s) -> Iterator[Int64s]:
        """The facts about these partitions, field by field."""
        for each in fields(self):
            values: Int64s | None = getattr(self, each.name)
            yield np.full(len(partition), NONE) if values is None else values[partition]


@dataclass(frozen=True, slots=True)
class CommitColumns:
    """One row per group and partition: the committed offset, and what is known of the records after it.

    `committed_at_ms` is the time of the commit on the coordinator, `moved_at_ms` that of the commit that moved the offset to its
    value, `topic_id` the number of the id in the commit (value version 4). `pending_offset` is the greatest offset that an open
    transaction holds for the row. All commits before `read_until_ms` are counted; while it is unknown, no loss is proven.

    `partition` is an index into the partitions of `SampleColumns`; -1 for a partition without samples. A row without a commit has
    offset NONE. `counted_*` and `append_*` are the fields of `RecordCount` and `AppendTime`; NONE in `counted_to` and
    `append_offset` means that the row has none. Columns that are left out are NONE throughout.
    """

    partition: Int64s
    offset: Int64s
    committed_at_ms: Int64s | None = None
    topic_id: Int64s | None = None
    moved_at_ms: Int64s | None = None
    counted_from: Int64s | None = None
    counted_to: Int64s | None = None
    counted_records: Int64s | None = None
    counted_first: Int64s | None = None
    append_offset: Int64s | None = None
    append_from_ms: Int64s | None = None
    append_until_ms: Int64s | None = None
    pending_offset: Int64s | None = None
    read_until_ms: Int64s | None = None

    def column(self, name: str) -> Int64s:
        """A column by name, NONE throughout if it was left out."""
        values: Int64s | None = getattr(self, name)
        return np.full(len(self.offset), NONE) if values is None else values
