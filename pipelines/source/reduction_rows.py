"""Conversion of a reduced range to change rows."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.log.damage import Damage
from coordinator_core.reduction.membership_rows import MEMBERSHIP_COLUMNS, OWNERSHIP_COLUMNS
from coordinator_core.reduction.partition_reduction import Reduction
from coordinator_core.reduction.range_reduction import RangeReduction
from coordinator_core.state.era import Era
from pipelines.runtime.time_columns import times_after, times_of
from pipelines.source.changes import ChangeKind, rows
from pipelines.source.ranges import AskedEnd

_KEY = ("group_id", "topic", "partition")
_HISTORY = ("commits", "min_offset", "first_offset", "rewound")
_RECORD = ("log_offset", "producer_id", "key", "value")
_CHANGE = ("log_offset", "group_id", "change", "member_id", "group_type", "state", "generation", "detail")
_MEMBERSHIP = ("log_offset", *(name for name in MEMBERSHIP_COLUMNS if name != "state_timestamp"))
_OWNERSHIP = ("log_offset", *OWNERSHIP_COLUMNS)
_GROUP_ACTIVITY = ("group_id", "last_value_offset", "last_tombstone_offset", "upserts", "pendings", "removals")


def change_rows(
    reduced: RangeReduction,
    start: int | None,
    end: int,
    era: Era,
    retention_ms: int,
    asked: AskedEnd | None = None,
    partitions: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the change rows of the range from `start` (None: unknown) up to `end`, with the `range` row last.

    `asked` is the end of the log partition that `end` was chosen from, `partitions` the number of partitions of the topic; None
    if unknown.
    """
    reduction, groups = reduced.offsets, reduced.groups
    is_state_only = groups.records["state_only"]
    parts = [
        (ChangeKind.COMMIT, _commits(reduction.commits, _HISTORY, era, retention_ms)),
        (ChangeKind.TOMBSTONE, _columns(reduction.tombstones, (*_KEY, "log_offset", *_HISTORY)) | _time(reduction.tombstones)),
        (ChangeKind.PENDING, _commits(reduction.pending, (), era, retention_ms)),
        (ChangeKind.PENDING_TOMBSTONE, _columns(reduction.pending_tombstones, ("producer_id", *_KEY, "log_offset"))),
        (
            ChangeKind.MARKER,
            _columns(reduction.markers, ("producer_id", "log_offset")) | _time(reduction.markers) | _marker_type(reduction),
        ),
        (ChangeKind.GROUP_ACTIVITY, _columns(reduction.group_activity, _GROUP_ACTIVITY)),
        (ChangeKind.RECORD, _records(groups.records.filter(pc.invert(is_state_only)))),
        (ChangeKind.STATE_ONLY, _records(groups.records.filter(is_state_only))),
        (ChangeKind.GROUP_CHANGE, _columns(groups.changes, _CHANGE) | _time(groups.changes)),
        (
            ChangeKind.MEMBERSHIP,
            _columns(groups.membership, _MEMBERSHIP) | _time(groups.membership) | _state_time(groups.membership),
        ),
        (ChangeKind.OWNERSHIP, _columns(groups.ownership, _OWNERSHIP) | _time(groups.ownership)),
        (ChangeKind.TOPIC_ID, _columns(reduction.topic_ids, ("topic_id", "topic"))),
        (ChangeKind.DAMAGE, _damages(reduction.damages)),
        (ChangeKind.DAMAGE, _odd_markers(reduced.odd_markers, era)),
        (ChangeKind.RANGE, _range(reduced, start, end, asked, asked.partitions if asked else partitions)),
    ]
    for kind, columns in parts:
        if len(next(iter(columns.values()))):
            yield rows(kind, reduction.partition, columns)


def _columns(table: pa.Table, names: tuple[str, ...]) -> dict[str, pa.Array]:
    return {name: table[name].combine_chunks() for name in names}


def _time(table: pa.Table) -> dict[str, pa.Array]:
    return {"record_timestamp": times_of(table["record_timestamp"].combine_chunks())}


def _state_time(membership: pa.Table) -> dict[str, pa.Array]:
    return {"state_timestamp": times_of(membership["state_timestamp"].combine_chunks())}


def _marker_type(reduction: Reduction) -> dict[str, pa.Array]:
    return {"detail": reduction.markers["type"].combine_chunks()}


def _commits(table: pa.Table, history: tuple[str, ...], era: Era, retention_ms: int) -> dict[str, pa.Array]:
    columns = _columns(table, (*_KEY, "committed_offset", "metadata", "topic_id", "producer_id", "log_offset", *history))
    epochs = table["leader_epoch"].combine_chunks()
    known = pc.and_(pc.not_equal(epochs, -1), pc.greater_equal(epochs, era.lowest_leader_epoch))
    expires, committed = table["expire_timestamp"].combine_chunks(), table["commit_timestamp"].combine_chunks()
    if era.expiry_defaults_at_load:
        expires = pc.if_else(pc.equal(expires, -1), times_after(committed, retention_ms), expires)
    return {
        **columns,
        **_time(table),
        "leader_epoch": pc.if_else(known, epochs, pa.scalar(None, pa.int32())),
        "commit_timestamp": times_of(committed),
        "expire_timestamp": times_of(expires),
    }


def _records(records: pa.Table) -> dict[str, pa.Array]:
    return _columns(records, _RECORD) | _time(records)


def _damages(damages: tuple[Damage, ...]) -> dict[str, pa.Array]:
    return {
        "log_offset": pa.array([damage.offset for damage in damages], pa.int64()),
        "detail": pa.array([damage.reason for damage in damages], pa.string()),
    }


def _odd_markers(odd: pa.Table, era: Era) -> dict[str, pa.Array]:
    """Control records without effect: too short for a type, or in an era without transactions."""
    problem = (
        "control record without a readable type" if era.knows_transactions else f"control record, not supported by era {era.name}"
    )
    reasons = pa.repeat(pa.scalar(problem), odd.num_rows)
    return _columns(odd, _RECORD) | _time(odd) | {"detail": reasons}


def _range(
    reduced: RangeReduction, start: int | None, end: int, asked: AskedEnd | None, partitions: int | None
) -> dict[str, pa.Array]:
    reduction = reduced.offsets
    kept = (reduction.commits, reduction.tombstones, reduction.pending, reduced.groups.records, reduced.odd_markers)
    values = {
        "start_offset": start,
        "next_offset": end,
        "records_read": reduction.records_read,
        "commits": sum(map(len, kept)),
        "log_offset": end - 1,
        "log_end": asked.offset if asked else None,
        "log_partitions": partitions,
    }
    times = {"record_timestamp": reduced.last_timestamp_ms, "asked_at": asked.asked_at_ms if asked else None}
    return {name: pa.array([value], pa.int64()) for name, value in values.items()} | {
        name: times_of(pa.array([-1 if ms is None else ms], pa.int64())) for name, ms in times.items()
    }
