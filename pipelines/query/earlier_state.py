"""Groups, members and offsets at an earlier batch, as queries over the tables of a later one: undoes what the histories have.

Needs no files of the earlier batch, which `grouplake maintain` removes after a week. The histories are kept for months.
"""

from collections.abc import Mapping

from coordinator_core.state.era import Era
from pipelines.query.engine import Snapshot
from pipelines.query.histories import IS_CHANGE
from pipelines.runtime.errors import UsageError
from pipelines.tables.store import Batch

#: Parts of an earlier state, in the order of their columns: the same columns come from tables.
COLUMNS: Mapping[str, str] = {
    "groups": "group_id, state, generation, member_count",
    "members": "group_id, member_id, client_id",
    "offsets": "group_id, topic, partition, committed_offset",
}

#: The first change of each key after the batch: `number` = 1.
_FIRST = """
SELECT t.*, row_number() OVER (PARTITION BY {key} ORDER BY t.batch_id, t.log_offset) AS number
FROM {history} t WHERE t.batch_id > {batch}{condition}
"""
_OFFSETS = """
SELECT o.group_id, o.topic, o.partition, o.committed_offset FROM {later}.offsets o
LEFT ANTI JOIN ({first_offsets}) f ON f.group_id = o.group_id AND f.topic = o.topic AND f.partition = o.partition
UNION ALL
SELECT group_id, topic, partition, previous_offset AS committed_offset FROM ({first_offsets}) f
WHERE f.number = 1 AND f.previous_offset IS NOT NULL
"""
_MEMBERS = """
SELECT m.group_id, m.member_id, m.client_id FROM {later}.members m
LEFT ANTI JOIN ({first_members}) f ON f.group_id = m.group_id AND f.member_id = m.member_id
UNION ALL
SELECT f.group_id, f.member_id, COALESCE(m.client_id, d.detail) AS client_id
FROM ({first_members}) f
LEFT JOIN {later}.members m ON m.group_id = f.group_id AND m.member_id = f.member_id
LEFT JOIN (
  -- the description of a departure is the client id
  SELECT group_id, member_id, max(detail) AS detail FROM {later}.group_history
  WHERE batch_id > {batch} AND change = 'member_left' GROUP BY group_id, member_id
) d ON d.group_id = f.group_id AND d.member_id = f.member_id
WHERE f.number = 1 AND f.change <> 'member_joined'
"""
_RECORDED_GROUPS = """
SELECT g.group_id, g.state, g.generation, g.member_count FROM {later}.groups g
LEFT ANTI JOIN ({first_groups}) f ON f.group_id = g.group_id
WHERE g.group_type <> 'simple'
UNION ALL
SELECT group_id, previous_state AS state, previous_generation AS generation, previous_member_count AS member_count
FROM ({first_groups}) f WHERE f.number = 1 AND f.previous_state IS NOT NULL
"""
#: A group with offsets and without a record is a simple group, unless it was deleted after its last commit: the Java coordinator
#: (era 4) hides such offsets. Simple groups without offsets are not found.
_GROUPS = """
SELECT group_id, state, generation, member_count FROM ({recorded}) r
UNION ALL
SELECT DISTINCT o.group_id, 'Empty' AS state, 0 AS generation, 0 AS member_count FROM ({offsets}) o
LEFT ANTI JOIN ({recorded}) r ON r.group_id = o.group_id
LEFT ANTI JOIN ({hidden}) h ON h.group_id = o.group_id
"""
_HIDDEN = """
SELECT group_id FROM (
  SELECT u.*, row_number() OVER (PARTITION BY group_id ORDER BY batch_id DESC, log_offset DESC, is_deletion DESC) AS age
  FROM (
    SELECT group_id, batch_id, log_offset, 1 AS is_deletion FROM {later}.membership_history
    WHERE batch_id <= {batch} AND state = 'Dead'
    UNION ALL
    SELECT group_id, batch_id, log_offset, 0 AS is_deletion FROM {later}.offset_history
    WHERE batch_id <= {batch} AND {is_change} AND committed_offset IS NOT NULL
  ) u
) n WHERE age = 1 AND is_deletion = 1
"""
_NONE_HIDDEN = "SELECT CAST(NULL AS STRING) AS group_id"


def earlier_state(later: Snapshot, schema: str, batch: Batch) -> dict[str, str]:
    """The queries of COLUMNS for the state at `batch`, over the tables of `later` in its schema.

    Raises:
        UsageError: the histories do not reach back to the batch.
    """
    _expect_history(later, schema, batch)

    def first(history: str, key: str, condition: str = "") -> str:
        return _FIRST.format(history=f"{schema}.{history}", key=key, batch=batch.batch_id, condition=condition)

    parts = {
        "later": schema,
        "batch": str(batch.batch_id),
        "is_change": IS_CHANGE,
        "first_offsets": first("offset_history", "t.group_id, t.topic, t.partition", f" AND t.{IS_CHANGE}"),
        "first_members": first("group_history", "t.group_id, t.member_id", " AND t.member_id IS NOT NULL"),
        "first_groups": first("membership_history", "t.group_id"),
    }
    offsets, recorded = _OFFSETS.format(**parts), _RECORDED_GROUPS.format(**parts)
    hides_offsets = Era.named(batch.era).hides_offsets_without_group
    hidden = _HIDDEN.format(**parts) if hides_offsets else _NONE_HIDDEN
    return {
        "groups": _GROUPS.format(recorded=recorded, offsets=offsets, hidden=hidden),
        "members": _MEMBERS.format(**parts),
        "offsets": offsets,
    }


def _expect_history(later: Snapshot, schema: str, batch: Batch) -> None:
    """Rows up to the batch show that no later ones have been removed, since `maintain` removes the oldest ones."""
    histories = ("membership_history", "group_history", "offset_history")
    for history in histories:
        later.provide(history)
    kept = (f"SELECT 1 AS kept FROM {schema}.{history} WHERE batch_id <= {batch.batch_id}" for history in histories)
    has_histories = "membership_history" in batch.versions
    if not has_histories or not later.query(f"SELECT * FROM ({' UNION ALL '.join(kept)}) k LIMIT 1").num_rows:
        raise UsageError(
            f"batch {batch.batch_id} can no longer be compared: `grouplake maintain` has removed its files "
            "(maintain.vacuum_hours), and the histories start later (maintain.history_days): use a later --from"
        )
