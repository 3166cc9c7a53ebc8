"""Rows of `lag_history`: the lag of each group by topic at each sample, with runs of no change folded. Times in ms.

While nothing of a group changes, only the first and the last row of the run are stored, and one in ten minutes. Rows of all
topics of a group are stored together, so sums over the topics of a group are right.
"""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.codec.runs import sums_of_runs
from coordinator_core.health import NONE
from coordinator_core.health.sample_columns import integers, nullable
from pipelines.lag.columns import milliseconds, row_numbers, starts_of_runs
from pipelines.lag.inputs.open_transactions import COLUMNS
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.tables import definitions

#: A run is stored at its ends, and at least this often: a restart loses no more than this of its end.
_STORED_EVERY_MS = 600_000

_KEY = ["group_id", "topic"]


@dataclass(frozen=True)
class _Sample:
    """Rows of one sample by group and topic, with a number that is equal for equal rows, and when each was stored.

    `stored_at_ms` is the time of the last stored row of the same run; `is_stored` is true for rows that are stored themselves.
    """

    rows: pa.Table
    digest: Int64s
    stored_at_ms: Int64s
    is_stored: Numbers


class LagHistory:
    """History from sample to sample. The first sample of a process stores all rows."""

    def __init__(self) -> None:
        self._last: _Sample | None = None

    def add(self, lag: pa.Table, at_ms: int, read_until: datetime) -> pa.Table:
        """Add the rows of `lag`, sorted by key, at a sample. Returns the rows to store, without the batch, sorted by group."""
        rows, digest = _by_topic(lag, at_ms, read_until)
        last, self._last = self._last, None
        if last is None:
            self._last = _Sample(rows, digest, np.full(len(digest), at_ms), np.full(len(digest), True))
            return rows
        before = row_numbers(rows, last.rows, _KEY)
        found = before >= 0
        is_same = found & (np.append(last.digest, NONE)[before] == digest)
        stored_at = np.where(found, np.append(last.stored_at_ms, NONE)[before], NONE)
        gone = np.full(last.rows.num_rows, True)
        gone[before[found]] = False
        lost_topic = pc.is_in(rows["group_id"], last.rows["group_id"].filter(pa.array(gone)).combine_chunks()).to_numpy()
        changed = _any_of_group(rows, ~is_same | lost_topic)
        stored = changed | _any_of_group(rows, at_ms - stored_at >= _STORED_EVERY_MS)
        # the last row of a run that ends now, or of a deleted group
        ended = ~last.is_stored
        ended[before[found & ~changed]] = False
        self._last = _Sample(rows, digest, np.where(stored, at_ms, stored_at), stored)
        ends = last.rows.filter(pa.array(ended))
        written = pa.concat_tables([ends, rows.filter(pa.array(stored))])
        return written.sort_by([("group_id", "ascending"), ("sampled_at", "ascending"), ("topic", "ascending")])


