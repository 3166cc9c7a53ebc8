"""Parts of queries over the histories.

An offset of the log orders rows of one log partition only, and a group may move to another one. So rows of a group are ordered by
batch, and by log offset within a batch, in which one partition speaks for the group.
"""

#: Change of a record in a log partition that does not speak for the group.
ELSEWHERE = "elsewhere"
#: True for a row of `offset_history` that changed an offset.
IS_CHANGE = f"change <> '{ELSEWHERE}'"

#: Changes of `offset_history` that removed the offset. `moved`: its log partition does not speak for the group any more.
REMOVALS = ("tombstone", "expire", "moved")
REMOVALS_SQL = ", ".join(f"'{change}'" for change in REMOVALS)
