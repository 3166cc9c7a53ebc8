"""Parts of queries over the histories.

An offset of the log orders rows of one log partition only, and a group may move to another one. So rows of a group are ordered by
batch, and by log offset within a batch, in which one partition speaks for the group.
"""

from collections.abc import Callable

import pyarrow as pa

from pipelines.tables.store import timestamp_literal

#: Change of a record in a log partition that does not speak for the group.
ELSEWHERE = "elsewhere"
#: True for a row of `offset_history` that changed an offset.
IS_CHANGE = f"change <> '{ELSEWHERE}'"
#: Changes of `offset_history` that removed the offset. `moved`: its log partition does not speak for the group any more.
REMOVALS = ("tombstone", "expire", "moved")
REMOVALS_SQL = ", ".join(f"'{change}'" for change in REMOVALS)

_FIRST_READS = """
SELECT min(started_at) AS started_at, min(CASE WHEN records_behind = 0 THEN batch_id END) AS complete_batch FROM batches
"""


def may_be_older(query: Callable[[str], pa.Table]) -> str:
    """Build a condition of `group_history`: the group may be older than its first row.

    The broker compacts the log, so the first record that the first batch read is not that of the creation; nor is the first
    complete poll, and what came before it.
    """
    (first,) = query(_FIRST_READS).to_pylist()
    is_first_poll = "TRUE" if first["complete_batch"] is None else f"batch_id <= {first['complete_batch']}"
    return f"(record_timestamp < {timestamp_literal(first['started_at'])} OR (log_partition < 0 AND {is_first_poll}))"
