"""The last commits of a group, from the table `offset_history` at the batch of a snapshot."""

from typing import Any

import pyarrow.compute as pc

from pipelines.lag.settings import settings_of
from pipelines.query.engine import Snapshot
from pipelines.query.histories import IS_CHANGE
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.tables.store import TableStore, literal, timestamp_literal


def commit_windows(root: str, snapshot: MemorySnapshot, group: str) -> list[dict[str, Any]]:
    """The last commits of each partition of a group, oldest first: topic, partition, offset and time.

    The history has one row per partition and batch, so a window covers at least the time that Burrow's does.
    """
    if group not in snapshot.lag:
        return []
    since = ""
    if snapshot.partition_status is not None and group in snapshot.partition_status:
        # the windows begin there, so older files need not be read
        start = pc.min(snapshot.partition_status.of(group)["start_timestamp"]).as_py()
        since = "" if start is None else f"AND commit_timestamp >= {timestamp_literal(start)}"
    rows = Snapshot(TableStore(root), snapshot.batch).query(
        f"""SELECT topic, partition, committed_offset AS "offset", commit_timestamp AS at FROM (
              SELECT *, row_number() OVER (PARTITION BY topic, partition ORDER BY batch_id DESC, log_offset DESC) AS age
              FROM offset_history
              WHERE group_id = {literal(group)} AND {IS_CHANGE} AND committed_offset IS NOT NULL
                AND commit_timestamp IS NOT NULL {since}
            ) h WHERE age <= {settings_of(snapshot.batch).window_commits} ORDER BY topic, partition, age DESC"""
    )
    found: list[dict[str, Any]] = rows.to_pylist()
    return found
