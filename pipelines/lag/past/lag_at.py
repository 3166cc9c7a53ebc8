"""Lag at a past batch: that of the last sample until then, with the commits and the log ends that the sample had.

Commits of one time are never compared with log ends of another: commits that were read after the sample do not count. While the
files of the sample exist, its rows are read; afterwards they are computed again from the same positions and samples. Times in ms.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import (
    LAG_SCHEMA,
    NONE,
    CommitColumns,
    LagReason,
    OpenTransaction,
    SampledPartitions,
    lag_columns,
)
from coordinator_core.health.sample_columns import integers
from pipelines.lag.columns import KEY, milliseconds
from pipelines.lag.past.derived_positions import derived_positions
from pipelines.lag.past.samples_at import sampled_until
from pipelines.lag.tables.blocked_history import blocked_at
from pipelines.lag.tables.blocking_transactions import greatest_pending_offsets
from pipelines.query.engine import Snapshot
from pipelines.query.positions import POSITION_SCHEMA, POSITIONS
from pipelines.runtime.errors import RemovedState, UsageError
from pipelines.runtime.timestamps import TIMESTAMP, to_ms
from pipelines.tables.store import Batch, is_in, timestamp_literal

_Row = Mapping[str, Any]

#: Phase of batches that are samples, and of those without lag.
SAMPLE_PHASE, UNKNOWN_PHASE = "write_lag", "catching_up"

_OWNER = ("consumer_id", "member_host", "client_id")
_SCHEMA = pa.schema(
    [
        *(("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
        *((name, pa.string()) for name in _OWNER),
        *LAG_SCHEMA,
        ("commits_read_until", TIMESTAMP),
    ]
)
_LAST_SAMPLE = """
SELECT batch_id, started_at, finished_at, phase_ms['{unknown}'] IS NOT NULL AS is_unknown
FROM batches WHERE batch_id <= {batch} AND phase_ms['{phase}'] IS NOT NULL
ORDER BY batch_id DESC LIMIT 1
"""
#: The batch whose commits a sample used: the newest one with the commits until a time, and finished before the sample was begun.
_POSITIONS_OF = """
SELECT max(batch_id) AS batch_id FROM batches
WHERE batch_id < {sample} AND finished_at <= {started} AND COALESCE(log_read_until, finished_at) <= {read_until}
"""
#: When the sample and the batch before it had read the log to its end.
_READ_UNTIL = """
SELECT max(CASE WHEN batch_id = {sample} THEN log_read_until END) AS of_sample,
       max(CASE WHEN batch_id < {sample} THEN log_read_until END) AS before
