"""Runs that poll once, and their tables beside those of the log of the same broker: equal but for what a poll cannot know."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs import run_job

from pipelines.query.engine import Snapshot

#: Table → columns that a poll cannot know, or that are of the poll itself; docs/sources.md has the same table.
UNKNOWN_TO_A_POLL: dict[str, tuple[str, ...]] = {
    "offsets": ("commit_timestamp", "expire_timestamp", "topic_id", "producer_id"),
    "groups": ("generation", "leader", "state_timestamp"),
    "members": ("session_timeout_ms", "rebalance_timeout_ms"),
    "assignments": (),
    "lag": ("committed_at",),
    "group_status": (),
}
_OF_THE_ROW = ("log_partition", "log_offset", "record_timestamp", "batch_id")
#: Columns about the time of a sample, and about the samples before it.
_OF_THE_SAMPLE = (
    *("sampled_at", "commits_read_until", "evaluated_at", "lag_seconds", "lag_seconds_low", "lag_seconds_high", "lag_method"),
    *("lag_reason", "lag_slope_per_second", "slope_window_seconds", "produce_rate", "consume_rate", "stuck_seconds"),
    *("drain_seconds", "retention_margin_seconds", "falls_behind_since", "window_rows", "window_seconds", "complete", "detail"),
    *("findings", "facts", "data_lag"),
)


def now_ms() -> int:
    return int(time.time() * 1000)


def polled(bootstrap: str, tables: Path, **changed: Any) -> list[str]:
    """A run that polls once."""
    options = {"clock_ms": now_ms, "lag_interval_seconds": 1, "lag_counted_partitions": 100, **changed}
    return run_job(f"kafka-groups://{bootstrap}", tables, **options)


def rows(root: Path | str, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Snapshot.open(str(root)).query(sql).to_pylist()
    return found


def known_to_both(root: Path | str, table: str, groups: Mapping[str, str]) -> list[str]:
    """The rows of some groups (name → type), without the columns that a poll cannot know, and with those of modern groups."""
    hidden = {*_OF_THE_ROW, *_OF_THE_SAMPLE}
    found = []
    for row in rows(root, f"SELECT * FROM {table}"):
        if row["group_id"] not in groups:
            continue
        unknown = set(UNKNOWN_TO_A_POLL[table])
        if table == "groups" and groups[row["group_id"]] != "classic":
            unknown.discard("generation")
        found.append(str({name: value for name, value in row.items() if name not in hidden | unknown}))
    return sorted(found)


def difference(of_log: list[str], of_polls: list[str]) -> list[str]:
    """The rows that only one of the two has."""
    return [
        *(f"log: {row}" for row in of_log if row not in of_polls),
        *(f"polls: {row}" for row in of_polls if row not in of_log),
    ]
