"""Rows of `lag_history` for generated tables, as `maintain` leaves them: thinned, and sorted by group, time and topic."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.large_tables import NEWEST_MS, PARTITIONS_PER_TOPIC, TablesShape, group_name, topic_names
from pipelines.batch.without_records import finish_batch
from pipelines.runtime.phases import Phases
from pipelines.runtime.timestamps import TIMESTAMP, at_ms
from pipelines.tables import definitions
from pipelines.tables.delta_writes import stamped
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter

_DAY_MS = 86_400_000
_FILE_BYTES = 16_000_000
_ROWS_AT_ONCE = 1_000_000


def write_lag_history(store: TableStore, shape: TablesShape, days: int, every_ms: int) -> int:
    """Commit `days` of history before the newest commit, a row per group and topic every `every_ms`; returns their number."""
    times = np.arange(NEWEST_MS - days * _DAY_MS, NEWEST_MS, every_ms) * 1000
    names = sorted((group_name(number), topic) for number in range(shape.groups) for topic in topic_names(number))
    schema = definitions.table("lag_history").schema
    pairs = max(1, _ROWS_AT_ONCE // len(times))

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(names), pairs):
            yield _batch(schema, names[start : start + pairs], times)

    def append(table: DeltaTable, stamp: str) -> bool:
        rows = pa.RecordBatchReader.from_batches(schema, batches())
        write_deltalake(table, rows, mode="append", target_file_size=_FILE_BYTES, commit_properties=stamped(stamp))
        return True

    writer = TablesWriter.claim(store)
    writer.begin()
    writer.commit("lag_history", append)
    assert writer.last is not None
    finish_batch(writer, writer.last, Phases(at_ms(NEWEST_MS)), at_ms(NEWEST_MS))
    return len(names) * len(times)


def _batch(schema: pa.Schema, names: list[tuple[str, str]], times: np.ndarray) -> pa.RecordBatch:
    count = len(names) * len(times)
    pairs = np.array(names, object)
    lag = np.arange(count) % 1000
    zeros = pa.array(np.zeros(count, np.int32))
    columns = {
        "group_id": pa.array(np.repeat(pairs[:, 0], len(times)), pa.string()),
        "topic": pa.array(np.repeat(pairs[:, 1], len(times)), pa.string()),
        "sampled_at": pa.array(np.tile(times, len(names)), TIMESTAMP),
        "partitions": pa.array(np.full(count, PARTITIONS_PER_TOPIC, np.int32)),
        "unknown_partitions": zeros,
        "lag": pa.array(lag),
        "blocked_partitions": zeros,
        "behind": pa.ListArray.from_arrays(
            pa.array(np.zeros(count + 1, np.int32)), pa.array([], schema.field("behind").type.value_type)
        ),
        "commits_read_until": pa.array(np.tile(times, len(names)), TIMESTAMP),
        "batch_id": pa.array(np.zeros(count, np.int64)),
    }
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.record_batch(arrays, schema=schema)
