"""Thinning of `end_offsets` and `lag_history` by `lag.keep`: `maintain` rewrites the table, sorted and part by part."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from coordinator_core.codec.arrays import Numbers
from coordinator_core.health import KeepRule, kept_samples, kept_times
from coordinator_core.health.sample_tables import SampledPartitions
from pipelines.lag.columns import milliseconds, starts_of_runs
from pipelines.runtime.timestamps import to_ms
from pipelines.tables import definitions
from pipelines.tables.delta_writes import stamped, write_many_rows
from pipelines.tables.row_removal import keep_rows
from pipelines.tables.sorted_files.change_files import has_change_data_feed
from pipelines.tables.store import literal, query

#: Rows that are in memory at the same time, unless one topic or group has more.
_PART_ROWS = 2_000_000

#: Marks the rows that remain, of rows in the order of the table.
_Keep = Callable[[pa.Table, int, Sequence[KeepRule]], Numbers]


class _Thinned(NamedTuple):
    """Order of a thinned table, whose first column divides it into parts, and the rule about its rows."""

    order: tuple[str, ...]
    keep: _Keep


def _kept_ends(rows: pa.Table, now_ms: int, rules: Sequence[KeepRule]) -> Numbers:
    return kept_samples(SampledPartitions(rows).columns, now_ms, rules)


def _kept_lags(rows: pa.Table, now_ms: int, rules: Sequence[KeepRule]) -> Numbers:
    """Rows of a group at one time remain together."""
    at = milliseconds(rows["sampled_at"])
    bounds = starts_of_runs(rows["group_id"], at)
    times = bounds[:-1]
    groups = np.searchsorted(times, starts_of_runs(rows["group_id"]))
    return np.repeat(kept_times(groups, at[times], now_ms, rules), np.diff(bounds))


#: Table → how it is thinned.
THINNED = {
    "end_offsets": _Thinned(("topic", "partition", "answered_at"), _kept_ends),
    "lag_history": _Thinned(("group_id", "sampled_at", "topic"), _kept_lags),
}


def thin_table(name: str, rules: Sequence[KeepRule], now: datetime, file_bytes: int, table: DeltaTable, stamp: str) -> bool:
    """Remove the rows of a table that `rules` do not keep; False if all remain."""
    parts = list(_parts(name, table))
    now_ms = to_ms(now)
    if all(kept.all() for _, kept in _thinned(name, table, parts, now_ms, rules)):
        return False
    schema = definitions.table(name).schema
    with ThreadPoolExecutor(1) as reader:
        thinned = _thinned(name, table, parts, now_ms, rules)
        batches = (
            batch
            for rows, kept in iter(lambda: reader.submit(next, thinned, None).result(), None)
            for batch in rows.filter(pa.array(kept)).cast(schema).to_batches()
        )
        if has_change_data_feed(table):
            write_many_rows(table, pa.RecordBatchReader.from_batches(schema, batches), "overwrite", stamped(stamp), file_bytes)
        else:
            keep_rows(table, name, batches, stamp, file_bytes)
    return True


def removable_share(name: str, rules: Sequence[KeepRule], now: datetime, table: DeltaTable) -> float:
    """Share of the rows of a table that `thin_table` would remove."""
    rows = kept = 0
    for _, remain in _thinned(name, table, list(_parts(name, table)), to_ms(now), rules):
        rows, kept = rows + len(remain), kept + int(remain.sum())
    return 1 - kept / rows if rows else 0.0


def _parts(name: str, table: DeltaTable) -> Iterator[tuple[str, str]]:
    """Ranges of the first column with about as many rows as fit into memory."""
    first = THINNED[name].order[0]
    counts = query({name: table}, f"SELECT {first} AS value, count(*) AS n FROM {name} GROUP BY {first} ORDER BY {first}")
    start, last, rows = None, None, 0
    for value, count in zip(counts["value"].to_pylist(), counts["n"].to_pylist(), strict=True):
        if start is not None and last is not None and rows + count > _PART_ROWS:
            yield start, last
            start, rows = None, 0
        start, last, rows = start if start is not None else value, value, rows + count
    if start is not None and last is not None:
        yield start, last


def _thinned(
    name: str, table: DeltaTable, parts: Sequence[tuple[str, str]], now_ms: int, rules: Sequence[KeepRule]
) -> Iterator[tuple[pa.Table, Numbers]]:
    """The rows of each part in the order of the table, and which of them remain."""
    order, keep = THINNED[name]
    columns = ", ".join(definitions.table(name).schema.names)
    for low, high in parts:
        where = f"{order[0]} BETWEEN {literal(low)} AND {literal(high)}"
        rows = query({name: table}, f"SELECT {columns} FROM {name} WHERE {where} ORDER BY {', '.join(order)}")
        rows = rows.cast(pa.schema([field.with_nullable(True) for field in definitions.table(name).schema]))
        yield rows, keep(rows, now_ms, rules)
