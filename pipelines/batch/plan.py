"""Plan of a batch: its writes, from change rows and the tables before it. Uses no Spark and no clock, and writes nothing."""

from dataclasses import dataclass

import pyarrow as pa

from pipelines.batch.context import BatchContext
from pipelines.batch.groups_plan import as_table, elsewhere_records, plan_groups, reported_changes, reported_unreadable
from pipelines.batch.offsets_plan import plan_pending
from pipelines.batch.simple_groups import plan_simple_groups
from pipelines.batch.topic_names import NameSource, learn_topic_names
from pipelines.source.changes import ChangeKind, of_kind
from pipelines.tables import definitions
from pipelines.tables.writers.table_write import DELETED, EFFECTIVE_OFFSET, TableWrite


@dataclass(frozen=True)
class BatchPlan:
    """Writes of all tables except `offsets` and `offset_history`, whose rows may not fit into the driver."""

    writes: tuple[TableWrite, ...]
    #: Change rows of removed offsets.
    tombstones: pa.Table
    #: Pending commits of earlier batches that take effect; see `PendingPlan`.
    resolved: pa.Table


def plan_batch(changed: pa.Table, context: BatchContext, name_source: NameSource, elsewhere: pa.Table | None = None) -> BatchPlan:
    """Plan a batch from its change rows; rows of kind `commit` are ignored.

    `elsewhere` are change rows of log partitions that do not speak for their groups: only the history has them.
    """
    tombstones = of_kind(changed, ChangeKind.TOMBSTONE)
    pending = plan_pending(changed, context)
    names = learn_topic_names(changed, context, name_source)
    groups = plan_groups(changed, names, context)
    plan_simple_groups(changed, tombstones, pending, groups, context)
    rows = {
        "topic_ids": [{**row, EFFECTIVE_OFFSET: 0, DELETED: False} for row in names.rows(context.batch_id)],
        "group_records": groups.group_records,
        "groups": groups.groups,
        "members": groups.members,
        "group_history": groups.group_history,
        "membership_history": groups.membership_history,
        "ownership_history": groups.ownership_history,
        "quarantine": groups.quarantine,
    }
    writes = {name: as_table(name, found) for name, found in rows.items()}
    for name, reported in reported_changes(changed, context).items():
        writes[name] = pa.concat_tables([writes[name], reported])
    if elsewhere is not None:
        writes["group_history"] = pa.concat_tables([writes["group_history"], elsewhere_records(elsewhere, context)])
    writes["pending_offsets"] = pending.writes
    unreadable = reported_unreadable(changed, context)
    writes["quarantine"] = pa.concat_tables([writes["quarantine"], unreadable, _damage_rows(changed, context)])
    return BatchPlan(
        writes=tuple(TableWrite(name, writes[name]) for name in definitions.WRITE_ORDER if name in writes),
        tombstones=tombstones,
        resolved=pending.resolved,
    )


def _damage_rows(changed: pa.Table, context: BatchContext) -> pa.Table:
    schema = definitions.table("quarantine").schema
    damages = of_kind(changed, ChangeKind.DAMAGE)
    return pa.Table.from_arrays(
        [
            damages["key"],
            damages["value"],
            damages["detail"],
            damages["log_partition"],
            damages["log_offset"],
            damages["record_timestamp"],
            pa.repeat(pa.scalar(context.batch_id), damages.num_rows),
            pa.nulls(damages.num_rows, pa.string()),
        ],
        schema=schema,
    )
