"""Tables of a live broker's groups with samples of its topics, without Spark: what `grouplake run` does, step by step."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from jobs import run_options

from coordinator_core.reduction.range_reduction import RangeReducer
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.batch.topic_names import NameSource
from pipelines.job.source_sampling import open_sampling
from pipelines.query.engine import Snapshot
from pipelines.source.address import parse_address
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions
from pipelines.source.reduction_rows import change_rows
from pipelines.source.transaction_log import TransactionLogReader, transaction_address
from pipelines.tables.store import TableStore

ERA = Era.named("4")

#: Group, topic, partition.
Key = tuple[str, str, int]


def now_ms() -> int:
    return int(time.time() * 1000)


class LiveLag:
    """One job. `sample` reads the new commits of the cluster and samples the topics of all groups."""

    def __init__(
        self,
        bootstrap: str,
        root: Path,
        kafka: dict[str, str] | None = None,
        *,
        transactions: bool = False,
        era: Era = ERA,
        names: NameSource = dict,
        **options: Any,
    ) -> None:
        self.root = str(root)
        self.lines: list[str] = []
        self._era = era
        self._address = f"kafka://{bootstrap}/__consumer_offsets"
        self._kafka = kafka or {}
        given = {"lag_interval_seconds": 1, "lag_counted_partitions": 100, "kafka": self._kafka, **options}
        sampling = open_sampling(run_options(self._address, root, **given), self.lines.append, now_ms)
        assert sampling is not None
        self._sampling = sampling.lag
        self._store = TableStore(self.root)
        if not self._store.exists():
            self._store.create()
        self._reader = self._transaction_reader() if transactions else None
        self._applier = BatchApplier(
            self._store, self._era, self._era.default_retention_ms, names, bulk_rows=1_000_000, transactions=self._reader
        )

    def sample(self, *, with_commits: bool = True) -> dict[Key, dict[str, Any]]:
        """The rows of the table `lag` after a sample, which comes after the commits that the cluster has by now."""
        if with_commits:
            self._read_commits()
        batch = self._sampling.sample(self._applier.claim())
        assert batch is not None
        return self.rows()

    def close(self) -> None:
        """End the connections of the reader of transactions."""
        if self._reader is not None:
            self._reader.close()

    def rows(self) -> dict[Key, dict[str, Any]]:
        """The rows of the table `lag`."""
        return {(row["group_id"], row["topic"], row["partition"]): row for row in self.query("SELECT * FROM lag")}

    def query(self, sql: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = Snapshot.open(self.root).query(sql).to_pylist()
        return rows

    def _transaction_reader(self) -> TransactionLogReader:
        address = transaction_address(parse_address(self._address), "source", self._era.name)
        return TransactionLogReader(
            SourceOptions(address, self._era.name, self._era.default_retention_ms, self._kafka), self.lines.append
        )

    def _read_commits(self) -> None:
        last = self._store.last_batch()
        changes: list[pa.RecordBatch] = []
        with KafkaSource(self._address, self._kafka) as log:
            for partition, end in log.end_offsets().items():
                start = last.next_offsets.get(partition, 0) if last else 0
                if start < end:
                    reducer = RangeReducer(self._era, partition)
                    for columns in log.read_columns(partition, start, end):
                        reducer.add(columns)
                    changes += change_rows(reducer.finish(), start, end, self._era, self._era.default_retention_ms)
        if changes:
            self._applier.apply_rows(pa.Table.from_batches(changes, SCHEMA))
        elif self._reader is not None:
            self._applier.apply_transactions()
