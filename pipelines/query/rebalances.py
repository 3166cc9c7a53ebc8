"""Rebalances as the view `rebalances` counts them, for queries of all groups: the view also derives triggers and durations."""

#: True for a row of `membership_history` that is a rebalance: a new generation or group epoch of a group with members before or
#: after it.
IS_REBALANCE = (
    "(state <> 'Dead' AND CASE WHEN previous_generation IS NULL THEN member_count > 0 ELSE generation <> previous_generation END)"
)
