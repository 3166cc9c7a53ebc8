"""`--expiry apply`: the sweep of the era, for topics that no broker sweeps any more.

The view `expiring_offsets` selects the offsets to remove; the groups to remove follow `cleanupGroupMetadata` of the era. A
sweep is a batch of its own, which reads no records; its changes in the history are `expire`.
"""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from coordinator_core.reduction.membership_rows import MEMBERSHIP_COLUMNS
from coordinator_core.state.era import Era, GroupRemoval
from coordinator_core.state.membership import DEAD
from pipelines.batch.context import BatchContext
from pipelines.batch.groups_plan import as_table, delete
from pipelines.batch.previous_batch import PreviousBatch
from pipelines.query.engine import Snapshot
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.phases import Phases
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore, timestamp_literal
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter
from pipelines.tables.writers.table_write import TableWrite

_EXPIRED = """
SELECT o.group_id, o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp, o.producer_id,
       o.log_partition, o.log_offset, o.record_timestamp
FROM expiring_offsets e
JOIN offsets o ON o.group_id = e.group_id AND o.topic = e.topic AND o.partition = e.partition
WHERE e.expires_at <= {now}
"""

#: Empty groups without remaining committed or pending offsets; `{now}` as above. Share groups are never removed.
_EMPTIED = """
SELECT g.group_id, g.group_type, g.state, g.generation, g.protocol, g.log_partition, g.log_offset, g.record_timestamp
FROM groups g
LEFT JOIN (
  SELECT group_id, count(*) AS n FROM expiring_offsets
  WHERE expires_at IS NULL OR expires_at > {now} GROUP BY group_id
) remaining ON remaining.group_id = g.group_id
LEFT JOIN (SELECT DISTINCT group_id FROM pending_offsets) pending ON pending.group_id = g.group_id
WHERE g.member_count = 0 AND g.group_type <> 'share' AND remaining.group_id IS NULL AND pending.group_id IS NULL
"""

#: Columns of `membership_history` that are numbers of members and partitions.
_NUMBERS = tuple(name for name in MEMBERSHIP_COLUMNS if name.startswith(("member", "previous_member", "subscr", "partitions")))


def sweep(store: TableStore, era: Era, retention_ms: int, now_ms: int, writer: TablesWriter | None = None) -> Batch | None:
    """Sweep the tables at `now_ms` (ms since the epoch). Returns None if the sweep removes nothing.

    `writer` is the claim of the tables, if the job already has one.

    Raises:
        AnotherWriter: another job took over the tables.
    """
    last = writer.last if writer else store.last_batch()
    if last is None:
        return None
    phases = Phases(datetime.now(UTC))
    with phases.timed("read"):
        expired, emptied = _found(Snapshot(store, last, retention_ms), era, now_ms)
    if not expired.num_rows and not emptied.num_rows:
        return None
    if writer is None:
        # search again, because the previous writer may have finished a batch before the claim
        return sweep(store, era, retention_ms, now_ms, TablesWriter.claim(store))
    context = BatchContext(writer.begin(), era, retention_ms, PreviousBatch(store, last))
    with phases.timed("plan"):
        rows = _rows(expired.to_pylist(), emptied.to_pylist(), context)
    failpoint("sweep:planned")
    for name in definitions.WRITE_ORDER:
        if name in rows:
            with phases.timed(f"write_{name}", len(rows[name])):
                DeltaRsWriter(writer).write(TableWrite(name, as_table(name, rows[name])))
            failpoint(f"sweep:after:{name}")
    return writer.finish(
        phases,
        datetime.now(UTC),
        era=era.name,
        retention_ms=retention_ms,
        next_offsets=last.next_offsets,
        records_kept=expired.num_rows + emptied.num_rows,
    )


def _found(snapshot: Snapshot, era: Era, now_ms: int) -> tuple[pa.Table, pa.Table]:
    """Return the expired offsets and the groups to remove."""
    now = timestamp_literal(at_ms(now_ms))
    expired = snapshot.query(_EXPIRED.format(now=now))
    if era.group_removal is GroupRemoval.NEVER:
        return expired, pa.table({"group_id": pa.array([], pa.string())})
    return expired, snapshot.query(_EMPTIED.format(now=now))


def _rows(expired: list[dict[str, Any]], emptied: list[dict[str, Any]], context: BatchContext) -> dict[str, list[dict[str, Any]]]:
    batch = {"batch_id": context.batch_id}
    removed = [row["group_id"] for row in emptied]
    records = context.previous.rows("group_records", ["group_id", "key", "log_offset"], group_id=removed).to_pylist()
    return {
        "offsets": [delete({name: row[name] for name in definitions.KEYS["offsets"]}, row["log_offset"]) for row in expired],
        "group_records": [delete({"group_id": r["group_id"], "key": r["key"]}, r["log_offset"]) for r in records],
        "groups": [delete({"group_id": row["group_id"]}, row["log_offset"]) for row in emptied],
        "offset_history": [
            {
                **row,
                **batch,
                "change": "expire",
                "previous_offset": row["committed_offset"],
                "committed_offset": None,
                "commits": 0,
            }
            for row in expired
        ],
        "group_history": [{**row, **batch, "change": "expire", "detail": "empty and without offsets"} for row in emptied],
        "membership_history": [_end_of(row) | batch for row in emptied],
    }


def _end_of(group: dict[str, Any]) -> dict[str, Any]:
    """The row of `membership_history` for a removed group, which has no members."""
    return {
        **dict.fromkeys(_NUMBERS, 0),
        **group,
        "state": DEAD,
        "previous_state": group["state"],
        "previous_generation": group["generation"],
        "topics_changed": False,
    }
