"""Plan of the writes of `offsets`, `pending_offsets` and `offset_history`.

A task does not know the tables before its range. Two decisions that need them are made here: the outcome of transactional commits
of earlier batches whose marker is in this batch, and whether a commit is a rewind, to a lower offset than the previous one.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.batch.context import BatchContext
from pipelines.source.changes import ChangeKind, of_kind
from pipelines.tables import definitions
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, source_names, source_schema

KEY = ("group_id", "topic", "partition")
_VALUE = ("committed_offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id", "producer_id")
_POSITION = ("log_partition", "log_offset", "record_timestamp")
_OPERATION = (
    *("committed_offset", "leader_epoch", "metadata", "commit_timestamp", "producer_id"),
    *("commits", "min_offset", "first_offset", "rewound"),
)
#: Change in the histories: a record in a log partition that does not speak for its group. It decides nothing.
ELSEWHERE = "elsewhere"

_EFFECTIVE = pa.field(EFFECTIVE_OFFSET, pa.int64())
_Row = dict[str, Any]


@dataclass(frozen=True)
class PendingPlan:
    """Outcome of pending commits: those that a marker of this batch commits, and the rows of `pending_offsets`."""

    #: Pending commits from before the batch that take effect in it: columns of `offsets` and `_effective_offset`.
    resolved: pa.Table
    #: Rows to merge into `pending_offsets`.
    writes: pa.Table


def plan_pending(changes: pa.Table, context: BatchContext) -> PendingPlan:
    """Resolve pending commits of earlier batches with the markers and tombstones of this batch.

    Follows `GroupMetadata.completePendingTxnOffsetCommit` (Scala) and `OffsetMetadataManager.replayEndTransactionMarker`
    (Java): a COMMIT marker applies the producer's pending commits, unless a newer offset is committed, which the merge decides by
    comparing `log_offset`.
    """
    opened = of_kind(changes, ChangeKind.PENDING)
    previous = _previous_pending(changes, context)
    # a transaction has a marker in every log partition that it wrote to, which ends it in this partition only
    markers = {(row["log_partition"], row["producer_id"]): row for row in of_kind(changes, ChangeKind.MARKER).to_pylist()}
    # usually no commits are pending before the batch: then the tombstones, which may be many, are not needed
    wiped = {_pending_key(row): row for row in _rows(changes, ChangeKind.PENDING_TOMBSTONE, bool(previous))}
    removed = {_key(row): row["log_offset"] for row in _rows(changes, ChangeKind.TOMBSTONE, bool(previous))}
    reopened = {_pending_key(row) for row in opened.select(["producer_id", *KEY]).to_pylist()}
    resolved, gone = [], []
    for row in previous:
        marker = markers.get((row["log_partition"], row["producer_id"]))
        tombstone = wiped.get(_pending_key(row)) or wiped.get((None, *_key(row)))
        # the tombstone removes the pending commit only before the end of the transaction; its effect on the committed offset
        # is in `removed` in both cases
        if tombstone and (marker is None or tombstone["log_offset"] < marker["log_offset"]):
            gone.append((row, tombstone))
        elif marker:
            gone.append((row, marker))
            removed_at = removed.get(_key(row), -1)
            if marker["detail"] == "COMMIT" and removed_at < marker["log_offset"]:
                # a tombstone in between removed the earlier commits, which therefore cannot supersede this one
                resolved.append({**row, EFFECTIVE_OFFSET: max(removed_at, row["log_offset"])})
    resolved = _not_superseded(resolved, context)
    return PendingPlan(
        resolved=pa.Table.from_pylist(resolved, _nullable([*KEY, *_VALUE, *_POSITION]).append(_EFFECTIVE)),
        writes=pa.concat_tables(
            [
                _source_rows(opened.select([*KEY, *_VALUE, *_POSITION]), context.batch_id, deleted=False),
                _deletions([pair for pair in gone if _pending_key(pair[0]) not in reopened], context.batch_id),
            ]
        ).select(source_names("pending_offsets")),
    )


def _rows(changes: pa.Table, kind: ChangeKind, wanted: bool) -> list[_Row]:
    return of_kind(changes, kind).select(["producer_id", *KEY, "log_offset", "record_timestamp"]).to_pylist() if wanted else []


def _not_superseded(resolved: list[_Row], context: BatchContext) -> list[_Row]:
    """Keep the commits without a newer committed offset in the tables before the batch."""
    current = context.previous.rows("offsets", [*KEY, "log_offset"], group_id=[row["group_id"] for row in resolved])
    newest = {_key(row): row["log_offset"] for row in current.to_pylist()}
    return [row for row in resolved if newest.get(_key(row), -1) <= row[EFFECTIVE_OFFSET]]


def _previous_pending(changes: pa.Table, context: BatchContext) -> list[_Row]:
    ends = of_kind(changes, ChangeKind.MARKER)["producer_id"].to_pylist()
    tombstones = of_kind(changes, ChangeKind.PENDING_TOMBSTONE)
    columns = [*KEY, *_VALUE, *_POSITION]
    found = []
    if ends:
        found.append(context.previous.rows("pending_offsets", columns, producer_id=ends))
    if tombstones.num_rows:
        found.append(context.previous.rows("pending_offsets", columns, group_id=tombstones["group_id"].unique().to_pylist()))
    rows = {(row["producer_id"], *_key(row)): row for table in found for row in table.to_pylist()}
    return list(rows.values())


def without_superseded(commits: pa.Table, resolved: pa.Table) -> pa.Table:
    """Remove resolved commits whose key the range commits itself, with a newer offset. `bulk` does the same in Spark."""
    committed = set(zip(*(commits[name].to_pylist() for name in KEY), strict=True)) if resolved.num_rows else set()
    late = [key not in committed for key in zip(*(resolved[name].to_pylist() for name in KEY), strict=True)]
    return resolved.filter(pa.array(late, pa.bool_()))


def offset_rows(commits: pa.Table, tombstones: pa.Table, resolved: pa.Table, batch_id: int) -> pa.Table:
    """Build the source rows of the merge into `offsets`; `resolved` and `commits` have no common keys."""
    resurrected = set(zip(*(resolved[name].to_pylist() for name in KEY), strict=True))
    removed = [key not in resurrected for key in zip(*(tombstones[name].to_pylist() for name in KEY), strict=True)]
    columns = [*KEY, *_VALUE, *_POSITION]
    deletes = tombstones.filter(pa.array(removed, pa.bool_()))
    return pa.concat_tables(
        [
            _source_rows(commits.select(columns), batch_id, deleted=False),
            _source_rows(resolved, batch_id, deleted=False),
            _source_rows(deletes.select(columns), batch_id, deleted=True),
        ]
    ).select(source_names("offsets"))


def history_rows(
    commits: pa.Table, tombstones: pa.Table, resolved: pa.Table, context: BatchContext, elsewhere: pa.Table | None = None
) -> pa.Table:
    """Build the rows of `offset_history`, with the offset before the batch; `resolved` and `commits` have no common keys.

    `elsewhere` are change rows of log partitions that do not speak for their groups.
    """
    operations = pa.concat_tables(
        [
            *([] if elsewhere is None else [_elsewhere_operations(elsewhere)]),
            _operations(commits, "commit"),
            _operations(tombstones, "tombstone"),
            _operations(_as_commits(resolved), "commit"),
        ]
    )
    previous = context.previous.rows(
        "offsets", [*KEY, "committed_offset"], group_id=operations["group_id"].unique().to_pylist()
    ).rename_columns([*KEY, "previous_offset"])
    joined = operations.join(previous, keys=list(KEY), join_type="left outer")
    first_is_lower = pc.fill_null(pc.less(joined["first_offset"], joined["previous_offset"]), False)
    went_back = pc.or_(pc.fill_null(joined["rewound"], False), first_is_lower)
    change = pc.if_else(pc.and_(pc.equal(joined["change"], "commit"), went_back), "rewind", joined["change"])
    joined = joined.set_column(joined.schema.get_field_index("change"), "change", change)
    lowest = pc.if_else(first_is_lower, pc.min_element_wise(joined["min_offset"], joined["first_offset"]), joined["min_offset"])
    joined = joined.set_column(joined.schema.get_field_index("min_offset"), "min_offset", lowest)
    joined = joined.append_column("batch_id", pa.repeat(pa.scalar(context.batch_id), joined.num_rows))
    schema = definitions.table("offset_history").schema
    return joined.select(schema.names).cast(schema)


def _operations(changes: pa.Table, change: str) -> pa.Table:
    return changes.select([*KEY, *_POSITION, *_OPERATION]).append_column("change", pa.repeat(pa.scalar(change), changes.num_rows))


def _elsewhere_operations(changes: pa.Table) -> pa.Table:
    found = pa.concat_tables([of_kind(changes, kind) for kind in (ChangeKind.COMMIT, ChangeKind.TOMBSTONE, ChangeKind.PENDING)])
    # a pending commit has no counts
    counts = pc.fill_null(found["commits"], 1)
    return _operations(found.set_column(found.schema.get_field_index("commits"), "commits", counts), ELSEWHERE)


def _as_commits(resolved: pa.Table) -> pa.Table:
    offsets = resolved["committed_offset"]
    return (
        resolved.select([*KEY, *_VALUE, *_POSITION])
        .append_column("commits", pa.repeat(pa.scalar(1), resolved.num_rows))
        .append_column("min_offset", offsets)
        .append_column("first_offset", offsets)
        .append_column("rewound", pa.repeat(pa.scalar(False), resolved.num_rows))
    )


def remaining_keys(group_ids: list[str], tombstones: pa.Table, ended_pending: pa.Table, context: BatchContext) -> set[str]:
    """Return those of `group_ids` that keep a committed or pending offset from before the batch (Scala eras)."""
    removed = {_key(row) for row in tombstones.select(KEY).to_pylist()}
    ended = {_pending_key(row) for row in ended_pending.filter(ended_pending[DELETED]).to_pylist()}
    committed = context.previous.rows("offsets", KEY, group_id=group_ids).to_pylist()
    pending = context.previous.rows("pending_offsets", ["producer_id", *KEY], group_id=group_ids).to_pylist()
    return {row["group_id"] for row in committed if _key(row) not in removed} | {
        row["group_id"] for row in pending if _pending_key(row) not in ended
    }


def _key(row: _Row) -> tuple[object, ...]:
    return tuple(row[name] for name in KEY)


def _pending_key(row: _Row) -> tuple[object, ...]:
    return (row["producer_id"], *_key(row))


def _nullable(names: list[str]) -> pa.Schema:
    schema = definitions.table("offsets").schema
    return pa.schema([pa.field(name, schema.field(name).type) for name in names])


def _deletions(gone: list[tuple[_Row, _Row]], batch_id: int) -> pa.Table:
    rows = [{**row, **{name: cause[name] for name in ("log_offset", "record_timestamp")}} for row, cause in gone]
    return _source_rows(pa.Table.from_pylist(rows, _nullable([*KEY, *_VALUE, *_POSITION])), batch_id, deleted=True)


def _source_rows(rows: pa.Table, batch_id: int, *, deleted: bool) -> pa.Table:
    rows = rows.append_column("batch_id", pa.repeat(pa.scalar(batch_id), rows.num_rows))
    if EFFECTIVE_OFFSET not in rows.schema.names:
        rows = rows.append_column(_EFFECTIVE, rows["log_offset"])
    rows = rows.append_column(DELETED, pa.repeat(pa.scalar(deleted), rows.num_rows))
    return rows.select(source_names("offsets")).cast(source_schema("offsets"))
