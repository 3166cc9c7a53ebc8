"""The samples of end offsets that the tables have, and those of this process that they do not need."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import ArrowColumn, Int64s
from coordinator_core.health.sample_columns import NONE, integers
from coordinator_core.health.sample_tables import END_OFFSETS_SCHEMA
from pipelines.lag.sampling.sample_pruning import pruned_samples

#: A run of equal samples is stored at its ends, and at least this often: a restart loses no more than this of its end.
_STORED_EVERY_MS = 600_000

#: Samples in memory above which those that are not needed are forgotten.
PRUNE_ABOVE = 2_000_000

#: All columns except the key and the times: a run without change has equal values.
_VALUES = ("topic_id", "log_start", "log_end", "last_stable", "leader_epoch", "reason")


class SampleHistory:
    """Stored samples, and for each partition the newest sample of an unfinished run of equal ones."""

    def __init__(self, stored: pa.Table) -> None:
        """`stored` has the columns of `end_offsets`, in any order."""
        self._stored = stored.select(END_OFFSETS_SCHEMA.names)
        self._prune_above = PRUNE_ABOVE
        #: Numbers of the texts that samples have had.
        self._numbers: dict[str | None, int] = {None: NONE}
        self._last_stored = _Newest(END_OFFSETS_SCHEMA.empty_table(), self._columns(END_OFFSETS_SCHEMA.empty_table()))
        self._unfinished = self._last_stored

    def add(self, samples: pa.Table) -> pa.Table:
        """Add the newest sample of each partition. Returns the rows to store, oldest first per partition."""
        columns = self._columns(samples)
        last = self._last_stored.rows_of(columns.key)
        known = last >= 0
        same = known.copy()
        same[known] = (columns.values[:, known] == self._last_stored.columns.values[:, last[known]]).all(axis=0)
        recent = same.copy()
        recent[same] = columns.answered_ms[same] - self._last_stored.columns.answered_ms[last[same]] < _STORED_EVERY_MS
        unfinished = self._unfinished.rows_of(columns.key)
        ends = self._unfinished.table.take(pa.array(unfinished[~same & (unfinished >= 0)]))
        stored = pa.concat_tables([ends, samples.filter(pa.array(~recent))])
        # a partition that was not sampled this time keeps its samples
        self._unfinished = self._newest(self._unfinished.without(columns.key), samples.filter(pa.array(recent)))
        self._last_stored = self._newest(self._last_stored.without(columns.key[~recent]), samples.filter(pa.array(~recent)))
        self._stored = pa.concat_tables([self._stored, stored])
        return stored

    def table(self) -> pa.Table:
        """All samples, folded: for each run of equal samples its first and its last one."""
        return pa.concat_tables([self._stored, self._unfinished.table])

    def prune(self, positions: pa.Table, now_ms: int) -> None:
        """Forget samples that the lag of `positions` does not need, once they are many."""
        if self._stored.num_rows > self._prune_above:
            self._stored = pruned_samples(self._stored, positions, now_ms)
            self._prune_above = max(PRUNE_ABOVE, 2 * self._stored.num_rows)

    def _newest(self, *parts: pa.Table) -> "_Newest":
        table = pa.concat_tables(parts)
        return _Newest(table, self._columns(table))

    def _columns(self, samples: pa.Table) -> "_Columns":
        key = (self._encoded(samples["topic"]) << 32) | (integers(samples["partition"]) & 0xFFFF_FFFF)
        is_text = {field.name: pa.types.is_string(field.type) for field in END_OFFSETS_SCHEMA}
        values = [self._encoded(samples[name]) if is_text[name] else integers(samples[name]) for name in _VALUES]
        return _Columns(key, integers(samples["answered_at"]) // 1000, np.stack(values))

    def _encoded(self, column: ArrowColumn) -> Int64s:
        """Numbers of texts, equal in all samples."""
        encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
        numbers = [self._numbers.setdefault(text, len(self._numbers)) for text in encoded.dictionary.to_pylist()]
        return np.array(numbers, np.int64)[integers(encoded.indices)]


class _Columns:
    """Samples in numbers: the key, the time, and a row per value column."""

    def __init__(self, key: Int64s, answered_ms: Int64s, values: Int64s) -> None:
        self.key = key
        self.answered_ms = answered_ms
        self.values = values


class _Newest:
    """One sample per partition, found by key."""

    def __init__(self, table: pa.Table, columns: _Columns) -> None:
        self.table = table
        self.columns = columns
        self._order = np.argsort(columns.key)

    def rows_of(self, keys: Int64s) -> Int64s:
        """The row of each key; -1 for none."""
        if not len(self._order):
            return np.full(len(keys), -1)
        at = np.searchsorted(self.columns.key, keys, sorter=self._order)
        rows: Int64s = self._order[np.minimum(at, len(self._order) - 1)]
        return np.where(self.columns.key[rows] == keys, rows, -1)

    def without(self, keys: Int64s) -> pa.Table:
        """The samples of all other keys."""
        return self.table.filter(pa.array(~np.isin(self.columns.key, keys)))
