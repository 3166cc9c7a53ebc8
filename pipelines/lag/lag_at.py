"""Lag at any batch, also between samples: its positions, and the samples around it.

Ends have to be read after the commits that they are compared with. So the first sample after the batch counts, if it was taken
soon; otherwise the samples until the end of the batch. `sampled_at` shows which. Times in ms.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import Any

import pyarrow as pa

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import LAG_SCHEMA, Commit, EndOffsetSample, partition_lag
from pipelines.errors import UsageError
from pipelines.lag.columns import KEY
from pipelines.lag.positions import POSITIONS
from pipelines.lag.samples_at import all_samples, known_samples
from pipelines.query.engine import Snapshot
from pipelines.tables.store import is_in
from pipelines.timestamps import TIMESTAMP, to_ms
from pipelines.timestamps import at_ms as timestamp

#: Age of the first sample after a batch up to which it counts.
_SOON_MS = 600_000

#: Phase of batches that are samples.
SAMPLE_PHASE = "write_lag"

_OWNER = ("consumer_id", "member_host", "client_id")
_SCHEMA = pa.schema(
    [
        *(("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
        *((name, pa.string()) for name in _OWNER),
        *LAG_SCHEMA,
        ("commits_read_until", TIMESTAMP),
    ]
)


def lag_at(batch: Snapshot, newest: Snapshot, groups: Sequence[str] = ()) -> pa.Table:
    """Lag of the positions of `batch`, with the columns of `lag` except `batch_id`; of these groups, or of all.

    `newest` has the samples: tables at `batch` or later.
    """
    named = is_in("group_id", groups) if groups else "TRUE"
    positions = batch.query(f"SELECT * FROM ({POSITIONS}) p WHERE {named} ORDER BY group_id, topic, partition").to_pylist()
    return lag_of_positions(positions, newest, batch.batch.finished_at)


def lag_of_positions(positions: Sequence[Mapping[str, Any]], newest: Snapshot, read_until: datetime) -> pa.Table:
    """Lag of positions, with the columns of POSITIONS, at a time; `newest` has the samples."""
    samples = all_samples(newest, {row["topic"] for row in positions})
    known = {partition: _around(taken, newest_ms, to_ms(read_until)) for partition, (taken, newest_ms) in samples.items()}
    rows = [_row(row, known.get(TopicPartition(row["topic"], row["partition"]), ())) for row in positions]
    return pa.Table.from_pylist([{**row, "commits_read_until": read_until} for row in rows], _SCHEMA)


def recorded_lag(batch: Snapshot, newest: Snapshot, groups: Sequence[str] = ()) -> pa.Table:
    """The rows of `lag` if the batch is a sample whose rows still exist, otherwise `lag_at`."""
    if SAMPLE_PHASE in batch.batch.phase_ms:
        named = f" WHERE {is_in('group_id', groups)}" if groups else ""
        # the files of earlier samples are removed after SAMPLED_HOURS
        with suppress(UsageError):
            rows = batch.query(f"SELECT * FROM lag{named} ORDER BY group_id, topic, partition")
            return rows.select(_SCHEMA.names).cast(_SCHEMA)
    return lag_at(batch, newest, groups)


def _around(samples: Sequence[EndOffsetSample], newest_ms: int | None, at_ms: int) -> tuple[EndOffsetSample, ...]:
    """The samples until the first one after a time, if that was taken soon; otherwise those until the time."""
    until = known_samples(samples, newest_ms, at_ms)
    later = [sample for sample in samples if sample.asked_at_ms >= at_ms]
    if later and later[0].answered_at_ms - at_ms <= _SOON_MS:
        return (*(sample for sample in until if sample.answered_at_ms < later[0].answered_at_ms), later[0])
    return until


def _row(position: Mapping[str, Any], samples: Sequence[EndOffsetSample]) -> dict[str, Any]:
    commit = None
    if position["committed_offset"] is not None:
        committed_at = position["commit_timestamp"]
        commit = Commit(position["committed_offset"], None if committed_at is None else to_ms(committed_at), position["topic_id"])
    lag = asdict(partition_lag(commit, samples))
    sampled_at = lag.pop("sampled_at_ms")
    return {
        **{name: position[name] for name in (*KEY, *_OWNER)},
        **lag,
        "lag_method": str(lag["lag_method"]),
        "lag_reason": None if lag["lag_reason"] is None else str(lag["lag_reason"]),
        "sampled_at": None if sampled_at is None else timestamp(sampled_at),
    }
