"""Groups whose shown values differ between two snapshots."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health.sample_columns import integers
from pipelines.query.snapshots.grouped_table import GroupedTable
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot

_GROUP = "group_id"
_STATUS = ("status", "rule", "detail")
_LAG_NUMBERS = ("partition", "group_offset", "latest_offset", "lag", "lag_seconds")


def changed_groups(old: MemorySnapshot, new: MemorySnapshot) -> frozenset[str]:
    """Names of the groups with other records, members, positions, lags, ages or statuses, and of those that are new or gone.

    Ages of groups that are behind grow, so such a group changes with every sample.
    """
    return frozenset(name for names in _changes(old, new) for name in names.to_pylist())


def _changes(old: MemorySnapshot, new: MemorySnapshot) -> Iterator[pa.Array]:
    for before, after in ((old.groups, new.groups), (old.members, new.members)):
        if after is not before:
            yield after.table[_GROUP].filter(pc.greater(after.table["batch_id"], old.batch.batch_id)).unique()
            yield from _only_in_one(before, after)
    if new.lag is not old.lag:
        yield from _only_in_one(old.lag, new.lag)
        yield _other_digests(old.lag, new.lag)
    if new.group_status is not None and new.group_status is not old.group_status:
        yield _other_statuses(old.group_status, new.group_status)


def _only_in_one(old: GroupedTable, new: GroupedTable) -> Iterator[pa.Array]:
    yield new.groups.filter(pc.invert(pc.is_in(new.groups, old.groups)))
    yield old.groups.filter(pc.invert(pc.is_in(old.groups, new.groups)))


def _other_digests(old: GroupedTable, new: GroupedTable) -> pa.Array:
    """Groups of both with another sum of the digests of their rows."""
    row = pc.fill_null(pc.index_in(new.groups, old.groups), len(old)).to_numpy()
    before = np.append(_digests(old), 0)[row]
    return new.groups.filter(pa.array((row < len(old)) & (before != _digests(new))))


def _digests(lag: GroupedTable) -> Int64s:
    digest = np.zeros(lag.table.num_rows, np.uint64)
    for name in _LAG_NUMBERS:
        column = lag.table[name]
        if pa.types.is_floating(column.type):
            column = pc.round(pc.multiply(column, 1000)).cast(pa.int64())
        digest = (digest ^ integers(column).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        digest ^= digest >> np.uint64(29)
    totals: Int64s = np.add.reduceat(digest, lag.starts[:-1]).view(np.int64) if len(lag) else np.zeros(0, np.int64)
    return totals


def _other_statuses(old: GroupedTable | None, new: GroupedTable) -> pa.Array:
    if old is None:
        return new.groups
    before = old.table.select(_STATUS).take(pc.index_in(new.table[_GROUP], old.groups))
    is_same = pa.array(np.full(new.table.num_rows, True))
    for name in _STATUS:
        # an absent row and a null rule compare as an empty text, which no status is
        is_same = pc.and_(is_same, pc.equal(pc.fill_null(before[name], ""), pc.fill_null(new.table[name], "")))
    return new.table[_GROUP].filter(pc.invert(is_same)).unique()
