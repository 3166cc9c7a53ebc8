"""Samples of end offsets, and the lag that follows from them: a batch of its own, which reads no records.

The log ends of a sample are those of the time at which the commits were read: `SampleSchedule` requests them when a batch has
just read up to the end of the groups' log. So lag is neither negative because of the order of reading, nor greater by commits
that are not read yet. The rows of `lag` state both times (`commits_read_until`, `sampled_at`). While the job is behind the end of
the log, there is nothing to compare with, and lag is unknown (`catching_up`).

A sample is prepared while batches of records are applied, and written between two of them: `lag` is then of the commits of an
earlier batch, as it is after every further batch.

Records that a sample shows as deleted are lost only if the group had not committed behind them by then. Commits of the sample are
older than its log starts, unless the end of the groups' log was requested again after them; otherwise the commits of the next
sample decide.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import ArrowColumn
from coordinator_core.health import (
    DEFAULT_SETTINGS,
    END_OFFSETS_SCHEMA,
    NONE,
    CommitColumns,
    HotColumns,
    LagReason,
    StatusSettings,
    TrendColumns,
    hot_columns,
    lag_columns,
)
from coordinator_core.health.sample_columns import integers
from coordinator_core.health.sample_tables import SampledPartitions
from pipelines.batch.small_files import COMPACT_EVERY, compact_appended
from pipelines.batch.without_records import finish_batch, stored_rows, write_rows
from pipelines.lag.columns import KEY, milliseconds
from pipelines.lag.inputs.lag_inputs import LagInputs
from pipelines.lag.inputs.open_transactions import OpenTransactions
from pipelines.lag.sampling.added_changes import AddedChanges
from pipelines.lag.sampling.log_end import SAME_TIME_MS
from pipelines.lag.sampling.sample_history import SampleHistory
from pipelines.lag.sampling.share_groups import SHARE_OFFSETS, ShareGroups
from pipelines.lag.settings import settings_text
from pipelines.lag.tables.blocking_transactions import greatest_pending_offsets
from pipelines.lag.tables.commit_windows import CommitWindows
from pipelines.lag.tables.group_statuses import GroupStatuses
from pipelines.lag.tables.lag_history import LagHistory
from pipelines.lag.tables.lag_trend import LagTrends
from pipelines.lag.tables.partition_rules import SampledPositions
from pipelines.lag.tables.unconsumed_positions import unconsumed_positions
from pipelines.query.engine import Snapshot
from pipelines.query.kept_rows import KeptRows
from pipelines.query.positions import POSITION_SCHEMA, POSITIONS
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.phases import Phases
from pipelines.runtime.timestamps import TIMESTAMP, to_ms
from pipelines.source.partition_sets import PartitionSets, partitions_by_topic, united, without
from pipelines.tables.reached_position import ReachedPosition
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter

#: Samples partitions: a row per partition with the columns of `END_OFFSETS_SCHEMA`.
SampleTopics = Callable[[PartitionSets], pa.Table]


@dataclass(frozen=True)
class PreparedSample:
    """A sample with the rows of its tables, in the order of the writes.

    `reached` is the position of the tables in the log, if the sample has shown a newer one than the last batch did.
    """

    tables: Mapping[str, pa.Table]
    phases: Phases
    newest_ms: int
    reached: ReachedPosition | None = None


class LagSampling:
    """Samples the topics of all groups, and writes the tables of samples. For one thread at a time."""

    def __init__(
        self,
        sample_topics: SampleTopics,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        inputs: LagInputs | None = None,
        settings: StatusSettings = DEFAULT_SETTINGS,
        share_groups: ShareGroups | None = None,
    ) -> None:
        self._sample_topics = sample_topics
        self._share_groups = share_groups
        self._clock = clock
        self._settings = settings
        self._inputs = inputs or LagInputs()
        self._open_transactions = OpenTransactions(self._inputs.first_records)
        #: Reads with a store of its own, because another thread writes with that of the writer.
        self._rows: KeptRows | None = None
        self._history: SampleHistory | None = None
        #: The partitions of all positions of the last prepared sample.
        self._wanted: PartitionSets | None = None
        self._changes = AddedChanges()
        self._windows = CommitWindows(settings)
        self._trends = LagTrends(settings)
        self._lag_history = LagHistory()
        self._statuses = GroupStatuses(settings)
        #: The batch that wrote the table `lag`, and the time of its newest sample.
        self._written: tuple[int | None, int] = (None, 0)
        #: The time for which the last sample holds.
        self._sampled_until_ms = 0

    def sample(self, writer: TablesWriter) -> Batch | None:
        """Write a batch with a sample of now, for tables that have all commits of now.

        None if no group has a position yet, or if nothing changed since the last batch.

        Raises:
            LogError: no broker answers.
            AnotherWriter: another job took over the tables.
        """
        last = writer.last
        if last is None:
            return None
        root = writer.store.root
        positions = self._positions(self._snapshot(root, last))
        samples = self._sample_topics(partitions_by_topic(positions)) if positions.num_rows else None
        prepared = None if samples is None else self.prepare(root, last, samples)
        return None if prepared is None else self.write(writer, prepared)

    def ask(self, root: str, last: Batch | None, new: PartitionSets | None = None) -> pa.Table:
        """Request the log ends of the partitions of all groups, as far as they are known by now, and of `new` ones.

        The partitions are those of the last prepared sample, or of the batch `last` of the tables under `root`. It may run
        beside a batch, but not beside `prepare`. Raises LogError if no broker answers.
        """
        if self._wanted is None and last is not None:
            self._wanted = partitions_by_topic(self._positions(self._snapshot(root, last)))
        wanted = united(self._wanted or {}, new or {})
        return self._sample_topics(wanted) if wanted else END_OFFSETS_SCHEMA.empty_table()

    def prepare(self, root: str, last: Batch, samples: pa.Table, reached: ReachedPosition | None = None) -> PreparedSample | None:
        """Compute the rows of a sample of the batch `last` of the tables under `root`; None as for `sample`.

        `samples` are the log ends at the time of `reached`, by default that of the batch. Those that are missing, of partitions
        that are new in the batch, are requested here, if that is still the same time. Meanwhile another thread may write the
        tables.

        Raises:
            LogError: no broker answers.
        """
        phases = Phases(self._clock())
        snapshot = self._snapshot(root, last)
        history = self._begun(snapshot)
        with phases.timed("read"):
            positions = self._positions(snapshot)
        self._wanted = partitions_by_topic(positions)
        if not positions.num_rows:
            return None
        read_until = (reached.read_until if reached else None) or last.complete_until
        missing = without(self._wanted, partitions_by_topic(samples))
        if missing and to_ms(self._clock()) - to_ms(read_until) <= SAME_TIME_MS:
            samples = pa.concat_tables([samples, self._sample_topics(missing)])
        newest_ms = _newest_ms(samples["answered_at"])
        if newest_ms:
            # another thread has asked for most of them
            phases.add("sample", _oldest_ms(samples["asked_at"]), newest_ms)
        if self._written == (last.batch_id, newest_ms):
            return None
        with phases.timed("plan"):
            proven_ms = to_ms(read_until)
            if reached is None and proven_ms > newest_ms:
                # a copy of segments, which holds commits and log starts of unknown order, whenever it is read
                proven_ms = newest_ms - 1
            tables = self._tables(snapshot, positions, samples, history, read_until, proven_ms)
        if self._share_groups is not None:
            with phases.timed("share_groups"):
                shared = self._share_groups.rows(snapshot)
            tables |= {} if shared is None else {SHARE_OFFSETS: shared}
        return PreparedSample(tables, phases, newest_ms, reached)

    def prepare_unknown(self, root: str, last: Batch) -> PreparedSample | None:
        """As `prepare`, for a batch that did not read up to the end of the log: lag is unknown, since it catches up."""
        phases = Phases(self._clock())
        snapshot = self._snapshot(root, last)
        history = self._begun(snapshot)
        with phases.timed("read"):
            positions = self._positions(snapshot)
        self._wanted = partitions_by_topic(positions)
        if not positions.num_rows:
            return None
        with phases.timed("catching_up"):
            tables = self._tables(snapshot, positions, None, history, last.complete_until)
        return PreparedSample(tables, phases, 0)

    def _snapshot(self, root: str, batch: Batch) -> Snapshot:
        if self._rows is None or self._rows.root != root:
            self._rows = KeptRows(TableStore(root))
        return self._rows.snapshot(batch)

    def _begun(self, snapshot: Snapshot) -> SampleHistory:
        """The samples of the tables; the first call of a process continues with what earlier ones have written."""
        if self._history is None:
            self._history = SampleHistory(stored_rows(snapshot, "end_offsets"))
            stored_lag = stored_rows(snapshot, "lag")
            self._trends.begin(stored_lag)
            self._inputs.begin(stored_lag)
            self._sampled_until_ms = _sampled_at_ms(stored_lag)
            self._written = (pc.max(stored_lag["batch_id"]).as_py(), self._sampled_until_ms)
        return self._history

    @staticmethod
    def _positions(snapshot: Snapshot) -> pa.Table:
        return snapshot.query(POSITIONS).cast(POSITION_SCHEMA)

    def write(self, writer: TablesWriter, prepared: PreparedSample) -> Batch:
        """Write a sample as the next batch. No other batch may be written meanwhile.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        last, phases = writer.last, prepared.phases
        assert last is not None, "a sample is prepared after a batch"
        batch_id = writer.begin()
        if batch_id % COMPACT_EVERY == COMPACT_EVERY - 1:
            with phases.timed("compact"):
                compact_appended(writer)
        for name, rows in prepared.tables.items():
            with phases.timed(f"write_{name}", rows.num_rows):
                write_rows(writer, name, rows, batch_id)
            failpoint(f"sample:after:{name}")
        batch = finish_batch(
            writer,
            last,
            phases,
            self._clock(),
            prepared.reached,
            transaction_ms=self._settings.transaction_ms,
            status_settings=settings_text(self._settings),
        )
        # a version for each sample, also over many short processes
        if batch.versions["lag"] // COMPACT_EVERY > last.versions.get("lag", 0) // COMPACT_EVERY:
            writer.remove_sampled_files()
            failpoint("sample:removed:files")
        self._written = (batch.batch_id, prepared.newest_ms)
        return batch

    def _tables(
        self,
        snapshot: Snapshot,
        positions: pa.Table,
        samples: pa.Table | None,
        history: SampleHistory,
        read_until: datetime,
        proven_ms: int = NONE,
    ) -> dict[str, pa.Table]:
        """Rows of all tables, in the order of the writes. Without `samples` the lag is unknown, since the job catches up.

        Log starts that were sampled until `proven_ms` prove losses.
        """
        # without log ends, status is that of the commits; a source without a cluster has no time of its own
        newest_ms = 0 if samples is None else _newest_ms(samples["answered_at"])
        # lag that was known until a sample is unknown after it
        unsampled_ms = to_ms(self._clock()) if samples is not None else max(to_ms(read_until), self._sampled_until_ms + 1)
        at_ms = self._sampled_until_ms = newest_ms or unsampled_ms
        stored = history.add(END_OFFSETS_SCHEMA.empty_table() if samples is None else samples)
        history.prune(positions, at_ms)
        sampled = SampledPartitions(history.table())
        known = sampled.partition_numbers(positions["topic"], positions["partition"])
        self._changes.refresh(snapshot)
        self._windows.refresh(snapshot, self._changes.after, positions, known, sampled.columns, at_ms)
        trend = self._trends.columns(
            snapshot, positions, self._windows.added, known, sampled.columns, at_ms, is_sampled=samples is not None
        )
        partition = np.full(len(known), -1) if samples is None else known
        unknown = LagReason.CATCHING_UP if samples is None else None
        commits = CommitColumns(
            partition=partition,
            offset=integers(positions["committed_offset"]),
            committed_at_ms=milliseconds(positions["commit_timestamp"]),
            topic_id=sampled.topic_id_numbers(positions["topic_id"]),
            moved_at_ms=self._windows.moved_at_ms,
            pending_offset=greatest_pending_offsets(snapshot, positions),
            read_until_ms=np.full(len(partition), proven_ms),
        )
        lag = self._lag(positions, commits, sampled, trend, read_until, unknown)
        lag = self._open_transactions.add_columns(lag, snapshot, sampled.columns, partition)
        unconsumed = unconsumed_positions(snapshot, positions, lag["lag_reason"], at_ms, self._settings)
        lag = lag.append_column("unconsumed", unconsumed.reasons)
        windows = self._windows.columns(partition, sampled.columns, at_ms)
        moved_at_ms = self._windows.moved_at_ms
        hot = HotColumns.none()
        if samples is not None:
            hot = hot_columns(sampled.columns, sampled.topic_of_partition, at_ms, self._settings)
        evaluated = SampledPositions(positions, lag, windows, moved_at_ms, partition, sampled.columns, at_ms, unconsumed, hot)
        return {
            "end_offsets": stored,
            "lag": lag,
            "lag_history": self._lag_history.add(lag, at_ms, read_until),
            **self._statuses.tables(snapshot, self._changes.after, evaluated),
        }

    def _lag(
        self,
        positions: pa.Table,
        commits: CommitColumns,
        samples: SampledPartitions,
        trend: TrendColumns,
        read_until: datetime,
        unknown: LagReason | None,
    ) -> pa.Table:
        """The rows of `lag`; with the reason `unknown` their lag is not known."""
        if unknown is None:
            lag = self._inputs.lag(commits, positions, samples, trend)
        else:
            lag = lag_columns(commits, samples.columns, without_samples=unknown)
        owners = positions.select([*KEY, "consumer_id", "member_host", "client_id"])
        columns = dict(zip(owners.column_names, owners.columns, strict=True)) | dict(
            zip(lag.column_names, lag.columns, strict=True)
        )
        columns["commits_read_until"] = pa.repeat(pa.scalar(read_until, TIMESTAMP), positions.num_rows)
        return pa.table(columns)


def _sampled_at_ms(lag: pa.Table) -> int:
    return _newest_ms(lag["sampled_at"])


def _newest_ms(times: ArrowColumn) -> int:
    """The newest of the times; 0 without one."""
    newest = pc.max(times.cast(pa.int64())).as_py()
    return 0 if newest is None else newest // 1000


def _oldest_ms(times: ArrowColumn) -> int:
    """The oldest of the times, of which there is one."""
    oldest: int = pc.min(times.cast(pa.int64())).as_py()
    return oldest // 1000
