"""Samples of end offsets, and the lag that follows from them: a batch of its own, which reads no records.

The commits are those of the last batch, and the end offsets are requested afterwards, so lag is never negative because of the
order of reading. The rows of `lag` state both times (`commits_read_until`, `sampled_at`). A sample is prepared while batches of
records are applied, and written between two of them: `lag` is then of the commits of an earlier batch, as it is after every
further batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import ArrowColumn, Int64s
from coordinator_core.health import DEFAULT_SETTINGS, NONE, CommitColumns, StatusSettings
from coordinator_core.health.lag_inputs import SLOPE_WINDOW_MS
from coordinator_core.health.sample_columns import integers
from coordinator_core.health.sample_tables import SampledPartitions
from pipelines.batch.small_files import COMPACT_EVERY, compact_appended
from pipelines.batch.without_records import finish_batch, stored_rows, write_rows
from pipelines.failpoints import failpoint
from pipelines.lag.columns import KEY, milliseconds, row_numbers
from pipelines.lag.commit_windows import CommitWindows
from pipelines.lag.group_statuses import GroupStatuses
from pipelines.lag.lag_history import LagHistory
from pipelines.lag.lag_inputs import LagInputs
from pipelines.lag.partition_rules import SampledPositions
from pipelines.lag.positions import POSITIONS
from pipelines.lag.sample_history import SampleHistory
from pipelines.phases import Phases
from pipelines.query.engine import Snapshot
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.timestamps import TIMESTAMP

#: Samples partitions by topic name: a row per partition with the columns of `END_OFFSETS_SCHEMA`.
SampleTopics = Callable[[Mapping[str, set[int]]], pa.Table]

#: Distance of the earlier lags that are kept for the slope.
_SLOPE_STEP_MS = 60_000

_POSITION_SCHEMA = pa.schema(
    {
        "group_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "consumer_id": pa.string(),
        "member_host": pa.string(),
        "client_id": pa.string(),
        "committed_offset": pa.int64(),
        "commit_timestamp": TIMESTAMP,
        "record_timestamp": TIMESTAMP,
        "topic_id": pa.string(),
    }
)
_EARLIER = ["sampled_at", "group_offset", "lag"]


@dataclass(frozen=True)
class PreparedSample:
    """A sample with the rows of its tables, in the order of the writes."""

    tables: Mapping[str, pa.Table]
    phases: Phases
    newest_ms: int


class LagSampling:
    """Samples the topics of all groups, and writes the tables of samples. For one thread at a time."""

    def __init__(
        self,
        sample_topics: SampleTopics,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        inputs: LagInputs | None = None,
        settings: StatusSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._sample_topics = sample_topics
        self._clock = clock
        self._inputs = inputs or LagInputs()
        #: A store of its own, because another thread writes with that of the writer.
        self._store: TableStore | None = None
        self._history: SampleHistory | None = None
        self._windows = CommitWindows(settings)
        self._lag_history = LagHistory()
        self._statuses = GroupStatuses(settings)
        #: The batch that wrote the table `lag`, and the time of its newest sample.
        self._written: tuple[int | None, int] = (None, 0)
        #: Lags of the last samples, for the slope.
        self._earlier: list[pa.Table] = []

    def sample(self, writer: TablesWriter) -> Batch | None:
        """Write a batch with a sample of now; None if no group has a position yet, or if nothing changed since the last batch.

        Raises:
            LogError: no broker answers.
            AnotherWriter: another job took over the tables.
        """
        prepared = None if writer.last is None else self.prepare(writer.store.root, writer.last)
        return None if prepared is None else self.write(writer, prepared)

    def prepare(self, root: str, last: Batch) -> PreparedSample | None:
        """Take a sample after the batch `last` of the tables under `root`, and compute its rows; None as for `sample`.

        Meanwhile another thread may write the tables. Raises LogError if no broker answers.
        """
        phases = Phases(self._clock())
        if self._store is None or self._store.root != root:
            self._store = TableStore(root)
        snapshot = Snapshot(self._store, last)
        if self._history is None:
            self._history = SampleHistory(stored_rows(snapshot, "end_offsets"))
            stored_lag = stored_rows(snapshot, "lag")
            self._earlier = [stored_lag.select([*KEY, *_EARLIER])]
            self._inputs.begin(stored_lag)
            self._written = (pc.max(stored_lag["batch_id"]).as_py(), _sampled_at_ms(stored_lag))
        with phases.timed("read"):
            positions = snapshot.query(POSITIONS).cast(_POSITION_SCHEMA)
        if not positions.num_rows:
            return None
        with phases.timed("sample"):
            samples = self._sample_topics(_partitions_by_topic(positions))
        newest_ms = _newest_ms(samples["answered_at"])
        if self._written == (last.batch_id, newest_ms):
            return None
        with phases.timed("plan"):
            tables = self._tables(snapshot, positions, samples, self._history)
        return PreparedSample(tables, phases, newest_ms)

    def write(self, writer: TablesWriter, prepared: PreparedSample) -> Batch:
        """Write a sample as the next batch. No other batch may be written meanwhile.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        last, phases = writer.last, prepared.phases
        assert last is not None, "a sample is prepared after a batch"
        batch_id = writer.begin()
        for name, rows in prepared.tables.items():
            with phases.timed(f"write_{name}"):
                write_rows(writer, name, rows, batch_id)
            failpoint(f"sample:after:{name}")
        if batch_id % COMPACT_EVERY == COMPACT_EVERY - 1:
            with phases.timed("compact"):
                compact_appended(writer)
        batch = finish_batch(writer, last, phases, self._clock())
        # a version for each sample, also over many short processes
        if batch.versions["lag"] // COMPACT_EVERY > last.versions.get("lag", 0) // COMPACT_EVERY:
            writer.remove_sampled_files()
            failpoint("sample:removed:files")
        self._written = (batch.batch_id, prepared.newest_ms)
        return batch

    def _tables(self, snapshot: Snapshot, positions: pa.Table, samples: pa.Table, history: SampleHistory) -> dict[str, pa.Table]:
        """Rows of all tables, in the order of the writes."""
        # without samples, status is that of now
        at_ms = _newest_ms(samples["answered_at"]) or int(self._clock().timestamp() * 1000)
        read_until = snapshot.batch.finished_at
        stored = history.add(samples)
        history.prune(positions, at_ms)
        sampled = SampledPartitions(history.table())
        partition = sampled.partition_numbers(positions["topic"], positions["partition"])
        self._windows.refresh(snapshot, positions, partition, sampled.columns, at_ms)
        lag = self._lag(positions, partition, sampled, read_until)
        windows = self._windows.columns(partition, sampled.columns, at_ms)
        evaluated = SampledPositions(positions, lag, windows, partition, sampled.columns, at_ms)
        return {
            "end_offsets": stored,
            "lag": lag,
            "lag_history": self._lag_history.add(lag, at_ms, read_until),
            **self._statuses.tables(snapshot, evaluated),
        }

    def _lag(
        self,
        positions: pa.Table,
        partition: Int64s,
        samples: SampledPartitions,
        read_until: datetime,
    ) -> pa.Table:
        commits = CommitColumns(
            partition=partition,
            offset=integers(positions["committed_offset"]),
            committed_at_ms=milliseconds(positions["commit_timestamp"]),
            topic_id=samples.topic_id_numbers(positions["topic_id"]),
            moved_at_ms=self._windows.moved_at_ms,
            **self._slope_starts(positions, int(samples.columns.answered_at_ms.max(initial=0))),
        )
        lag = self._inputs.lag(commits, positions, samples)
        owners = positions.select([*KEY, "consumer_id", "member_host", "client_id"])
        columns = dict(zip(owners.column_names, owners.columns, strict=True)) | dict(
            zip(lag.column_names, lag.columns, strict=True)
        )
        columns["commits_read_until"] = pa.repeat(pa.scalar(read_until, TIMESTAMP), positions.num_rows)
        found = pa.table(columns)
        self._remember(found.select([*KEY, *_EARLIER]))
        return found

    def _slope_starts(self, positions: pa.Table, now_ms: int) -> dict[str, Int64s]:
        """The oldest lag of each row within the window of the slope that ends at `now_ms`."""
        self._earlier = [table for table in self._earlier if 0 < now_ms - _sampled_at_ms(table) <= SLOPE_WINDOW_MS]
        if not self._earlier:
            return {}
        earlier = self._earlier[0]
        row = row_numbers(positions, earlier)

        def earlier_value(column: Int64s) -> Int64s:
            return np.append(column, NONE)[row]

        lag = earlier_value(integers(earlier["lag"]))
        return {
            "earlier_at_ms": np.where(lag == NONE, NONE, earlier_value(milliseconds(earlier["sampled_at"]))),
            "earlier_offset": earlier_value(integers(earlier["group_offset"])),
            "earlier_lag": lag,
        }

    def _remember(self, lag: pa.Table) -> None:
        """Keep one lag a minute."""
        if not self._earlier or _sampled_at_ms(lag) - _sampled_at_ms(self._earlier[-1]) >= _SLOPE_STEP_MS:
            self._earlier.append(lag)


def _partitions_by_topic(positions: pa.Table) -> dict[str, set[int]]:
    wanted: dict[str, set[int]] = {}
    distinct = positions.group_by(["topic", "partition"]).aggregate([])
    for topic, partition in zip(distinct["topic"].to_pylist(), distinct["partition"].to_pylist(), strict=True):
        wanted.setdefault(topic, set()).add(partition)
    return wanted


def _sampled_at_ms(lag: pa.Table) -> int:
    return _newest_ms(lag["sampled_at"])


def _newest_ms(times: ArrowColumn) -> int:
    """The newest of the times; 0 without one."""
    newest = pc.max(times.cast(pa.int64())).as_py()
    return 0 if newest is None else newest // 1000
