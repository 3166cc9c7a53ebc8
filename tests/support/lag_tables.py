"""Tables with chosen rows of `lag`, without a log: every value that a metric may have."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from created_tables import created_tables

from pipelines.runtime.phases import Phases
from pipelines.tables import definitions
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter
from pipelines.tables.writers.table_write import EFFECTIVE_OFFSET, TableWrite

#: Time of the sample.
SAMPLED_AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)

_NULLABLE_DEFAULTS: Mapping[str, Any] = {
    "lag_method": "exact",
    "sampled_at": SAMPLED_AT,
    "commits_read_until": SAMPLED_AT,
    "group_type": "classic",
    "state": "Stable",
    "generation": 1,
    "member_count": 0,
    "log_partition": 0,
    "log_offset": 0,
}


def lag_row(group: str, topic: str, partition: int, offset: int | None, end: int | None, **more: Any) -> dict[str, Any]:
    """A row of `lag`."""
    lag = None if offset is None or end is None else end - offset
    return {
        "group_id": group,
        "topic": topic,
        "partition": partition,
        "group_offset": offset,
        "latest_offset": end,
        "earliest_offset": None if end is None else 0,
        "lag": lag,
        **more,
    }


def group_row(group: str, members: int = 0, **more: Any) -> dict[str, Any]:
    """A row of `groups`."""
    return {"group_id": group, "member_count": members, **more}


def write_tables(
    root: str,
    at: datetime = SAMPLED_AT,
    transaction_offsets: Mapping[int, int] | None = None,
    *,
    interval_seconds: int | None = None,
    **tables: Iterable[Mapping[str, Any]],
) -> Batch:
    """Write a batch with these rows, by table; missing columns have usual values. Replaced tables have these rows only."""
    store = created_tables(root)
    writer = TablesWriter.claim(store, interval_seconds)
    phases = Phases(at)
    batch_id = writer.begin()
    for name, given in tables.items():
        schema = definitions.table(name).schema
        names = set(schema.names)
        defaults = {**_NULLABLE_DEFAULTS, "batch_id": batch_id}
        rows = [{**{key: value for key, value in defaults.items() if key in names}, **row} for row in given]
        table = pa.Table.from_pylist(rows, schema)
        if name in definitions.KEYS:
            table = table.append_column(EFFECTIVE_OFFSET, pa.array([0] * len(rows), pa.int64()))
            table = table.append_column("_deleted", pa.array([False] * len(rows)))
        with phases.timed("sample"):
            DeltaRsWriter(writer).write(TableWrite(name, table))
    return writer.finish(
        phases,
        at,
        era="4",
        retention_ms=1,
        next_offsets={0: 7, 1: 3},
        records_read=12,
        records_kept=5,
        transaction_offsets=transaction_offsets,
    )
