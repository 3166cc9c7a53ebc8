"""Rebalances as the view `rebalances` counts them, for queries of all groups: the view also derives triggers and durations."""

#: True for a row of `membership_history` that is a rebalance: a new generation or group epoch of a group with members before or
#: after it. The first generation that a poll (log partition -1) sees may be an old one. A poll has no generation of classic
#: groups (-1), but without a rebalance neither their members nor the owners of partitions change.
IS_REBALANCE = (
    "(state <> 'Dead' AND CASE "
    "WHEN previous_generation IS NULL THEN member_count > 0 AND log_partition >= 0 "
    "WHEN generation < 0 OR previous_generation < 0 "
    "THEN members_joined + members_left + partitions_gained + partitions_lost > 0 "
    "ELSE generation <> previous_generation END)"
)
