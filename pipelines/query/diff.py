"""Differences of groups, members and offsets between two batches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder

from pipelines.query.earlier_state import COLUMNS, earlier_state
from pipelines.query.engine import Snapshot
from pipelines.query.histories import REMOVALS_SQL
from pipelines.query.output import plain
from pipelines.runtime.errors import RemovedState, UsageError
from pipelines.tables.store import Batch, TableStore, is_in, literal

_EARLIER, _LATER = "earlier", "later"

SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("change", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("from", pa.string()),
        ("to", pa.string()),
        ("detail", pa.string()),
    ]
)
#: Kinds of change, in the order of the rows of a group.
CHANGES = (
    *("first_read", "vanished", "appeared", "state", "rebalanced", "member_joined", "member_left"),
    *("reset", "rewind", "removed", "committed", "progress"),
)
_ORDER = {change: number for number, change in enumerate(CHANGES)}

_GROUPS = """
SELECT COALESCE(a.group_id, b.group_id) AS group_id, a.state AS from_state, b.state AS to_state, a.generation AS from_generation,
       b.generation AS to_generation, a.member_count AS from_members, b.member_count AS to_members
FROM ({earlier}) a FULL JOIN ({later}) b ON b.group_id = a.group_id
WHERE a.group_id IS NULL OR b.group_id IS NULL OR a.state <> b.state OR a.generation <> b.generation OR {deleted}
"""
_MEMBERS = """
SELECT COALESCE(a.group_id, b.group_id) AS group_id, a.group_id IS NULL AS has_joined,
       COALESCE(a.member_id, b.member_id) AS member_id, COALESCE(a.client_id, b.client_id) AS client_id
FROM ({earlier}) a FULL JOIN ({later}) b ON b.group_id = a.group_id AND b.member_id = a.member_id
WHERE a.group_id IS NULL OR b.group_id IS NULL
"""
_OFFSETS = """
SELECT COALESCE(a.group_id, b.group_id) AS group_id, COALESCE(a.topic, b.topic) AS topic,
       COALESCE(a.partition, b.partition) AS partition, a.committed_offset AS from_offset, b.committed_offset AS to_offset
