"""Rebalances as the view `rebalances` counts them, for queries of all groups: the view also derives triggers and durations."""

#: True for a row of `membership_history` that is a rebalance: a new generation or group epoch of a group with members before or
#: after it. A poll (log partition -1) has no generation of classic groups, and the first one that it sees may be an old one.
IS_REBALANCE = (
    "(state <> 'Dead' AND generation >= 0 AND CASE WHEN previous_generation IS NULL THEN member_count > 0 AND log_partition >= 0 "
    "ELSE generation <> previous_generation END)"
)
