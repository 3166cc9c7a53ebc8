"""End offset samples as an Arrow table, and from such a table the columns that `lag_columns` needs."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import ArrowArray, ArrowColumn, Int64s
from coordinator_core.codec.runs import starts_of_runs
from coordinator_core.health.end_offsets import EndOffsetSample
from coordinator_core.health.partition_lag import LagReason
from coordinator_core.health.sample_columns import NONE, SampleColumns, integers

_TIME = pa.timestamp("us", tz="UTC")
END_OFFSETS_SCHEMA = pa.schema(
    {
        "topic_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "asked_at": _TIME,
        "answered_at": _TIME,
        "log_start": pa.int64(),
        "log_end": pa.int64(),
        "last_stable": pa.int64(),
        "leader_epoch": pa.int32(),
        "reason": pa.string(),
    }
)
#: Number of a topic id that no sample has: unequal to all others, and not missing.
_UNSAMPLED_ID = -1
#: A sample requests all partitions within this time, so a topic that had others so recently exists.
SAME_SAMPLE_MS = 60_000
#: Kafka's answer for a topic that does not exist, and for a partition that a topic does not have.
_UNKNOWN_TOPIC_OR_PARTITION = "unknown_topic_or_partition"


def samples_table(samples: Iterable[EndOffsetSample]) -> pa.Table:
    """A table with the columns of `END_OFFSETS_SCHEMA`, in the given order."""
    rows = [
        {
            "topic_id": s.topic_id,
            "topic": s.topic,
            "partition": s.partition,
            "asked_at": s.asked_at_ms * 1000,
            "answered_at": s.answered_at_ms * 1000,
            "log_start": s.log_start,
            "log_end": s.log_end,
            "last_stable": s.last_stable,
            "leader_epoch": s.leader_epoch,
            "reason": s.reason,
        }
        for s in samples
    ]
    return pa.Table.from_pylist(rows, schema=END_OFFSETS_SCHEMA)


class SampledPartitions:
    """The partitions of a table of samples, numbered, and its rows as `SampleColumns`.

    The order of the rows does not matter. A table sorted by topic, partition and time needs no sorting.
    """

    def __init__(self, table: pa.Table) -> None:
        topics, self._topics = _encoded(table["topic"])
        topic_ids, self._topic_ids = _encoded(table["topic_id"])
        reasons, reason_names = _encoded(table["reason"])
        key = _keys(topics, table["partition"])
        asked, answered = (integers(table[name].cast(pa.int64())) // 1000 for name in ("asked_at", "answered_at"))
        order = _sorted(key, answered)
        starts = starts_of_runs(key[order])
        self._keys: Int64s = key[order][starts[:-1]]
        columns = SampleColumns(
            starts=starts,
            asked_at_ms=asked[order],
            answered_at_ms=answered[order],
            log_start=integers(table["log_start"])[order],
            log_end=integers(table["log_end"])[order],
            last_stable=integers(table["last_stable"])[order],
            leader_epoch=integers(table["leader_epoch"])[order],
            topic_id=topic_ids[order],
            reason=reasons[order],
            reasons=tuple(reason_names.to_pylist()),
        )
        self.columns = _with_missing_partitions(columns, self.topic_of_partition)

    @property
    def topics(self) -> list[str]:
        """Names of the sampled topics."""
        names: list[str] = self._topics.to_pylist()
        return names

    @property
    def topic_of_partition(self) -> Int64s:
        """Index into `topics` of each partition in `columns`."""
        return self._keys >> 32

    @property
    def partitions(self) -> Int64s:
        """Kafka's number of each partition in `columns`, within its topic."""
        return self._keys & 0xFFFF_FFFF

    def partition_numbers(self, topic: ArrowColumn, partition: ArrowColumn) -> Int64s:
        """The number of each partition in `columns`; -1 for a partition without samples."""
        topics = _indices(topic, self._topics, -1)
        key = _keys(topics, partition)
        if not len(self._keys):
            return np.full(len(key), -1)
        number = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[number] == key, number, -1)

    def topic_id_numbers(self, topic_id: ArrowColumn) -> Int64s:
        """The numbers of topic ids in `columns`, for `CommitColumns`."""
        return np.where(topic_id.is_null().to_numpy(), NONE, _indices(topic_id, self._topic_ids, _UNSAMPLED_ID))


def _keys(topics: Int64s, partition: ArrowColumn) -> Int64s:
    """A number for each pair of topic and partition. A commit may name any partition of 32 bits, also a negative one."""
    keys: Int64s = (topics << 32) | (integers(partition) & 0xFFFF_FFFF)
    return keys


def _with_missing_partitions(columns: SampleColumns, topic_of_partition: Int64s) -> SampleColumns:
    """The columns with the reason `unknown_partition` for partitions that a topic lacks which has others at that time."""
    if _UNKNOWN_TOPIC_OR_PARTITION not in columns.reasons:
        return columns
    newest, answered = columns.newest, columns.answered_at_ms[columns.newest]
    is_unknown = columns.reason[newest] == columns.reasons.index(_UNKNOWN_TOPIC_OR_PARTITION)
    known = columns.log_end[newest] != NONE
    seen_ms = np.full(int(topic_of_partition.max()) + 1, NONE)
    np.maximum.at(seen_ms, topic_of_partition[known], answered[known])
    exists = seen_ms[topic_of_partition] >= answered - SAME_SAMPLE_MS
    reason = columns.reason.copy()
    reason[newest[is_unknown & exists]] = len(columns.reasons)
    return replace(columns, reason=reason, reasons=(*columns.reasons, LagReason.UNKNOWN_PARTITION))


def _sorted(key: Int64s, answered: Int64s) -> Int64s:
    """Order of the rows by key and time; rows of the same key and time keep theirs."""
    follows = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & (answered[1:] >= answered[:-1]))
    return np.arange(len(key)) if follows.all() else np.lexsort((answered, key))


def _encoded(column: ArrowColumn) -> tuple[Int64s, ArrowArray]:
    """Numbers of the texts, NONE for null, and the texts by number."""
    encoded = column.combine_chunks().dictionary_encode()
    return integers(encoded.indices), encoded.dictionary


def _indices(column: ArrowColumn, values: ArrowArray, absent: int) -> Int64s:
    return integers(pc.index_in(column, value_set=values).fill_null(absent))