FROM ({earlier}) a
FULL JOIN ({later}) b ON b.group_id = a.group_id AND b.topic = a.topic AND b.partition = a.partition
WHERE a.group_id IS NULL OR b.group_id IS NULL OR a.committed_offset <> b.committed_offset
"""
_RESETS = """
SELECT group_id, topic, partition, from_offset, to_offset, reset_by, reset_at FROM {later}.resets WHERE batch_id > {batch}
"""

#: Groups and offsets that were deleted in between, of which some exist again.
_DELETED = "SELECT DISTINCT group_id FROM {later}.group_history WHERE batch_id > {batch} AND change IN ('group_deleted', 'moved')"
_REMOVED = f"""
SELECT DISTINCT group_id, topic, partition FROM {{later}}.offset_history
WHERE batch_id > {{batch}} AND change IN ({REMOVALS_SQL})
"""
#: Groups whose first record in between was written before the first batch: the log had them before the tables.
_READ_LATE = """
SELECT group_id FROM (
  SELECT group_id, record_timestamp FROM {later}.group_history WHERE batch_id > {batch}
  UNION ALL SELECT group_id, record_timestamp FROM {later}.offset_history WHERE batch_id > {batch}
) h GROUP BY group_id HAVING min(record_timestamp) < (SELECT min(started_at) FROM {later}.batches)
"""

_Row = Mapping[str, Any]


def diff(store: TableStore, earlier: Batch, later: Batch, groups: Sequence[str] = ()) -> pa.Table:
    """The changes from one batch to another: of the named groups, or of all.

    The files of the earlier batch are compared; if they were removed, the earlier state follows from the histories.

    Raises:
        UsageError: the earlier batch is the later one in time, or cannot be read; or a named group is in neither.
    """
    if earlier.batch_id > later.batch_id:
        raise UsageError(f"--from is batch {earlier.batch_id}, after batch {later.batch_id} of --to: exchange them")
    builder = QueryBuilder()
    for schema in (_EARLIER, _LATER):
        builder.execute(f"CREATE SCHEMA {schema}").read_all()
    now = Snapshot(store, later, builder=builder, schema=_LATER)
    for name in (*COLUMNS, "resets", "group_history", "offset_history", "batches"):
        if name in (*now.tables, *now.views):
            now.provide(name)
    there = {name: f"SELECT {columns} FROM {_LATER}.{name}" for name, columns in COLUMNS.items()}
    try:
        before = Snapshot(store, earlier, builder=builder, schema=_EARLIER)
        for name in COLUMNS:
            before.provide(name)
        here = {name: f"SELECT {columns} FROM {_EARLIER}.{name}" for name, columns in COLUMNS.items()}
        return _compared(now, here, there, earlier, groups)
    except RemovedState:
        return _compared(now, earlier_state(now, _LATER, earlier), there, earlier, groups)


def _compared(
    now: Snapshot, here: Mapping[str, str], there: Mapping[str, str], earlier: Batch, groups: Sequence[str]
) -> pa.Table:
    named = f"WHERE group_id IN ({', '.join(map(literal, groups))})" if groups else ""

    def rows(sql: str) -> list[_Row]:
        found: list[_Row] = now.query(f"SELECT * FROM ({sql}) q {named}").to_pylist()
        return found

    def both(sql: str, name: str) -> list[_Row]:
        return rows(sql.format(earlier=here[name], later=there[name]))

    if groups:
        known = rows(f"SELECT group_id FROM ({here['groups']}) a UNION SELECT group_id FROM ({there['groups']}) b")
        _expect_groups(groups, {row["group_id"] for row in known})
    # an earlier version of Grouplake wrote no history of memberships
    resets = rows(_RESETS.format(later=_LATER, batch=earlier.batch_id)) if "resets" in now.views else []
    values = {"later": _LATER, "batch": earlier.batch_id}
    deleted = {row["group_id"] for row in rows(_DELETED.format(**values))}
    read_late = {row["group_id"] for row in rows(_READ_LATE.format(**values))}
    removed = {(row["group_id"], row["topic"], row["partition"]) for row in rows(_REMOVED.format(**values))}
    group_rows = both(_GROUPS.replace("{deleted}", is_in("a.group_id", deleted)), "groups")
    changes = [
        *_group_changes(group_rows, deleted, read_late),
        *(_member_change(row) for row in both(_MEMBERS, "members")),
        *(_reset(row) for row in resets),
        *(change for row in both(_OFFSETS, "offsets") for change in _offset_changes(row, deleted, removed)),
    ]
    changes.sort(key=lambda row: (row["group_id"], _ORDER[row["change"]], row["topic"] or "", row["partition"] or 0, str(row)))
    return pa.Table.from_pylist(changes, SCHEMA)


def _expect_groups(groups: Sequence[str], known: set[str]) -> None:
    missing = next((group for group in sorted(groups) if group not in known), None)
    if missing is not None:
        raise UsageError(f"no group {missing!r} in either batch")


def _change(
    row: _Row, change: str, before: object = None, after: object = None, detail: str | None = None, partition: int | None = None
) -> dict[str, Any]:
    return {
        "group_id": row["group_id"],
        "change": change,
        "topic": row.get("topic"),
        "partition": partition,
        "from": None if before is None else str(before),
        "to": None if after is None else str(after),
        "detail": detail,
    }


def _group_changes(rows: Iterable[_Row], deleted: set[str], read_late: set[str]) -> Iterable[dict[str, Any]]:
    """`deleted` groups were deleted in between; those of `read_late` existed before the first batch."""
    for row in rows:
        group = row["group_id"]
        if row["from_state"] is None:
            change = "first_read" if group in read_late else "appeared"
            yield _change(row, change, None, row["to_state"], _members(row["to_members"]))
        elif row["to_state"] is None:
            yield _change(row, "vanished", row["from_state"], None, _members(row["from_members"]))
        elif group in deleted:
            yield _change(row, "vanished", row["from_state"], None, _members(row["from_members"]))
            yield _change(row, "appeared", None, row["to_state"], f"{_members(row['to_members'])}, deleted and created again")
        else:
            if row["from_state"] != row["to_state"]:
                yield _change(row, "state", row["from_state"], row["to_state"])
            if row["from_generation"] != row["to_generation"]:
                members = f"{row['from_members']} → {_members(row['to_members'])}"
                yield _change(row, "rebalanced", row["from_generation"], row["to_generation"], members)


def _members(count: int) -> str:
    return f"{count} member{'' if count == 1 else 's'}"


def _member_change(row: _Row) -> dict[str, Any]:
    member = row["member_id"]
    if row["has_joined"]:
        return _change(row, "member_joined", None, member, row["client_id"])
    return _change(row, "member_left", member, None, row["client_id"])


def _offset_changes(row: _Row, deleted: set[str], removed: set[tuple[str, str, int]]) -> Iterable[dict[str, Any]]:
    """The change of one offset; two for an offset that was removed and committed again, which is no progress."""
    before, after, partition = row["from_offset"], row["to_offset"], row["partition"]
    is_new = row["group_id"] in deleted or (row["group_id"], row["topic"], partition) in removed
    if before is None or after is None or is_new:
        if before is not None:
            yield _change(row, "removed", before, None, None, partition)
        if after is not None:
            yield _change(row, "committed", None, after, None, partition)
        return
    yield _change(row, "progress" if after > before else "rewind", before, after, f"{after - before:+,}", partition)


def _reset(row: _Row) -> dict[str, Any]:
    before, after = row["from_offset"], row["to_offset"]
    size = "back" if before is None else f"{after - before:+,}"
    detail = f"{size}, by {row['reset_by']} at {plain(row['reset_at'])}"
    return _change(row, "reset", before, after, detail, row["partition"])