def _by_topic(lag: pa.Table, at_ms: int, read_until: datetime) -> tuple[pa.Table, Int64s]:
    bounds = starts_of_runs(lag["group_id"], lag["topic"])
    starts = bounds[:-1]
    if not len(starts):
        return _schema().empty_table(), np.zeros(0, np.int64)
    sizes = np.diff(bounds)
    partition, value, lost = (integers(lag[name]) for name in ("partition", "lag", "messages_lost"))
    known = value != NONE
    floored = np.where(known, np.maximum(value, 0), NONE)
    age = lag["lag_seconds"].to_numpy()
    blocked = lag["blocked_by_transaction"].fill_null(False).to_numpy()
    greatest, of_greatest = _greatest(floored, starts, sizes)
    oldest, of_oldest = _greatest(np.where(np.isnan(age), NONE, np.nan_to_num(age) * 1000).astype(np.int64), starts, sizes)
    behind = floored > 0
    counts = np.add.reduceat(behind.astype(np.int64), starts)
    is_known, has_age = greatest != NONE, oldest != NONE
    taken = lag.take(pa.array(of_oldest))
    lists = pa.StructArray.from_arrays(
        [
            pa.array(partition[behind], pa.int32()),
            pa.array(floored[behind]),
            pa.array(np.round(age[behind], 1), mask=np.isnan(age[behind])),
        ],
        names=["partition", "lag", "lag_seconds"],
    )
    columns = {
        **{name: lag[name].take(pa.array(starts)) for name in _KEY},
        "sampled_at": pa.repeat(pa.scalar(timestamp(at_ms), TIMESTAMP), len(starts)),
        "partitions": sizes,
        "unknown_partitions": np.add.reduceat((~known).astype(np.int64), starts),
        "lag": nullable(np.where(is_known, sums_of_runs(np.where(known, floored, 0), starts), NONE)),
        "max_lag": nullable(greatest),
        "max_lag_partition": pa.array(partition[of_greatest], mask=~is_known),
        **{
            name: pa.chunked_array([pa.array(taken[name].to_numpy(), mask=~has_age | np.isnan(taken[name].to_numpy()))])
            for name in ("lag_seconds", "lag_seconds_low", "lag_seconds_high")
        },
        "lag_seconds_partition": pa.array(partition[of_oldest], mask=~has_age),
        "messages_lost": nullable(
            np.where(np.maximum.reduceat(lost, starts) == NONE, NONE, sums_of_runs(np.where(lost == NONE, 0, lost), starts))
        ),
        "blocked_partitions": np.add.reduceat(blocked.astype(np.int64), starts),
        "blocked": _blocked(lag, partition, starts),
        "behind": pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(counts)), pa.int32()), lists),
        "commits_read_until": pa.repeat(pa.scalar(read_until, TIMESTAMP), len(starts)),
    }
    since, producer = milliseconds(lag["blocked_since"]), integers(lag["blocked_by_producer_id"])
    named = lag["blocked_by_transactional_id"].is_valid().to_numpy().astype(np.int64)
    digest = np.add.reduceat(_digest(partition, value, lost, blocked.astype(np.int64), since, producer, named), starts)
    return pa.table(columns).cast(_schema()), digest


def _blocked(lag: pa.Table, partition: Int64s, starts: Int64s) -> pa.ListArray:
    """For each run, the rows that an open transaction blocks, with the columns about it."""
    is_blocked = lag["blocked_since"].is_valid().to_numpy()
    blocked = lag.select(list(COLUMNS)).filter(pa.array(is_blocked)).combine_chunks()
    structs = pa.StructArray.from_arrays(
        [pa.array(partition[is_blocked], pa.int32()), *(_only_chunk(blocked[name]) for name in COLUMNS)],
        names=["partition", *COLUMNS],
    )
    counts = np.add.reduceat(is_blocked.astype(np.int64), starts)
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(counts)), pa.int32()), structs)


def _only_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _schema() -> pa.Schema:
    return definitions.table("lag_history").unstamped_schema


def _greatest(values: Int64s, starts: Int64s, sizes: Int64s) -> tuple[Int64s, Int64s]:
    """The greatest value of each run, and its first row."""
    greatest = np.maximum.reduceat(values, starts)
    is_it = values == np.repeat(greatest, sizes)
    return greatest, np.minimum.reduceat(np.where(is_it, np.arange(len(values)), len(values)), starts)


def _digest(*columns: Int64s) -> Int64s:
    """A number for each row that depends on all its values; ages are left out, because they grow while nothing changes."""
    digest = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        digest = (digest ^ column.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        digest ^= digest >> np.uint64(29)
    return digest.view(np.int64)


def _any_of_group(rows: pa.Table, condition: Numbers) -> Numbers:
    """True for all rows of a group if the condition holds for one of them."""
    bounds = starts_of_runs(rows["group_id"])
    if not rows.num_rows:
        return condition
    found: Numbers = np.repeat(np.logical_or.reduceat(condition, bounds[:-1]), np.diff(bounds))
    return found
