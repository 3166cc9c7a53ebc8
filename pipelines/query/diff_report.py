"""`grouplake diff`: prints the changes between two batches."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, TextIO

import pyarrow as pa

from pipelines.query.diff import SCHEMA, diff
from pipelines.query.engine import batch_at, expect_past, parse_as_of
from pipelines.query.output import plain, to_stdout, write_table
from pipelines.runtime.errors import UsageError
from pipelines.tables.store import Batch, TableStore

#: Changes that the table adds up by topic.
_ADDED_UP = ("committed", "progress", "removed")

#: Kind of change → how the summary counts its groups, in the order of the summary.
_COUNTED = {
    "first_read": "first read",
    "appeared": "appeared",
    "vanished": "vanished",
    "state": "changed state",
    "rebalanced": "rebalanced",
    "reset": "were reset",
    "rewind": "went back",
    "progress": "made progress",
}


def print_diff(root: str, earlier: str, later: str | None, groups: Sequence[str], format_name: str) -> None:
    """Print the changes between two batches under `root` to standard output."""
    store = TableStore(root)
    first, last = _batch(store, "--from", earlier), batch_at(store, None) if later is None else _batch(store, "--to", later)
    rows = diff(store, first, last, groups)
    if format_name == "table":
        write_report(rows, first, last, sys.stdout)
    else:
        to_stdout(rows, format_name)


def _batch(store: TableStore, option: str, given: str) -> Batch:
    as_of = parse_as_of(given, option)
    expect_past(as_of, store, option)
    first = store.first_batch()
    if first is not None and (as_of < first.batch_id if isinstance(as_of, int) else _utc(as_of) < first.finished_at):
        raise UsageError(
            f"{option} {given} is before the first batch under {store.root}: "
            f"batch {first.batch_id} was complete at {plain(first.finished_at)}"
        )
    return store.batch_as_of(as_of)


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def write_report(rows: pa.Table, earlier: Batch, later: Batch, out: TextIO) -> None:
    """Write the changes as a table, with the progress of a topic in one row, and a summary."""
    times = (f"batch {batch.batch_id} ({plain(batch.finished_at)})" for batch in (earlier, later))
    out.write(f"from {' to '.join(times)}\n")
    changes = rows.to_pylist()
    if changes:
        out.write("\n")
        write_table(pa.Table.from_pylist(_added_up(changes), SCHEMA), out)
    out.write(f"\n{summary(changes)}\n")


def _added_up(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for (_, change, _topic), found in groupby(changes, key=lambda row: (row["group_id"], row["change"], row["topic"])):
        rows = list(found)
        if change not in _ADDED_UP or len(rows) == 1:
            shown += rows
            continue
        detail = f"{len(rows)} partitions"
        if change == "progress":
            detail += f", {sum(int(row['to']) - int(row['from']) for row in rows):+,}"
        shown.append({**rows[0], "partition": None, "from": None, "to": None, "detail": detail})
    return shown


def summary(changes: list[dict[str, Any]]) -> str:
    """One line that counts groups by change."""
    groups = {row["group_id"] for row in changes}
    if not groups:
        return "no changes"
    counts = {change: len({row["group_id"] for row in changes if row["change"] == change}) for change in _COUNTED}
    parts = [f"{count} {_COUNTED[change]}" for change, count in counts.items() if count]
    return f"{len(groups)} group{'' if len(groups) == 1 else 's'} changed{': ' if parts else ''}{', '.join(parts)}"