FROM batches WHERE batch_id IN ({sample} - 1, {sample})
"""
_NEXT_SAMPLE = "SELECT min(batch_id) AS batch_id FROM batches WHERE batch_id > {batch} AND phase_ms['{phase}'] IS NOT NULL"
_SAMPLED_AT = """
SELECT max(at) AS at, max(read_until) AS read_until FROM (
  SELECT max(answered_at) AS at, max(answered_at) AS read_until FROM end_offsets WHERE batch_id = {sample}
  UNION ALL SELECT max(sampled_at) AS at, max(commits_read_until) AS read_until FROM lag_history WHERE batch_id = {sample}
) s
"""


class LastSample(NamedTuple):
    """A sample: its time, the batch whose commits it used, and whether the job was catching up, so that lag was unknown.

    All commits before `proven_ms` were counted, so log starts that were sampled until then prove losses. `log_read_until` is that
    of the batch of the sample.
    """

    batch_id: int
    at: datetime
    positions_batch: int
    is_unknown: bool
    proven_ms: int
    log_read_until: datetime | None


def last_sample(newest: Snapshot, batch_id: int) -> LastSample | None:
    """The last sample until a batch; None before the first one. `newest` has the tables at the batch or later."""
    found = newest.query(_LAST_SAMPLE.format(batch=batch_id, phase=SAMPLE_PHASE, unknown=UNKNOWN_PHASE)).to_pylist()
    if not found:
        return None
    (sample,) = found
    number = sample["batch_id"]
    (stored,) = newest.query(_SAMPLED_AT.format(sample=number)).to_pylist()
    times = {"started": sample["started_at"], "read_until": stored["read_until"] or sample["finished_at"]}
    of_positions = newest.query(
        _POSITIONS_OF.format(sample=number, **{name: timestamp_literal(at) for name, at in times.items()})
    )
    # a sample that found no change is not stored: its values hold until it was complete
    at = stored["at"] or sample["finished_at"]
    positions_batch = of_positions["batch_id"][0].as_py()
    (ends,) = newest.query(_READ_UNTIL.format(sample=number)).to_pylist()
    until = ends["of_sample"]
    if until is None or (ends["before"] is not None and until <= ends["before"]):
        # the sample did not request the end of the log again
        until = newest.as_of(positions_batch).batch.complete_until
        if until > at:
            # a copy of segments, as for the job
            until = at - timedelta(milliseconds=1)
    return LastSample(number, at, positions_batch, sample["is_unknown"], to_ms(until), ends["of_sample"])


def proven_until_ms(newest: Snapshot, then: Batch, at_ms: int) -> int:
    """Time before which all commits are counted in the tables of `then`, the last batch at `at_ms`.

    Log starts that were sampled until that time prove losses. `newest` has the tables at the batch or later.
    """
    (found,) = newest.query(_NEXT_SAMPLE.format(batch=then.batch_id, phase=SAMPLE_PHASE)).to_pylist()
    following = None if found["batch_id"] is None else last_sample(newest, found["batch_id"])
    if following is not None and to_ms(following.at) <= at_ms and following.positions_batch <= then.batch_id:
        # written after `then` with its commits, of which it knew more
        return following.proven_ms
    sample = last_sample(newest, then.batch_id)
    if sample is not None and then.batch_id != sample.batch_id and then.log_read_until is not None:
        has_read = sample.log_read_until is None or then.log_read_until > sample.log_read_until
        return min(to_ms(then.log_read_until), at_ms) if has_read else sample.proven_ms
    if sample is None or then.batch_id != sample.batch_id:
        return min(to_ms(then.complete_until), at_ms)
    return sample.proven_ms


def status_time(newest: Snapshot, batch: Batch) -> datetime:
    """The time at which statuses of a batch are evaluated: that of the last sample until then, with the commits that it used.

    Later commits are of no use: compared with the log ends of the sample, they are beyond the end.
    """
    sample = last_sample(newest, batch.batch_id)
    if sample is None:
        return batch.finished_at
    return max(sample.at, newest.as_of(sample.positions_batch).batch.finished_at)


def lag_at(newest: Snapshot, batch_id: int, groups: Sequence[str] = ()) -> pa.Table:
    """Lag at the last sample until a batch, with the columns of `lag` except `batch_id`; of these groups, or of all.

    Before the first sample the rows are the positions of the batch, without lag. `newest` has the tables at the batch or later:
    the positions of tables that were removed follow from its histories.

    Raises:
        RemovedState: the histories do not reach back to the batch.
    """
    sample = last_sample(newest, batch_id)
    source = newest.as_of(batch_id if sample is None else sample.positions_batch)
    named = is_in("group_id", groups) if groups else "TRUE"
    try:
        positions = source.query(f"SELECT * FROM ({POSITIONS}) p WHERE {named} ORDER BY group_id, topic, partition").to_pylist()
    except RemovedState:
        positions = derived_positions(newest, source.batch, groups)
    read_until = source.batch.complete_until
    is_unknown = sample is not None and sample.is_unknown
    topics = set() if sample is None or is_unknown else {row["topic"] for row in positions}
    samples = sampled_until(newest, to_ms(read_until if sample is None else sample.at), topics)
    rows = pa.Table.from_pylist(positions, POSITION_SCHEMA)
    proven_ms = NONE if sample is None else sample.proven_ms
    without = LagReason.CATCHING_UP if is_unknown else LagReason.NO_SAMPLE
    lag = _lag(rows, samples, _pending_offsets(source, rows), proven_ms, without)
    # records before an open transaction are not counted again
    has_history = "lag_history" in newest.batch.versions
    blocked = blocked_at(newest, read_until, {row["group_id"] for row in positions}) if has_history else {}
    if blocked:
        lag = _with_blocked(lag, positions, blocked)
    return lag.append_column("commits_read_until", pa.repeat(pa.scalar(read_until, TIMESTAMP), lag.num_rows)).cast(_SCHEMA)


def recorded_lag(batch: Snapshot, newest: Snapshot, groups: Sequence[str] = ()) -> pa.Table:
    """The rows of `lag` at a batch, which are those of the last sample until then; `lag_at` once their files are removed."""
    if "lag" in batch.batch.versions:
        named = f" WHERE {is_in('group_id', groups)}" if groups else ""
        # the files of earlier samples are removed after SAMPLED_HOURS
        with suppress(UsageError):
            rows = batch.query(f"SELECT * FROM lag{named} ORDER BY group_id, topic, partition")
            if rows.num_rows or batch.query("SELECT 1 FROM lag LIMIT 1").num_rows:
                return rows.select(_SCHEMA.names).cast(_SCHEMA)
    return lag_at(newest, batch.batch.batch_id, groups)


def _lag(rows: pa.Table, samples: SampledPartitions, pending: Int64s, proven_ms: int, without_samples: LagReason) -> pa.Table:
    """Keys and owners of positions with their lag at the newest of their samples."""
    commits = CommitColumns(
        partition=samples.partition_numbers(rows["topic"], rows["partition"]),
        offset=integers(rows["committed_offset"]),
        committed_at_ms=milliseconds(rows["commit_timestamp"]),
        topic_id=samples.topic_id_numbers(rows["topic_id"]),
        pending_offset=pending,
        read_until_ms=np.full(rows.num_rows, proven_ms),
    )
    lag = lag_columns(commits, samples.columns, without_samples=without_samples)
    owned = rows.select([*KEY, *_OWNER])
    return pa.table([*owned.columns, *lag.columns], [*owned.column_names, *lag.column_names])


def _pending_offsets(snapshot: Snapshot, rows: pa.Table) -> Int64s:
    """Offsets in open transactions; none where the table of that time is removed."""
    with suppress(RemovedState):
        return greatest_pending_offsets(snapshot, rows)
    return np.full(rows.num_rows, NONE)


def _with_blocked(
    lag: pa.Table, positions: Sequence[_Row], blocked: Mapping[str, Mapping[TopicPartition, OpenTransaction]]
) -> pa.Table:
    """`lag` with the positions that the last sample found blocked, where it is not known."""
    is_stored = [TopicPartition(row["topic"], row["partition"]) in blocked.get(row["group_id"], {}) for row in positions]
    number = lag.schema.get_field_index("blocked_by_transaction")
    column = pc.if_else(pa.array(is_stored, pa.bool_()), pc.fill_null(lag[number], True), lag[number])
    return lag.set_column(number, "blocked_by_transaction", column)
