"""A history of groups in tables, without Spark: records and samples at given times, and the status that each sample wrote."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from created_tables import created_tables
from log_builder import Log
from model_of_tables import model_status_at
from sampled_topics import START_MS
from table_logs import change_table

from coordinator_core.health import DEFAULT_SETTINGS, EndOffsetSample, StatusSettings, samples_table
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.lag.inputs.lag_inputs import LagInputs
from pipelines.lag.past.status_at import group_status_at
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.lag.tables.status_rows import status_schema
from pipelines.query.engine import Snapshot
from pipelines.source.transaction_log import TransactionLogReader
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter


class TimedLog(Log):
    """A log whose records have the time of the story."""

    now_ms = START_MS

    def _record(self, key: bytes | None, value: bytes | None, producer: int) -> LogRecord:
        return super()._record(key, value, producer)._replace(timestamp=self.now_ms)


@dataclass
class End:
    """Answer of the leader of a partition. The last stable offset is the end unless it is given; a reason is a failure."""

    end: int = 0
    start: int = 0
    stable: int | None = None
    reason: str | None = None


class RememberingSnapshot(Snapshot):
    """A snapshot that reads each query once: the columns and the model ask for much of the same."""

    def __init__(self, store: TableStore, batch: Batch) -> None:
        super().__init__(store, batch)
        self._rows: dict[str, pa.Table] = {}
        self._past: dict[int | datetime, Snapshot] = {}

    def query(self, sql: str) -> pa.Table:
        if sql not in self._rows:
            self._rows[sql] = super().query(sql)
        return self._rows[sql]

    def as_of(self, as_of: int | datetime) -> Snapshot:
        if as_of not in self._past:
            self._past[as_of] = RememberingSnapshot(self._store, super().as_of(as_of).batch)
        return self._past[as_of]


class Story:
    """One job over one log partition; times in seconds since its start."""

    def __init__(
        self, root: str, settings: StatusSettings = DEFAULT_SETTINGS, era: str = "4", interval_seconds: int | None = None
    ) -> None:
        self.root, self.settings = root, settings
        self.log = TimedLog()
        self.ends: dict[tuple[str, int], End] = {}
        self.written: list[tuple[datetime, list[dict[str, Any]]]] = []
        self.inputs: LagInputs | None = None
        self._era, self._applied = Era.named(era), 0
        store, self._reader = created_tables(root), TableStore(root)
        self._applier = BatchApplier(
            store,
            self._era,
            self._era.default_retention_ms,
            dict,
            1_000_000,
            clock=self.clock,
            interval_seconds=interval_seconds,
        )
        self.restart()

    def restart(self) -> None:
        """Continue in a new process."""
        self._applier.writer = None
        self.sampling = LagSampling(self._answers, self.clock, self.inputs, self.settings)

    def writer(self) -> TablesWriter:
        """The writer of the job."""
        return self._applier.claim()

    def reads(self, transactions: TransactionLogReader) -> "Story":
        """Let every batch also apply new transactions."""
        self._applier.transactions = transactions
        return self

    def at(self, seconds: float) -> "Story":
        """Set the time."""
        self.log.now_ms = START_MS + round(seconds * 1000)
        return self

    def clock(self) -> datetime:
        return datetime.fromtimestamp(self.log.now_ms / 1000, UTC)

    def commit(
        self, offset: int, partition: int = 0, *, group: str = "billing", topic: str = "orders", epoch: int = 3, **values: Any
    ) -> "Story":
        self.log.commit(partition, offset, group=group, topic=topic, at=self.log.now_ms, leader_epoch=epoch, **values)
        return self

    def end(self, end: int, partition: int = 0, *, topic: str = "orders", **values: Any) -> "Story":
        self.ends[topic, partition] = End(end, **values)
        return self

    def batch(self) -> "Story":
        """Apply the records since the last batch."""
        if self.log.end > self._applied:
            self._applier.apply_rows(change_table(self.log, self._era, self._applied, self.log.end))
            self._applied = self.log.end
        return self

    def sample(self) -> dict[str, Any]:
        """Apply new records, take a sample, and return the status of the group billing."""
        self.batch()
        batch = self.sampling.sample(self._applier.claim())
        if batch is None:
            return {}
        rows = Snapshot(self._reader, batch).query("SELECT * FROM group_status ORDER BY group_id").to_pylist()
        self.written.append((rows[0]["evaluated_at"], rows))
        return next((row for row in rows if row["group_id"] == "billing"), {})

    def _newest(self) -> Snapshot:
        """The last batch, in a store that is kept open as that of the page is."""
        batch = self._reader.last_batch()
        assert batch is not None
        return Snapshot(self._reader, batch)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a statement at the last batch."""
        rows: list[dict[str, Any]] = self._newest().query(sql).to_pylist()
        return rows

    def expect_same_from_histories(self, last: int = 1) -> None:
        """The newest tables give the status that the samples wrote, in columns and by the model.

        Of a long story four samples or a few more are compared, the `last` ones among them.
        """
        snapshot = RememberingSnapshot(self._reader, self._newest().batch)
        compared = *self.written[:-last:-1], *self.written[-last :: -(1 + len(self.written) // 4)]
        for at, rows in compared:
            names = [row["group_id"] for row in rows]
            written = [{name: value for name, value in row.items() if name != "batch_id"} for row in rows]
            assert group_status_at(snapshot, at, names).to_pylist() == written, at
            schema = status_schema("group_status")
            assert pa.Table.from_pylist(model_status_at(snapshot, at, names, self.settings), schema).to_pylist() == written, at

    def _answers(self, wanted: Mapping[str, set[int]]) -> pa.Table:
        now = self.log.now_ms
        samples = []
        for topic, partition in sorted((topic, number) for topic, numbers in wanted.items() for number in numbers):
            end = self.ends.get((topic, partition), End(reason="unknown_topic_or_partition"))
            if end.reason is not None:
                samples.append(EndOffsetSample(None, topic, partition, now, now, None, None, reason=end.reason))
            else:
                stable = end.end if end.stable is None else end.stable
                samples.append(EndOffsetSample("id", topic, partition, now, now, end.start, end.end, stable, 3))
        return samples_table(samples)
