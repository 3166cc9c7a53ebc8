"""Parts of queries over the histories.

An offset of the log orders rows of one log partition only, and a group may move to another one. So rows of a group are ordered by
batch, and by log offset within a batch, in which one partition speaks for the group.
"""

#: Change of a record in a log partition that does not speak for the group.
ELSEWHERE = "elsewhere"
#: True for a row of `offset_history` that changed an offset.
IS_CHANGE = f"change <> '{ELSEWHERE}'"
#: True for a row of `group_history` about a group that may be older than its first row: the broker compacts the log, so the first
#: record that the first batch read is not that of the creation; nor is the first complete poll, and what came before it.
MAY_BE_OLDER = (
    "(record_timestamp < (SELECT min(started_at) FROM batches) OR log_partition < 0 "
    "AND batch_id <= COALESCE((SELECT min(batch_id) FROM batches WHERE records_behind = 0), batch_id))"
)

#: Changes of `offset_history` that removed the offset. `moved`: its log partition does not speak for the group any more.
REMOVALS = ("tombstone", "expire", "moved")
REMOVALS_SQL = ", ".join(f"'{change}'" for change in REMOVALS)
